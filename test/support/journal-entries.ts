import type { TestStack } from './state.ts';

/** The two journal entries that add a resource, as the engine writes them. */
export function creation(
  sequenceId: number,
  name: string,
  stack: Pick<TestStack, 'project' | 'stack'>,
): [object, object] {
  const type = 'pulumi:index:Stash';
  const state = {
    urn: `urn:pulumi:${stack.stack}::${stack.project}::${type}::${name}`,
    custom: true,
    type,
    inputs: { input: name },
    outputs: { output: name },
  };
  return [
    beginning(sequenceId, sequenceId, { resource: { ...state, outputs: undefined }, type: 'creating' }),
    {
      version: 1,
      kind: 1,
      sequenceID: sequenceId + 1,
      operationID: sequenceId,
      removeOld: null,
      removeNew: null,
      state,
    },
  ];
}

/** A begin entry, with its pending operation if any. */
export function beginning(sequenceId: number, operationId: number, operation?: object): object {
  return {
    version: 1,
    kind: 0,
    sequenceID: sequenceId,
    operationID: operationId,
    removeOld: null,
    removeNew: null,
    operation,
  };
}

/** A success that removes the base's resource at `position`. */
export function removal(sequenceId: number, operationId: number, position: number): object {
  return {
    version: 1,
    kind: 1,
    sequenceID: sequenceId,
    operationID: operationId,
    removeOld: position,
    removeNew: null,
  };
}
