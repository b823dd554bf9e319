import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { OperatorError } from '../../src/shared/platform/errors/errors.ts';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import {
  type FakeService,
  fakeServices,
  setEnvironment,
  startFakeAws,
  startFakeVault,
} from '../../testkit/kms/fake-services.ts';
import { query } from '../support/database.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { configOf, type TestSettings } from '../support/test-settings.ts';
import { until } from '../support/until.ts';

const cleanUp: (() => void)[] = [];
afterEach(() => {
  for (const each of cleanUp.splice(0)) each();
  jest.restoreAllMocks();
});

/** Makes this process one that may use the services. Returns the settings. */
function use(...services: readonly FakeService[]): TestSettings {
  const environment = Object.assign({}, ...services.map((service) => service.environment)) as Record<string, string>;
  const entries = Object.entries(environment);
  const isSetting = ([name]: [string, string]): boolean => name.startsWith('HOLDFAST_');
  cleanUp.push(setEnvironment(Object.fromEntries(entries.filter((entry) => !isSetting(entry)))));
  return { ...Object.fromEntries(entries.filter(isSetting)), startWaitSeconds: 0 };
}

const base64 = (text: string) => Buffer.from(text).toString('base64');
const localKey = (id: string) => KeyRing.generate().replace(/^[^:]+/, id);

async function encrypt(on: TestApp, stack: TestStack, text: string): Promise<string> {
  const body = { plaintext: base64(text) };
  return (await ok(on.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body }))).json.ciphertext;
}

async function decrypt(on: TestApp, stack: TestStack, ciphertext: string): Promise<string> {
  const response = await ok(on.call('POST', `${stack.path}/decrypt`, { auth: stack.auth, body: { ciphertext } }));
  return Buffer.from(response.json.plaintext, 'base64').toString();
}

/** The message with which a process refuses to start. */
async function refusalOf(started: Promise<TestApp>): Promise<string> {
  const error = await started.then(
    async (app) => {
      await app[Symbol.asyncDispose]();
      return new Error('it started');
    },
    (thrown: unknown) => thrown as Error,
  );
  expect(error).toBeInstanceOf(OperatorError);
  return error.message;
}

/** Runs `holdfast admin` in this process. */
async function admin(
  { database, settings }: { database: TestDatabase; settings: TestSettings },
  masterKeys: string,
  command: string,
) {
  const lines: string[] = [];
  jest.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  jest.spyOn(console, 'error').mockImplementation((line: string) => void lines.push(line));
  const config = configOf({
    ...settings,
    HOLDFAST_DATABASE_URL: database.url,
    HOLDFAST_MASTER_KEYS: masterKeys,
    HOLDFAST_LOG_LEVEL: 'silent',
  });
  const code = await runCommandLine(['admin', command], () => config);
  jest.restoreAllMocks();
  return { code, lines };
}

describe.each(fakeServices)('a master key in %s', (_name, start) => {
  test('is made once, wrapped, and not needed again until the next start', async () => {
    await using service = await start();
    await using database = await createTestDatabase();
    const settings = use(service);
    const log: string[] = [];
    const masterKeys = `kms1:${service.addKey('main').url}`;
    const options = { database, masterKeys, settings, log: { write: (line: string) => void log.push(line) } };
    const apps = await Promise.all([createTestApp(options), createTestApp(options)]);
    await using one = apps[0];
    await using other = apps[1];
    const stack = await createStack(one);
    const ciphertext = await encrypt(one, stack, 'kept');
    expect(await query(one, 'select id, wrapped_key is not null as wrapped from master_keys')).toEqual([
      { id: 'kms1', wrapped: true },
    ]);
    const asked = service.kms.requests.length;
    await service.kms.close();
    // Running processes go on, also with stacks that have no key yet.
    expect(await decrypt(other, stack, ciphertext)).toBe('kept');
    const next = await createStack(other);
    expect(await decrypt(one, next, await encrypt(other, next, 'next'))).toBe('next');
    expect(service.kms.requests.length).toBe(asked);
    expect(await refusalOf(createTestApp(options))).toMatch(/^Master key "kms1": .* is not available/);
    // A start waits for the service.
    const waiting = createTestApp({ ...options, settings: { ...settings, startWaitSeconds: 600 } });
    await service.kms.listen();
    await using late = await waiting;
    expect(await decrypt(late, stack, ciphertext)).toBe('kept');
    expect(log.join('')).not.toContain(service.secret);
  });
});

