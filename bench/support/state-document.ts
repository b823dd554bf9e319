/**
 * Returns a deployment document of about `bytes` bytes that looks like a real state: many short members, URNs that repeat, JSON
 * within strings, and ciphertexts of secrets in some resources.
 */
export function stateOf(bytes: number, seed = 1): Buffer {
  const resources: string[] = [];
  let random = seed;
  const next = (): string => {
    random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0;
    return random.toString(16).padStart(8, '0');
  };
  let size = 100;
  for (let index = 0; size < bytes; index++) {
    const resource = JSON.stringify(bucketOf(index, next));
    resources.push(resource);
    size += resource.length + 1;
  }
  return Buffer.from(
    `{"version":3,"deployment":{"manifest":{"time":"2026-01-01T00:00:00Z","magic":"","version":""},"resources":[${resources.join(',')}]}}`,
  );
}

function bucketOf(index: number, next: () => string): object {
  const name = `bucket-${index}-${next()}`;
  const parent = 'urn:pulumi:prod::shop::my:component:Site';
  const ciphertext = Buffer.from(Array.from({ length: 12 }, next).join(''), 'hex').toString('base64');
  const inputs = {
    acl: 'private',
    bucket: name,
    forceDestroy: false,
    tags: { name: `Bucket ${index}`, owner: 'platform', stage: 'prod' },
    versioning: { enabled: true, mfaDelete: false },
    policy: JSON.stringify({
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Principal: '*', Action: ['s3:GetObject'], Resource: [`arn:aws:s3:::${name}/*`] }],
    }),
    ...(index % 4 === 0 && {
      secret: { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', ciphertext },
    }),
  };
  return {
    urn: `${parent}$aws:s3/bucket:Bucket::bucket-${index}`,
    custom: true,
    id: name,
    type: 'aws:s3/bucket:Bucket',
    inputs,
    outputs: {
      ...inputs,
      arn: `arn:aws:s3:::${name}`,
      region: 'us-east-1',
      websiteDomain: null,
      grants: [],
      loggings: [],
    },
    parent: `${parent}::site-${index % 100}`,
    dependencies: [`${parent}$aws:s3/bucket:Bucket::bucket-${Math.max(0, index - 1)}`],
    provider: 'urn:pulumi:prod::shop::pulumi:providers:aws::default_6_0_0::04da6b54-80e4-46f7-96ec-b56ff0331ba9',
    propertyDependencies: { bucket: [], policy: [] },
    created: '2026-01-01T00:00:00.123456Z',
    modified: '2026-01-01T00:00:00.123456Z',
  };
}
