import { expect, test } from '@jest/globals';
import { nameInUrn, packageOf, parseUrn, shortType } from './resource-name.ts';

test('reads the parts of a URN', () => {
  expect(parseUrn('urn:pulumi:dev::web::my:group:Site$aws:s3/bucket:Bucket::a::b')).toEqual({
    ...{ stack: 'dev', project: 'web', parentTypes: ['my:group:Site'], type: 'aws:s3/bucket:Bucket', name: 'a::b' },
  });
  for (const bad of ['', 'urn:pulumi:dev', 'x::y::z::w', 'urn:pulumi:dev::web::type']) {
    expect(parseUrn(bad)).toBeNull();
    expect(nameInUrn(bad)).toBe(bad);
  }
});

test('shortens types as the CLI does', () => {
  expect(shortType('aws:s3/bucket:Bucket')).toBe('aws:s3:Bucket');
  expect(shortType('aws:s3/bucketV2:Bucket')).toBe('aws:s3/bucketV2:Bucket');
  expect(shortType('kubernetes:core/v1:Pod')).toBe('kubernetes:core/v1:Pod');
  expect(shortType('pulumi:providers:aws')).toBe('pulumi:providers:aws');
  expect(shortType('odd')).toBe('odd');
  expect(packageOf('aws:s3/bucket:Bucket')).toBe('aws');
});