test('a start waits for the token of Vault, which an agent writes', async () => {
  await using vault = await startFakeVault();
  const { HOLDFAST_VAULT_TOKEN: token, ...settings } = use(vault) as Record<string, string>;
  const folder = mkdtempSync(path.join(tmpdir(), 'hf-vault-'));
  const file = path.join(folder, 'token');
  const log: string[] = [];
  try {
    const waiting = createTestApp({
      masterKeys: `k1:${vault.addKey('main').url}`,
      settings: { ...settings, HOLDFAST_VAULT_TOKEN_FILE: file, startWaitSeconds: 600 },
      log: { write: (line: string) => void log.push(line) },
    });
    await until(async () => log.join('').includes('cannot be read: ENOENT'), 'the start waits for the file');
    writeFileSync(file, token as string);
    await using _app = await waiting;
  } finally {
    rmSync(folder, { recursive: true });
  }
});

describe('a process refuses to start', () => {
  test('with another, a disabled or a missing key of the KMS', async () => {
    await using vault = await startFakeVault();
    await using database = await createTestDatabase();
    const settings = use(vault);
    const { key, url } = vault.addKey('main');
    const start = (masterKeys: string, more: Record<string, string> = {}) =>
      createTestApp({ database, masterKeys, settings: { ...settings, ...more } });
    await (await start(`k1:${url}`))[Symbol.asyncDispose]();
    const other = await refusalOf(start(`k1:${vault.addKey('other').url}`));
    expect(other).toMatch(/team\/transit\/other .* does not unwrap what is stored .* was wrapped by .*transit\/main/);
    key.isEnabled = false;
    expect(await refusalOf(start(`k1:${url}`))).toMatch(/cannot be used: encryption key not found/);
    vault.kms.keys.clear();
    // A new one must not take its place.
    expect(await refusalOf(start(`k1:${url}`))).toMatch(/cannot be used/);
    const wrong = await refusalOf(start(`k1:${url}`, { HOLDFAST_VAULT_TOKEN: 'hvs.another-token' }));
    expect(wrong).toMatch(/permission denied/);
    expect(wrong).not.toContain('hvs.');
    expect(await refusalOf(start(`k1:${url}`, { HOLDFAST_VAULT_TOKEN_FILE: '/nowhere' }))).toMatch(
      /HOLDFAST_VAULT_TOKEN_FILE cannot be read: ENOENT/,
    );
  });

  test('with other bytes under the id of a key that was used, even if that was before canaries', async () => {
    await using vault = await startFakeVault();
    await using database = await createTestDatabase();
    const settings = use(vault);
    const [key, other] = [localKey('k1'), localKey('k1')];
    {
      await using app = await createTestApp({ database, masterKeys: key });
      await encrypt(app, await createStack(app), 'x');
      expect(await refusalOf(createTestApp({ database, masterKeys: other }))).toMatch(/"k1" .* is not the one/);
      await query(app, 'delete from master_keys');
      expect(await refusalOf(createTestApp({ database, masterKeys: other }))).toMatch(/"k1" .* is not the one/);
      const inKms = `k1:${vault.addKey('main').url}`;
      expect(await refusalOf(createTestApp({ database, masterKeys: inKms, settings }))).toMatch(/needs another id/);
    }
    await (await createTestApp({ database, masterKeys: key }))[Symbol.asyncDispose]();
    const inKms = `k1:${vault.addKey('main').url}`;
    expect(await refusalOf(createTestApp({ database, masterKeys: inKms, settings }))).toMatch(/needs another id/);
    expect(vault.kms.requests).toEqual([]);
  });
});

