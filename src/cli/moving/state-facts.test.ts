import { expect, test } from '@jest/globals';
import { bytesOf } from '../../shared/platform/bytes/byte-source.ts';
import { readStateFacts } from './state-facts.ts';

const stack = 'urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev';
const provider = 'urn:pulumi:dev::proj::pulumi:providers:aws::main';
const bucket = 'urn:pulumi:dev::proj::aws:s3/bucket:Bucket::logs';
const root = { urn: stack, custom: false, type: 'pulumi:pulumi:Stack' };
const providerAt = (id: string, rest: object = {}) => ({
  ...{ urn: provider, custom: true, id, type: 'pulumi:providers:aws' },
  ...rest,
});
const bucketOf = (id: string, rest: object = {}) => ({
  ...{ urn: bucket, custom: true, id: 'b', type: 'aws:s3/bucket:Bucket', provider: `${provider}::${id}` },
  ...rest,
});
const faultOf = async (...resources: object[]) => {
  const document = Buffer.from(JSON.stringify({ version: 3, deployment: { manifest: {}, resources } }));
  return (await readStateFacts(bytesOf(document)())).fault;
};

test('a state is refused as the CLI refuses it: for what a resource needs, and does not follow', async () => {
  expect(await faultOf(root, providerAt('1'), bucketOf('1', { parent: stack, dependencies: [stack] }))).toBeNull();
  // A provider that was replaced has its former id until it is deleted.
  expect(await faultOf(providerAt('2'), bucketOf('2'), providerAt('1', { delete: true }))).toBeNull();
  expect(await faultOf(providerAt('2'), bucketOf('1'))).toBe(`${bucket} needs ${provider}::1, which is not before it`);
  expect(await faultOf(bucketOf('1'), providerAt('1'))).toBe(`${bucket} needs ${provider}::1, which is not before it`);
  expect(await faultOf({ ...root, urn: provider }, bucketOf(''))).toContain('which is not before it');
  expect(await faultOf(providerAt('2'), bucketOf('1', { pendingReplacement: true }))).toBeNull();
  for (const field of [{ parent: stack }, { deletedWith: stack }, { propertyDependencies: { x: [stack] } }])
    expect(await faultOf(providerAt('1'), bucketOf('1', field), root)).toBe(
      `${bucket} needs ${stack}, which is not before it`,
    );
});

test('a state is refused as the CLI refuses it: for what a resource lacks, or must not have', async () => {
  expect(await faultOf(root, root)).toBe(`${stack} is there twice`);
  expect(await faultOf({ ...root, delete: true }, root, { ...root, delete: true })).toBeNull();
  expect(await faultOf({ ...root, urn: undefined })).toBe('a resource has no URN');
  expect(await faultOf({ ...root, type: undefined })).toBe(`${stack} has no type`);
  expect(await faultOf({ ...root, id: 'x' })).toBe(`${stack} is a component, but has an id`);
});
