import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { bytesOf, cutOut } from '../../../shared/platform/bytes/byte-source.ts';
import { repairPendingSteps, type StepRepair } from './pending-operations.ts';

interface Resource {
  readonly urn: string;
  readonly custom: boolean;
  readonly type: string;
  readonly id?: string;
  readonly delete?: boolean;
  readonly inputs?: unknown;
  readonly parent?: string;
  readonly provider?: string;
  readonly dependencies?: readonly string[];
  readonly propertyDependencies?: Readonly<Record<string, readonly string[]>>;
  readonly deletedWith?: string;
}
interface Operation {
  readonly resource: Resource;
  readonly type: string;
}
interface Deployment {
  readonly [name: string]: unknown;
  readonly resources?: readonly Resource[] | null;
  readonly pending_operations?: readonly Operation[];
}

const urn = fc.oneof(fc.constantFrom('a', 'b', 'c', 'é::"q"', '__proto__'), fc.string({ unit: 'grapheme' }));
const resource: fc.Arbitrary<Resource> = fc.record(
  {
    urn,
    custom: fc.boolean(),
    type: fc.constantFrom('t:x:Y', 'pulumi:pulumi:Stack'),
    id: fc.string(),
    delete: fc.boolean(),
    inputs: fc.jsonValue({ maxDepth: 2 }),
  },
  { requiredKeys: ['urn', 'custom', 'type'] },
);
const operation: fc.Arbitrary<Operation> = fc.record({
  resource,
  type: fc.constantFrom('creating', 'creating', 'updating', 'deleting', 'reading', 'importing'),
});
const deployment: fc.Arbitrary<Deployment> = fc.oneof(
  fc.record({ manifest: fc.jsonValue(), resources: fc.array(resource), pending_operations: fc.array(operation) }),
  fc.record({ pending_operations: fc.array(operation), metadata: fc.jsonValue(), resources: fc.array(resource) }),
  fc.record({ resources: fc.constant(null), pending_operations: fc.array(operation) }),
  fc.record({ resources: fc.array(resource) }),
);
const repair: fc.Arbitrary<StepRepair | null> = fc.oneof(
  fc.constant(null),
  fc.constant({ action: 'clear' } as const),
  fc.record({ action: fc.constant('import' as const), id: fc.string({ minLength: 1, unit: 'grapheme' }) }),
);

/** The same on objects; null if it is refused. */
function modelOf(before: Deployment, repairs: readonly (StepRepair | null)[]): Deployment | null {
  const operations = before.pending_operations ?? [];
  const live = new Set((before.resources ?? []).filter((each) => each.delete !== true).map((each) => each.urn));
  const added: Resource[] = [];
  const left: Operation[] = [];
  for (const [index, each] of operations.entries()) {
    const chosen = repairs[index] ?? null;
    if (chosen === null) left.push(each);
    if (chosen?.action !== 'import') continue;
    if (each.type !== 'creating' || !each.resource.custom || live.has(each.resource.urn)) return null;
    live.add(each.resource.urn);
    added.push({ ...each.resource, id: chosen.id });
  }
  return {
    ...before,
    ...(before.pending_operations && { pending_operations: left }),
    ...(added.length > 0 && { resources: [...(before.resources ?? []), ...added] }),
  };
}

test('a repair changes only the chosen operations, for any chunks and layout of the document', async () => {
  const property = fc.asyncProperty(
    deployment,
    fc.array(repair, { maxLength: 12 }),
    fc.integer({ min: 1, max: 300 }),
    fc.constantFrom(undefined, 2),
    async (before, repairs, chunkBytes, indent) => {
      const text = Buffer.from(JSON.stringify({ version: 3, deployment: before }, null, indent));
      const chunks = Array.from({ length: Math.ceil(text.length / chunkBytes) }, (_, at) =>
        Buffer.from(text.subarray(at * chunkBytes, (at + 1) * chunkBytes)),
      );
      const source = bytesOf(...chunks);
      const model = modelOf(before, repairs);
      const repaired = repairPendingSteps(source, (_step, index) => repairs[index] ?? null);
      if (model === null) {
        await expect(repaired).rejects.toThrow(/already in the state|cannot be imported/);
        return;
      }
      const { parts } = await repaired;
      const written: Buffer[] = [];
      for await (const chunk of cutOut(source, parts)()) written.push(Buffer.from(chunk));
      const after = Buffer.concat(written).toString('utf8');
      // As texts, because the order of members and `__proto__` count.
      expect(JSON.stringify((JSON.parse(after) as { deployment: unknown }).deployment)).toBe(
        JSON.stringify(JSON.parse(JSON.stringify(model))),
      );
    },
  );
  await fc.assert(property, { numRuns: 300 });
});

const urnOf = (type: string, name: string) => `urn:pulumi:dev::proj::${type}::${name}`;
const root = { urn: urnOf('pulumi:pulumi:Stack', 'proj-dev'), custom: false, type: 'pulumi:pulumi:Stack' };
const main = { urn: urnOf('pulumi:providers:t', 'main'), custom: true, type: 'pulumi:providers:t', id: 'new' };
const lost = { urn: urnOf('t:x:Y', 'lost'), custom: true, type: 't:x:Y' };
const absent = urnOf('t:x:Y', 'absent');

test.each([
  ['what it needs is there', { provider: `${main.urn}::new`, parent: root.urn, dependencies: [main.urn] }, null],
  ['its provider was replaced', { provider: `${main.urn}::old` }, `${main.urn}::old`],
  ['its provider is another resource', { provider: `${root.urn}::` }, `${root.urn}::`],
  ['its parent is gone', { parent: absent }, absent],
  ['a dependency is gone', { dependencies: [root.urn, absent] }, absent],
  ['a dependency of a property is gone', { propertyDependencies: { a: [root.urn], b: [absent] } }, absent],
  ['what it is deleted with is gone', { deletedWith: absent }, absent],
])('a created resource is added if the CLI can load the state then: %s', async (_, references, missing) => {
  const resources = [root, main];
  const operations = [{ type: 'creating', resource: { ...lost, ...references } }];
  const document = { version: 3, deployment: { resources, pending_operations: operations } };
  const repaired = repairPendingSteps(bytesOf(Buffer.from(JSON.stringify(document))), () => ({
    ...{ action: 'import', id: 'i-1' },
  }));
  if (missing === null) expect(await repaired).toMatchObject({ imported: 1 });
  else await expect(repaired).rejects.toThrow(`${lost.urn} needs ${missing}, which is not in the state`);
});

test('a created resource may need one that is added before it', async () => {
  const child = { ...lost, urn: urnOf('t:x:Y$t:x:Y', 'child'), parent: lost.urn };
  const operations = [lost, child].map((each) => ({ type: 'creating', resource: each }));
  const repairAll = (pending: readonly object[]) =>
    repairPendingSteps(
      bytesOf(Buffer.from(JSON.stringify({ deployment: { resources: [root], pending_operations: pending } }))),
      () => ({ action: 'import', id: 'i-1' }),
    );
  expect(await repairAll(operations)).toMatchObject({ imported: 2 });
  await expect(repairAll(operations.toReversed())).rejects.toThrow(`${child.urn} needs ${lost.urn}`);
});
