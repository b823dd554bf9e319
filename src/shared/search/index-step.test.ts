import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { IndexStepBuilder } from './index-step.ts';
import { digestOf } from './resource-facts.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const stack = { organization: 'org', project: 'shop', stack: 'prod' };
const resourceOf = (index: number, acl: string): Buffer => {
  const component = 'urn:pulumi:prod::shop::my:component:Site';
  const dependencies = [0, 1, 2].map((back) => `${component}$aws:s3/bucket:Bucket::bucket-${index - back}`);
  return Buffer.from(
    JSON.stringify({
      urn: `${component}$aws:s3/bucket:Bucket::bucket-${index}`,
      custom: true,
      id: `bucket-${index}`,
      type: 'aws:s3/bucket:Bucket',
      inputs: { acl, bucket: `bucket-${index}` },
      outputs: { acl, arn: `arn:aws:s3:::bucket-${index}` },
      parent: `${component}::site-${index % 100}`,
      dependencies,
      provider: 'urn:pulumi:prod::shop::pulumi:providers:aws::default::04da6b54-80e4-46f7-96ec-b56ff0331ba9',
    }),
  );
};

/** The minimum of three measurements excludes other allocations. */
async function memoryOf(make: () => Promise<object>): Promise<number> {
  const used = (): number => {
    collect();
    const { arrayBuffers, heapUsed } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const sizes: number[] = [];
  for (let at = 0; at < 3; at++) {
    const before = used();
    const made = await make();
    sizes.push(used() - before);
    expect(made).toBeDefined();
  }
  return Math.min(...sizes);
}

test('a state of many resources is indexed with a few hundred bytes of memory for each', async () => {
  const count = 5_000;
  const build = async (): Promise<IndexStepBuilder> => {
    const step = new IndexStepBuilder(stack, new Map());
    step.beginVersion(false);
    for (let index = 0; index < count; index++) await step.add(resourceOf(index, 'private'));
    return step;
  };
  const { changes, written } = (await build()).finish();
  const keys = [...written.batches()].flat().map(({ key }) => key);
  expect(new Set(keys).size).toBe(count);
  expect(changes?.counts).toEqual({ created: count, updated: 0, replaced: 0, deleted: 0 });
  // 310 to 520; as objects, 1,200.
  expect((await memoryOf(build)) / count).toBeLessThan(800);
});

test('of duplicate resources in a state, the last one counts, even if it is the indexed one', async () => {
  const [before, after] = [resourceOf(1, 'private'), resourceOf(1, 'public')];
  const rowsOf = ({ changes, written }: ReturnType<IndexStepBuilder['finish']>) => ({
    counts: changes?.counts,
    changes: [...(changes?.batches() ?? [])].flat().map(({ change, paths }) => ({ change, paths })),
    written: [...written.batches()].flat().map(({ digest }) => digest),
  });
  const none = { created: 0, updated: 0, replaced: 0, deleted: 0 };
  const first = new IndexStepBuilder(stack, new Map());
  first.beginVersion(false);
  await first.add(after);
  await first.add(before);
  const { written } = first.finish();
  const [row] = [...written.batches()].flat();
  if (!row) throw new Error('nothing is written');
  expect(row.digest).toBe(digestOf(before));
  expect(first.finish()).toMatchObject({ changes: { counts: { ...none, created: 1 } }, resourceCount: 1 });

  const same = new IndexStepBuilder(stack, new Map([[row.key, row.digest]]));
  same.beginVersion(true);
  await same.add(after);
  await same.add(before);
  expect(same.needsBase()).toBe(false);
  expect(rowsOf(same.finish())).toEqual({ counts: none, changes: [], written: [] });

  const changed = new IndexStepBuilder(stack, new Map([[row.key, row.digest]]));
  changed.beginVersion(true);
  await changed.add(before);
  await changed.add(after);
  expect(changed.needsBase()).toBe(true);
  await changed.compare(before);
  await changed.compare(before);
  expect(rowsOf(changed.finish())).toEqual({
    counts: { ...none, updated: 1 },
    changes: [{ change: 'updated', paths: ['inputs.acl', 'outputs.acl'] }],
    written: [digestOf(after)],
  });
});

test('resources beyond a bound are skipped, except references to stacks, and not taken for created or deleted ones', async () => {
  const reference = Buffer.from(
    JSON.stringify({
      urn: 'urn:pulumi:prod::shop::pulumi:pulumi:StackReference::network',
      type: 'pulumi:pulumi:StackReference',
      inputs: { name: 'org/network/prod' },
    }),
  );
  const first = new IndexStepBuilder(stack, new Map(), 3);
  first.beginVersion(false);
  for (let index = 0; index < 5; index++) await first.add(resourceOf(index, 'private'));
  await first.add(reference);
  const { changes, resourceCount, skipped, written } = first.finish();
  expect({ counts: changes?.counts, resourceCount, skipped }).toMatchObject({
    counts: { created: 4 },
    resourceCount: 4,
    skipped: 2,
  });
  const rows = [...written.batches()].flat();
  expect(rows.map(({ reads }) => reads)).toEqual([null, null, null, 'org/network/prod']);

  // The first one is gone, so that the fourth moves below the bound.
  const next = new IndexStepBuilder(stack, new Map(rows.map(({ digest, key }) => [key, digest])), 3);
  next.beginVersion(true);
  for (let index = 1; index < 5; index++) await next.add(resourceOf(index, 'private'));
  await next.add(reference);
  for (let index = 0; index < 5; index++) await next.compare(resourceOf(index, 'private'));
  expect(next.finish()).toMatchObject({
    changes: { counts: { created: 0, updated: 0, replaced: 0, deleted: 0 } },
    removed: [rows[0]?.key],
    resourceCount: 4,
    skipped: 1,
  });

  const read = new IndexStepBuilder(stack, new Map(), 3);
  for (let index = 0; index < 5; index++) await read.addBase(resourceOf(index, 'private'));
  read.beginVersion(false);
  await read.add(resourceOf(4, 'private'));
  expect(read.finish()).toMatchObject({ changes: { counts: { created: 0 } }, resourceCount: 1, skipped: 0 });
});
