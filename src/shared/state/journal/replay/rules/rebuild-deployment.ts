import { editMembers, joinParts, nameText } from '../../../../platform/json/member-edits.ts';
import type { DocumentParts, PendingOperation } from '../../../deployments/deployment-parts.ts';
import { flagResource, isFilled, ResourceFeature, type ResourceText } from '../../../deployments/resource.ts';
import { pruneReferences } from './prune-references.ts';
import type { ReplayState } from './replay-state.ts';
import { resolveAliases } from './resolve-aliases.ts';

/** The `features` are sorted. */
export type RebuiltDeployment = Pick<DocumentParts, 'deployment' | 'features'>;

/** Does not change `state`. Throws AliasConflictError. */
export function rebuildDeployment(state: ReplayState): RebuiltDeployment {
  const listed = listResources(state);
  const pendingOperations = listPendingOperations(state);
  // Determined before pruning: replaceWith requires its feature even if pruning removes it.
  const features = listFeatures(state, listed, pendingOperations);
  const pruned = state.hasRefresh ? pruneReferences(listed) : listed;

  const members = new Map(state.base.members);
  const { resources, snippets } = resolveAliases(pruned, members.get('snippets'));
  if (snippets) members.set('snippets', snippets);
  const extensions = joinExtensions(members.get('extensions'), state.extensions);
  if (extensions) members.set('extensions', extensions);
  return { deployment: { resources, pendingOperations, members }, features };
}

function listResources(state: ReplayState): ResourceText[] {
  const resources = state.added.filter((resource) => resource !== null);
  state.base.resources.forEach((resource, position) => {
    if (state.removed.has(position)) return;
    const swapped = state.swapped.get(position);
    if (swapped) {
      resources.push(swapped);
      return;
    }
    const flags: string[] = [];
    if (state.markedDelete.has(position)) flags.push('delete');
    if (state.markedPendingReplacement.has(position)) flags.push('pendingReplacement');
    resources.push(flagResource(resource, flags));
  });
  return resources;
}

function listPendingOperations(state: ReplayState): PendingOperation[] {
  const started = [...state.open.values()].filter((operation) => operation !== null);
  // A user has to check whether an interrupted create left a resource behind. The engine handles the other operations.
  return [...started, ...state.base.pendingOperations.filter((operation) => operation.isCreating)];
}

function listFeatures(
  state: ReplayState,
  resources: readonly ResourceText[],
  pendingOperations: readonly PendingOperation[],
): string[] {
  let bits = 0;
  for (const resource of resources) bits |= resource.features;
  for (const operation of pendingOperations) bits |= operation.features;
  const snippets = state.base.members.get('snippets');
  if (snippets && isFilled(snippets, 0, snippets.length)) {
    bits |= ResourceFeature['snippets-prototype'];
  }
  const features = Object.entries(ResourceFeature).flatMap(([name, bit]) => (bits & bit ? [name] : []));
  if (state.requiresByteString && resources.length + pendingOperations.length > 0) features.push('byteString');
  return features.sort();
}

/** For the same reference, the base's extension wins. */
function joinExtensions(base: Buffer | undefined, added: ReadonlyMap<string, Buffer>): Buffer | undefined {
  if (added.size === 0) return base;
  if (base?.[0] !== 0x7b) {
    const parts = [...added].map(([reference, value]) => Buffer.concat([nameText(reference), value]));
    return joinParts('{', parts, '}');
  }
  return editMembers(
    base,
    new Map([...added].map(([reference, value]) => [reference, (existing) => existing ?? value])),
  );
}
