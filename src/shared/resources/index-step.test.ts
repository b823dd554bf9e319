import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { IndexStepBuilder } from './index-step.ts';

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

/** Bytes that are held for each resource by what `work` returns. */
function heldBytes(count: number, work: () => object): number {
  const used = (): number => {
    collect();
    const { arrayBuffers, heapUsed } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = used();
  const kept = work();
  const bytes = (used() - before) / count;
  expect(kept).toBeDefined();
  return bytes;
}

test('a state of many resources is indexed with a few hundred bytes of memory for each', () => {
  const count = 20_000;
  const build = (known: ReadonlyMap<string, string>, acl: string) => {
    const step = new IndexStepBuilder(stack, known);
    step.beginVersion(known.size > 0);
    for (let index = 0; index < count; index++) step.add(resourceOf(index, acl));
    return step;
  };
  // Loads what is loaded once.
  build(new Map(), 'private').finish();
  let first: IndexStepBuilder | undefined;
  const created = heldBytes(count, () => {
    first = build(new Map(), 'private');
    return first;
  });
  const { changes, written } = (first as IndexStepBuilder).finish();
  const digests = new Map<string, string>();
  for (const rows of written.batches()) for (const { digest, key } of rows) digests.set(key, digest);
  expect(digests.size).toBe(count);
  expect(changes?.counts).toEqual({ created: count, updated: 0, replaced: 0, deleted: 0 });
  expect(created).toBeLessThan(600);
});