test('a master key that the database has lost in a failover wraps nothing more', async () => {
  await using vault = await startFakeVault();
  await using app = await createTestApp({ masterKeys: `k1:${vault.addKey('main').url}`, settings: use(vault) });
  const [kept, stack] = [await createStack(app), await createStack(app)];
  const ciphertext = await encrypt(app, kept, 'kept');
  await query(app, 'delete from master_keys');
  const body = { plaintext: base64('x') };
  expect((await app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body })).status).toBe(500);
  expect(await query(app, 'select count(*)::int as keys from encryption_keys')).toEqual([{ keys: 1 }]);
  expect(await decrypt(app, kept, ciphertext)).toBe('kept');
});

test('rewrap-keys moves data keys between keys of every kind, and goes on where it was stopped', async () => {
  await using vault = await startFakeVault();
  await using aws = await startFakeAws();
  await using database = await createTestDatabase();
  const settings = use(vault, aws);
  const inVault = vault.addKey('main');
  const ring = {
    local: localKey('local'),
    vault: `v:${inVault.url}`,
    aws: `a:${aws.addKey('main').url}`,
    last: localKey('last'),
  };
  const secrets: [TestStack, string, string][] = [];
  {
    await using app = await createTestApp({ database, masterKeys: ring.local, settings });
    for (const text of ['one', 'two', 'three']) {
      const stack = await createStack(app);
      secrets.push([stack, await encrypt(app, stack, text), text]);
    }
  }
  const check = async (masterKeys: string): Promise<void> => {
    await using app = await createTestApp({ database, masterKeys, settings });
    for (const [stack, ciphertext, text] of secrets) expect(await decrypt(app, stack, ciphertext)).toBe(text);
  };
  /** A server that has the new key behind the old one. */
  const learn = async (masterKeys: string) =>
    (await createTestApp({ database, masterKeys, settings }))[Symbol.asyncDispose]();
  const run = { database, settings };
  await learn(`${ring.local},${ring.vault}`);
  const moved = await admin(run, `${ring.vault},${ring.local}`, 'rewrap-keys');
  expect(moved).toMatchObject({ code: 0, lines: ['Rewrapped 3 data keys with master key v.', expect.anything()] });
  await check(ring.vault);

  // A rotated key: the old version may go once the master key is wrapped anew.
  inVault.key.rotate();
  expect(await admin(run, ring.vault, 'rewrap-keys')).toMatchObject({
    code: 0,
    lines: ['Rewrapped 0 data keys with master key v.', expect.stringMatching(/^Master key v was rewrapped by Vault/)],
  });
  inVault.key.minVersion = 2;
  await check(ring.vault);

  // One is left behind, as if the command had been killed; a server writes on with the mixed list.
  await learn(`${ring.vault},${ring.aws}`);
  expect((await admin(run, `${ring.aws},${ring.vault}`, 'rewrap-keys')).code).toBe(0);
  {
    await using app = await createTestApp({ database, masterKeys: `${ring.vault},${ring.aws}`, settings });
    const stack = await createStack(app);
    secrets.push([stack, await encrypt(app, stack, 'four'), 'four']);
    const keys = 'select master_key_id as id, count(*)::int from encryption_keys group by 1 order by 1';
    expect(await query(app, keys)).toEqual([
      { id: 'a', count: 3 },
      { id: 'v', count: 1 },
    ]);
  }
  expect((await admin(run, `${ring.aws},${ring.vault}`, 'rewrap-keys')).lines[0]).toMatch(/^Rewrapped 1 /);
  await vault.kms.close();
  await check(ring.aws);
  await learn(`${ring.aws},${ring.last}`);
  expect((await admin(run, `${ring.last},${ring.aws}`, 'rewrap-keys')).lines[0]).toMatch(/^Rewrapped 4 /);
  await aws.kms.close();
  await check(ring.last);
  const unreachable = await admin(run, `${ring.last},${ring.aws}`, 'check-keys');
  expect(unreachable).toMatchObject({
    code: 1,
    lines: [expect.stringMatching(/Master key "a": AWS KMS key .* not available: connect ECONNREFUSED/)],
  });
  expect(unreachable.lines.join()).not.toContain(aws.secret);
});
