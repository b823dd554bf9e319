import { expect, test } from '@jest/globals';
import { parsePostgresUrl } from '../db/postgres-url.ts';
import { parseRedisUrl } from '../redis/redis-url.ts';
import { ConfigError, parseConfig } from './config.ts';
import { pathWarnings } from './url-problems.ts';

function errorOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error('The settings were accepted');
}

test.each([
  ['HOLDFAST_REDIS_URL', 'redis://u:sec/ret@h:6379'],
  ['HOLDFAST_REDIS_URL', 'rediss://u:sec/ret+x=@h:6379'],
  ['HOLDFAST_REDIS_URL', 'rediss://u:7/sec@h:6379'],
  ['HOLDFAST_REDIS_URL', 'redis://u:sec?ret@h'],
  ['HOLDFAST_REDIS_URL', 'redis://u:sec#ret@h'],
  ['HOLDFAST_REDIS_URL', 'redis://u:sec10%@h'],
  ['HOLDFAST_REDIS_URL', 'redis://u:sec@h:99999'],
  ['HOLDFAST_REDIS_URL', 'redis+cluster://u:sec/ret@h'],
  ['HOLDFAST_REDIS_URL', 'redis+cluster://u:sec%@h'],
  ['HOLDFAST_REDIS_URL', 'redis+cluster://u:sec'],
  ['HOLDFAST_REDIS_URL', 'redis+sentinel://u:sec/ret@h/main'],
  ['HOLDFAST_DATABASE_URL', 'postgres://u:sec/ret@h/d'],
  ['HOLDFAST_DATABASE_URL', 'postgres://u:sec?ret@h/d'],
  ['HOLDFAST_DATABASE_URL', 'postgres://u:sec#ret@h/d'],
  ['HOLDFAST_DATABASE_URL', 'postgres://u:a@b:sec/ret@h/d'],
  ['HOLDFAST_DATABASE_URL', 'postgres://u:sec/d'],
  ['HOLDFAST_DATABASE_URL', 'postgres://u:sec%ff@h/d'],
  ['HOLDFAST_DATABASE_REPLICA_URL', 'postgres://u:sec/ret@h/d'],
  ['HOLDFAST_S3_ENDPOINT', 'https://u:sec/ret@h'],
  ['HOLDFAST_S3_ENDPOINT', 'https://u:sec@h'],
  ['HOLDFAST_S3_ENDPOINT', 'https://h:99999/sec'],
  ['HOLDFAST_OIDC_ISSUER', 'https://u:sec@h'],
  ['HOLDFAST_AUDIT_EXPORT_URL', 'https://h:99999/sec'],
])('%s=%s is refused at the start, without a part of it', (name, url) => {
  const environment = {
    HOLDFAST_OIDC_CLIENT_ID: name === 'HOLDFAST_OIDC_ISSUER' ? 'id' : '',
    HOLDFAST_PUBLIC_URL: 'https://x.example.com',
    [name]: url,
  };
  const error = errorOf(() => parseConfig(environment));
  expect(error).toBeInstanceOf(ConfigError);
  expect((error as Error).message).toContain(`  ${name}: `);
  expect((error as Error).message).not.toMatch(/sec|ret@/);
});

test.each(['postgres://u:sec/ret@h/d', 'postgres://u:sec/d'])('%s is not quoted where it is parsed', (url) => {
  expect((errorOf(() => parsePostgresUrl(url)) as Error).message).not.toContain('sec');
  expect((errorOf(() => parseRedisUrl(url.replace('postgres:', 'redis+cluster:'))) as Error).message).not.toContain(
    'sec',
  );
});

test.each([
  ['HOLDFAST_REDIS_URL', 'rediss://default:ab%2Fcd+ef=@cache:6380/0?sslrootcert=/ca@1.pem'],
  ['HOLDFAST_REDIS_URL', 'redis://[::1]:6379'],
  ['HOLDFAST_REDIS_URL', 'redis+sentinel://u:p%2Fw@a:1,[::1]:2/main/1?sentinelPassword=a@b'],
  ['HOLDFAST_DATABASE_URL', 'postgres://u:10%@a:1,[::1]:2,c/db?sslmode=require&application_name=a@b'],
  ['HOLDFAST_DATABASE_URL', 'postgres://u:p@w@a/db'],
  ['HOLDFAST_DATABASE_URL', 'postgres://u@/db?host=/run/postgresql'],
  ['HOLDFAST_DATABASE_URL', 'postgres:///db'],
  ['HOLDFAST_S3_ENDPOINT', 'http://[::1]:9000'],
  ['HOLDFAST_S3_ENDPOINT', 'https://a.example.com/minio'],
  ['HOLDFAST_AUDIT_EXPORT_URL', 'https://siem.example.com/in?key=1'],
])('%s=%s is accepted', (name, url) => expect(() => parseConfig({ [name]: url })).not.toThrow());

test.each([
  'https://pulumi.example.com:99999',
  'https://[x',
  'https://example.com/?a=b',
  'https://example.com?a=b',
  'https://example.com/#a',
  'https://u:sec@example.com',
])('%s is no public URL', (url) => {
  const error = errorOf(() => parseConfig({ HOLDFAST_PUBLIC_URL: url })) as Error;
  expect(error).toBeInstanceOf(ConfigError);
  expect(error.message).toContain('  HOLDFAST_PUBLIC_URL: ');
});

test.each(['https://example.com', 'https://example.com/', 'http://[::1]:9090'])('%s is a public URL', (url) =>
  expect(parseConfig({ HOLDFAST_PUBLIC_URL: url }).publicUrl).toBe(url),
);

test('a public URL with a path is accepted with a warning', () => {
  const warnings = (url: string) => pathWarnings(parseConfig({ HOLDFAST_PUBLIC_URL: url }));
  expect(warnings('https://example.com/holdfast')).toEqual([expect.stringMatching(/^HOLDFAST_PUBLIC_URL: .*path/)]);
  expect([...warnings('https://example.com/'), ...pathWarnings(parseConfig({}))]).toEqual([]);
});

test('an entry of HOLDFAST_OUTGOING_ALLOW with a login is not quoted', () => {
  const error = errorOf(() => parseConfig({ HOLDFAST_OUTGOING_ALLOW: 'a.internal, http://u:sec@h' })) as Error;
  expect(error.message).toContain('HOLDFAST_OUTGOING_ALLOW: ');
  expect(error.message).not.toContain('sec');
});
