import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redactor } from '../../src/cli/redaction/redactor.ts';
import { collectSupportBundle } from '../../src/cli/support/support-bundle.ts';
import { holdfastVersion } from '../../src/shared/platform/config/config.ts';
import { mintToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { runHoldfast } from '../support/admin.ts';
import { testApp } from '../support/test-app.ts';
import { configOf } from '../support/test-settings.ts';

const app = testApp();
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'holdfast-bundle-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Secrets that only their settings tell: nothing about them looks like one. */
const said = Array.from({ length: 13 }, (_, at) => `plainword/${String.fromCharCode(97 + at)}x`);
const ring = KeyRing.generate();
const settings = {
  HOLDFAST_DATABASE_URL: `postgres://holdfast:${encodeURIComponent(said[0] as string)}@db.internal:5432/holdfast?sslpassword=${encodeURIComponent(said[1] as string)}`,
  HOLDFAST_DATABASE_REPLICA_URL: `postgres://holdfast:${encodeURIComponent(said[2] as string)}@replica/holdfast`,
  HOLDFAST_REDIS_URL: `redis+sentinel://holdfast:${encodeURIComponent(said[3] as string)}@a:1/main?sentinelPassword=${encodeURIComponent(said[4] as string)}`,
  HOLDFAST_MASTER_KEYS: ring,
  HOLDFAST_OIDC_CLIENT_SECRET: said[5] as string,
  HOLDFAST_VAULT_TOKEN: said[6] as string,
  HOLDFAST_AUDIT_EXPORT_URL: `https://collector/in?token=${encodeURIComponent(said[7] as string)}`,
  HOLDFAST_AUDIT_EXPORT_TOKEN: said[8] as string,
  HOLDFAST_BUNDLE_PASSPHRASE: said[9] as string,
  HOLDFAST_S3_ENDPOINT: `https://minio:${encodeURIComponent(said[10] as string)}@s3.internal:9000`,
  AWS_SECRET_ACCESS_KEY: said[11] as string,
  AWS_SESSION_TOKEN: said[12] as string,
  HOLDFAST_LOG_LEVEL: 'debug',
};

const token = (prefix: string): string => mintToken(prefix).token;
const filler = 'QwErTy7890AsDfGh1234ZxCvBn5678';

/** Secrets by the lines of a log in which they stand. */
const lines: readonly (readonly [secret: string, line: string])[] = [
  ...said.map((word): [string, string] => [word, `a message that names ${word} in its middle`]),
  ...[ring.split(':')[1] as string, Buffer.alloc(32, 7).toString('base64')].map((key): [string, string] => [
    key,
    `k2:${key}`,
  ]),
  ...['hf-', 'hf-o-', 'pul-'].map((prefix): [string, string] => {
    const secret = token(prefix);
    return [secret, `{"level":"warn","msg":"refused ${secret}"}`];
  }),
  ['hunter-one', 'GET https://ada:hunter-one@git.internal/repo.git'],
  ['hunter-two', '{"headers":{"authorization":"Basic hunter-two","accept":"x"}}'],
  ['hunter-three', 'Authorization: token hunter-three'],
  ['hunter-four', 'authorization: Bearer hunter-four'],
  ['hunter-five', 'Authorization: update-token hunter-five'],
  ['hunter-six', '{"cookie":"__Host-holdfast=hunter-six; theme=dark"}'],
  ['hunter-seven', 'Set-Cookie: __Host-holdfast=hunter-seven; Path=/'],
  ['hunter-eight', '{"password":"hunter-eight"}'],
  ['hunter-nine', '{"msg":"{\\"password\\":\\"hunter-nine\\"}"}'],
  ['hunter-ten', 'PULUMI_CONFIG_PASSPHRASE=hunter-ten pulumi up'],
  ['hunter-eleven', 'PULUMI_ACCESS_TOKEN: hunter-eleven'],
  ['hunter-twelve', "clientSecret: 'hunter-twelve'"],
  ['hunter-thirteen', 'x-api-key: hunter-thirteen'],
  ['hunter-fourteen', 'GET /sign-in/provider/callback?code=hunter-fourteen&state=x'],
  ['hunter-fifteen', 'GET /a?state=hunter-fifteen'],
  ['hunter-sixteen', 'GET /blob?X-Amz-Signature=hunter-sixteen&a=b'],
  ['hunter-seventeen', 'GET /blob?X-Amz-Credential=hunter-seventeen'],
  ['hunter-eighteen', '{"secretAccessKey":"hunter-eighteen"}'],
  ['hunter-nineteen', 'postgres://u:hunter-nineteen@h/n refused'],
  ['hunter-twenty', '{"apiKey": "hunter-twenty"}'],
  ['hunter-21', 'accessToken=hunter-21'],
  ['AKIAABCDEFGHIJKLMNOP', 'key AKIAABCDEFGHIJKLMNOP is unknown'],
  [`ghp_${filler}`, `remote said ghp_${filler}`],
  [`github_pat_${filler}`, `remote said github_pat_${filler}`],
  [`glpat-${filler}`, `remote said glpat-${filler}`],
  [`xoxb-${filler}`, `hook xoxb-${filler}`],
  [`hvs.${filler}`, `vault refused hvs.${filler}`],
  [`sk-${filler}`, `key sk-${filler}`],
  [`npm_${filler}`, `npm_${filler}`],
  ['eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2ln', 'id token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2ln expired'],
  ['AGE-SECRET-KEY-1QQQQQQQQQQ', 'identity AGE-SECRET-KEY-1QQQQQQQQQQ'],
  ['AGE-SECRET-KEY-PQ-1QQQQQQQQQQ', 'identity AGE-SECRET-KEY-PQ-1QQQQQQQQQQ'],
  ['T0/B0/hunterpath', 'POST https://hooks.slack.com/services/T0/B0/hunterpath failed'],
  ['gldt-hunterhunter', 'remote said gldt-hunterhunter'],
  ['MIIEvQIBADAN', '-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADAN\\n-----END PRIVATE KEY-----'],
  [
    '0123456789abcdef0123456789abcdef0123456789abcdef',
    'password of the cluster 0123456789abcdef0123456789abcdef0123456789abcdef',
  ],
];

test('a bundle has versions, settings, findings, database and log, and none of 50 planted secrets', async () => {
  expect(lines.length).toBeGreaterThanOrEqual(50);
  const logFile = path.join(folder, 'holdfast.log');
  const openssl = ['-----BEGIN RSA PRIVATE KEY-----', 'hunterkeyone', 'hunterkeytwo', '-----END RSA PRIVATE KEY-----'];
  writeFileSync(logFile, [...lines.map(([, line]) => line), ...openssl].join('\n'));
  const load = () => configOf({ HOLDFAST_DATABASE_URL: app.database.url, HOLDFAST_DATA_DIR: app.dataDir });
  const bundle = await collectSupportBundle(load, { logFile, settings });
  const text = JSON.stringify(bundle);
  expect(lines.flatMap(([secret]) => (text.includes(secret) ? [secret] : []))).toEqual([]);
  expect(text).not.toContain('hunterkey');
  for (const { password } of [new URL(app.database.url)]) expect(text).not.toContain(`:${password}@`);
  expect(bundle).toMatchObject({
    kind: 'holdfast.support-bundle',
    version: 1,
    versions: { holdfast: holdfastVersion },
    settings: { HOLDFAST_LOG_LEVEL: 'debug', HOLDFAST_DATABASE_URL: '[set]', HOLDFAST_MASTER_KEYS: '[set]' },
    doctor: expect.arrayContaining([expect.objectContaining({ name: 'database', status: 'ok' })]),
    database: {
      postgres: expect.objectContaining({ fsync: 'off' }),
      migrations: expect.arrayContaining(['0001_platform']),
      sessions: expect.any(Array),
      jobs: [],
      slowStatements: null,
      tables: expect.any(Array),
      processes: expect.any(Array),
      tasks: expect.any(Array),
    },
  });
  // What says nothing about a secret stays.
  const log = bundle['log'] as string[];
  expect(log).toHaveLength(lines.length + 1);
  for (const word of ['in its middle', '"level":"warn"', 'git.internal', 'pulumi up'])
    expect(text).toContain(JSON.stringify(word).slice(1, -1));
});

test('members of data whose name says that they are secret are hidden', () => {
  const data = { webhook: { signingSecret: 'plain', tokens: 3, name: 'ci' }, list: [{ password: 'plain' }] };
  expect(new Redactor({}).data(data)).toEqual({
    webhook: { signingSecret: '[redacted]', tokens: 3, name: 'ci' },
    list: [{ password: '[redacted]' }],
  });
});

test('the command writes a file that only its user can read, also without a database', async () => {
  const file = path.join(folder, 'bundle.json');
  const env = { PATH: process.env['PATH'], HOLDFAST_DATA_DIR: folder, HOLDFAST_VAULT_TOKEN: 'hunter2hunter2' };
  const { code, stderr, stdout } = await runHoldfast(env, 'support-bundle', file, '--log', path.join(folder, 'none'));
  expect([code, stderr, stdout]).toEqual([0, '', expect.stringContaining(`Wrote ${file}.`)]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const text = readFileSync(file, 'utf8');
  expect(text).not.toContain('hunter2');
  expect(JSON.parse(text)).toMatchObject({ log: { missing: expect.stringContaining('ENOENT') }, database: {} });
});
