import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { ConfigError, holdfastVersion, parseConfig } from './config.ts';
import { expected } from './expected.ts';
import { Settings, secretSettings } from './settings.ts';
import { tuningFrom } from './tuning.ts';

function problemsOf(environment: Record<string, string>): string {
  try {
    parseConfig(environment);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  throw new Error('The settings were accepted');
}

const masterKey = `k1:${createHash('sha256').update('k1').digest('base64')}`;

test('defaults alone make a complete, frozen configuration', () => {
  const config = parseConfig({});
  expect(config.listen).toEqual({ host: '127.0.0.1', port: 9090 });
  expect(config.database.url).toBeNull();
  expect(config.blobs.kind).toBe('files');
  expect(config.leaseSeconds).toBe(300);
  expect(config.publicUrl).toBe('http://127.0.0.1:9090');
  expect(Object.isFrozen(config)).toBe(true);
});

test('reports all invalid variables at once, each with its description', () => {
  const faulty = {
    HOLDFAST_LISTEN: 'localhost:99999',
    HOLDFAST_DATABASE_URL: 'mysql://x',
    HOLDFAST_DATABASE_POOL_SIZE: '0',
    HOLDFAST_DRAIN_SECONDS: '301',
    HOLDFAST_ORGANIZATION_CREATION: 'nobody',
    HOLDFAST_CHECKPOINT_MODE: 'fast',
    HOLDFAST_AUDIT_EXPORT: 'maybe',
    HOLDFAST_INLINE_BYTES: '1.5',
    HOLDFAST_LOG_LEVEL: 'loud',
    HOLDFAST_MASTER_KEYS: 'k1:short',
    HOLDFAST_JOB_CONCURRENCY: 'many',
    HOLDFAST_SHUTDOWN_SECONDS: '-1',
    HOLDFAST_NO_SUCH_SETTING: 'x',
  };
  const problems = problemsOf(faulty);
  for (const name of Object.keys(faulty)) expect(problems.match(new RegExp(`^ {2}${name}: `, 'gm'))).toHaveLength(1);
  expect(problems).toContain('Maximum connections to Postgres');
});

test.each([
  ['HOLDFAST_JOB_CONCURRENCY', 'many', 'must be a whole number from 1 to 256. Jobs below'],
  ['HOLDFAST_DRAIN_SECONDS', '301', 'must be a whole number from 0 to 300. '],
  ['HOLDFAST_INLINE_BYTES', '1.5', 'must be a whole number from 1 to '],
  ['HOLDFAST_ENCRYPT_DOCUMENTS', 'yes', 'must be true or false. '],
  ['HOLDFAST_CHECKPOINT_MODE', 'fast', 'must be one of auto, journal, delta, full. '],
  ['HOLDFAST_LISTEN', '9090', 'must be an address and a port, such as 0.0.0.0:9090. '],
  ['HOLDFAST_PUBLIC_URL', 'pulumi.example.com', 'must be a URL that begins with http:// or https://. '],
  ['HOLDFAST_BACKUP_TO', 'ftp://host/backups', 'must be a folder or s3://bucket/prefix. '],
  ['HOLDFAST_BACKUP_TO', 's3://', 'must be a folder or s3://bucket/prefix. '],
  ['HOLDFAST_BACKUP_SCHEDULE', 'daily', '"daily" is not five fields of cron'],
  ['HOLDFAST_OIDC_NAME', 'x'.repeat(61), 'must be a text of 1 to 60 characters. '],
])('describes the valid values of %s when it is %j', (name, value, sentence) => {
  expect(problemsOf({ [name]: value })).toContain(`  ${name}: ${sentence}`);
});

test.each(Object.entries(Settings.properties))('the constraint of %s can be described in words', (_, schema) => {
  // Readers of a log should not have to read a regular expression.
  if ('pattern' in schema) expect((schema as { form?: string }).form).toMatch(/\w/);
  expect(expected(schema)).not.toContain('undefined');
});

test.each(Object.keys(Settings.properties))('%s has a description', (name) => {
  expect((Settings.properties as Record<string, { description?: string }>)[name]?.description).toMatch(/\.$/);
});

test('error messages do not contain secret values', () => {
  const problems = problemsOf({
    HOLDFAST_DATABASE_URL: 'postgres//user:hunter2@host',
    HOLDFAST_MASTER_KEYS: `${masterKey}hunter2`,
  });
  expect(problems).toContain('HOLDFAST_DATABASE_URL');
  expect(problems).not.toContain('hunter2');
  expect(problems).not.toContain(masterKey);
  expect(secretSettings).toEqual(expect.arrayContaining(['HOLDFAST_DATABASE_URL', 'HOLDFAST_MASTER_KEYS']));
});

test('ignores empty variables and those without our prefix', () => {
  expect(parseConfig({ HOLDFAST_LISTEN: '', HOLDFAST_S3_BUCKET: '', HOME: '/x', DRAIN_SECONDS: '1' })).toEqual(
    parseConfig({}),
  );
});

test.each([
  [':8080', '0.0.0.0', 8080, 'http://localhost:8080'],
  ['127.0.0.1:80', '127.0.0.1', 80, 'http://127.0.0.1:80'],
  ['[::1]:9090', '::1', 9090, 'http://[::1]:9090'],
  ['[::]:9090', '::', 9090, 'http://localhost:9090'],
  ['example.org:0', 'example.org', 0, 'http://example.org:0'],
])('listens at %s', (text, host, port, publicUrl) => {
  expect(parseConfig({ HOLDFAST_LISTEN: text })).toMatchObject({ listen: { host, port }, publicUrl });
});

test.each([{}, { HOLDFAST_DATABASE_URL: 'postgres://h/d' }])(
  'listens on the loopback address by default: %j',
  (given) => {
    const { listen, managementListen } = parseConfig(given);
    expect([listen.host, managementListen?.host]).toEqual(['127.0.0.1', '127.0.0.1']);
  },
);

test('a bucket turns on the S3 store', () => {
  const config = parseConfig({ HOLDFAST_S3_BUCKET: 'b', HOLDFAST_S3_ENDPOINT: 'http://s3:9000' });
  expect(config.blobs).toMatchObject({ kind: 's3', bucket: 'b', endpoint: 'http://s3:9000', forcePathStyle: true });
  const accessPoint = 'arn:aws:s3:eu-west-1:123456789012:accesspoint/states';
  expect(() => parseConfig({ HOLDFAST_S3_BUCKET: accessPoint })).toThrow('HOLDFAST_S3_BUCKET');
});

test('a test starts a process with other values than the constants', () => {
  expect(parseConfig({}, tuningFrom('{"leaseSeconds":3600}')).leaseSeconds).toBe(3600);
  expect(tuningFrom(undefined)).toEqual({});
  expect(() => tuningFrom('{"leaseSeconds":"3600"}')).toThrow('HOLDFAST_TEST_TUNING');
  for (const malformed of ['', '{leaseSeconds:1}', 'null', '[1]', '1'])
    expect(() => tuningFrom(malformed)).toThrow('HOLDFAST_TEST_TUNING is not a numeric object');
  expect(() => parseConfig({}, tuningFrom('{"leaseSecond":3600}'))).toThrow('leaseSecond');
});

test('accepts several master keys', () => {
  const ring = `${masterKey},old.1:${Buffer.alloc(32).toString('base64')}`;
  expect(parseConfig({ HOLDFAST_MASTER_KEYS: ring }).secrets.masterKeys).toBe(ring);
});

test('rejects secrets that are placeholders or not random, without quoting them', () => {
  const weak = Buffer.alloc(32, 7).toString('base64');
  const problems = problemsOf({
    HOLDFAST_MASTER_KEYS: `k1:${weak}`,
    HOLDFAST_DATABASE_URL: 'postgres://holdfast:change-me@db/holdfast',
    HOLDFAST_REDIS_URL: 'redis://:replace-me-first@redis:6379',
  });
  for (const name of ['HOLDFAST_MASTER_KEYS', 'HOLDFAST_DATABASE_URL', 'HOLDFAST_REDIS_URL'])
    expect(problems).toContain(`${name}: the `);
  for (const secret of [weak, 'change-me', 'replace-me']) expect(problems).not.toContain(secret);
});

test.each(['5s', '-1', '0', '0.5', 'NaN', '99999999999999999999'])('rejects %j as a number', (value) => {
  expect(problemsOf({ HOLDFAST_BACKUP_KEEP: value })).toContain('HOLDFAST_BACKUP_KEEP');
});

test('budgets, shares and rates follow from the settings, and tests replace single ones', () => {
  const environment = {
    HOLDFAST_MEMORY_BYTES: String(512 * 1024 * 1024),
    HOLDFAST_REDIS_IN_FLIGHT_BYTES: '1000',
    HOLDFAST_REQUESTS_PER_MINUTE: '10',
    HOLDFAST_BACKGROUND_BYTES_PER_SECOND: '0',
    HOLDFAST_BLOB_RETENTION_SECONDS: '60',
    HOLDFAST_JOB_CONCURRENCY: '7',
    HOLDFAST_SESSION_HOURS: '2',
  };
  const config = parseConfig(environment, { inFlightBytes: 5 });
  expect(config).toMatchObject({
    limits: {
      inFlight: { writes: 5, imports: 32 * 1024 * 1024 },
      bufferedBodyBytes: 16 * 1024 * 1024,
      redisInFlight: { writes: 1000, imports: 500 },
    },
    requestsPerMinute: { token: 10, user: 20, address: 40 },
    scrub: { bytesPerSecond: 0 },
    encoding: { bytesPerSecond: 0 },
    blobGraceSeconds: 60,
    jobs: { concurrency: 7, largeConcurrency: 4 },
    sessions: { idleSeconds: 7200, maxSeconds: 7200 },
  });
  expect(parseConfig({}).limits.inFlight.writes).toBeLessThanOrEqual(256 * 1024 * 1024);
});

test('the version comes from package.json', () => {
  expect(holdfastVersion).toMatch(/^\d+\.\d+\.\d+/);
});

test('only site admins create organizations, unless the database is embedded or the setting differs', () => {
  const HOLDFAST_DATABASE_URL = 'postgres://db/holdfast';
  expect(parseConfig({}).organizationCreation).toBe('anyone');
  expect(parseConfig({ HOLDFAST_DATABASE_URL }).organizationCreation).toBe('site-admin');
  const explicit = { HOLDFAST_DATABASE_URL, HOLDFAST_ORGANIZATION_CREATION: 'anyone' };
  expect(parseConfig(explicit).organizationCreation).toBe('anyone');
});

test('the variable by which commands find a server is no setting, and not refused', () => {
  expect(parseConfig({ HOLDFAST_URL: 'https://pulumi.example.com' })).toEqual(parseConfig({}));
});
