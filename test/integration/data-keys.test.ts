import { randomUUID } from 'node:crypto';
import { describe, expect, jest, test } from '@jest/globals';
import { rewrapKeys } from '../../src/cli/admin/rewrap-keys.ts';
import { rotateKey, rotateStackKeys } from '../../src/cli/admin/rotate-data-keys.ts';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { createEncryptionKeyRepository } from '../../src/shared/secrets/encryption-key-repository.ts';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { createMasterKeyRepository } from '../../src/shared/secrets/master-key-repository.ts';
import { openMasterKeys } from '../../src/shared/secrets/open-master-keys.ts';
import { tryMasterKeys } from '../../src/shared/secrets/try-master-keys.ts';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';
import { createDeletedStackRepository } from '../../src/workers/stacks/deleted-stack-repository.ts';
import { runAdminWith } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { keyRingOf } from '../support/key-ring.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import {
  createTestApp,
  createTestDatabase,
  masterKeys,
  type TestApp,
  testApp,
  testReplica,
} from '../support/test-app.ts';
import { createHook } from '../support/webhooks.ts';

const app = testApp();
const replica = testReplica(app);

const ring = keyRingOf(masterKeys);
const base64 = (text: string) => Buffer.from(text).toString('base64');
const post = (on: TestApp, stack: TestStack, call: string, body: object) =>
  ok(on.call('POST', `${stack.path}/${call}`, { auth: stack.auth, body }));

async function encrypt(stack: TestStack, text: string, on = app): Promise<string> {
  return (await post(on, stack, 'encrypt', { plaintext: base64(text) })).json.ciphertext;
}

async function decrypt(stack: TestStack, ciphertext: string, on = app): Promise<string> {
  return Buffer.from((await post(on, stack, 'decrypt', { ciphertext })).json.plaintext, 'base64').toString();
}

/** Id of the data key that a ciphertext names. */
const keyOf = (ciphertext: string): string => Buffer.from(ciphertext, 'base64').subarray(1, 17).toString('hex');

const nameOf = ({ organization, project, stack }: TestStack): string => `${organization}/${project}/${stack}`;

/** Runs `holdfast admin` in this process with the given master keys. */
async function admin(on: TestApp, keys: string, command: string, ...args: string[]) {
  const [printed, refused]: [string[], string[]] = [[], []];
  jest.spyOn(console, 'log').mockImplementation((line: string) => void printed.push(line));
  jest.spyOn(console, 'error').mockImplementation((line: string) => void refused.push(line));
  const config = parseConfig({
    HOLDFAST_DATABASE_URL: on.database.url,
    HOLDFAST_DATA_DIR: on.dataDir,
    HOLDFAST_MASTER_KEYS: keys,
    HOLDFAST_LOG_LEVEL: 'silent',
  });
  try {
    const code = await runCommandLine(['admin', command, ...args], () => config);
    return { code, printed, refused: refused.join('\n') };
  } finally {
    jest.restoreAllMocks();
  }
}
const keysOf = (on: TestApp) => createEncryptionKeyRepository(on.context.db);

async function idOf(stack: TestStack): Promise<string> {
  const row = await app.context.stacks.find(stack);
  return (row as { id: string }).id;
}

describe('a rotated data key', () => {
  test('is used by every replica from then on, and older ciphertexts stay readable', async () => {
    const [stack, other] = [await createStack(app), await createStack(app)];
    const replicas = [app, replica];
    const before = await Promise.all(replicas.map((on) => encrypt(stack, 'before', on)));
    const untouched = await encrypt(other, 'other');
    expect(new Set(before.map(keyOf)).size).toBe(1);
    const run = await runAdminWith(
      { HOLDFAST_MASTER_KEYS: masterKeys },
      app,
      'rotate-data-keys',
      '--stack',
      nameOf(stack),
    );
    expect(run).toMatchObject({ code: 0, stdout: 'New data keys for 1 stacks.\n' });
    const after = await Promise.all(replicas.map((on) => encrypt(stack, 'after', on)));
    expect(new Set(after.map(keyOf)).size).toBe(1);
    expect(after.map(keyOf)).not.toContain(keyOf(before[0] as string));
    for (const on of replicas) {
      for (const ciphertext of before) expect(await decrypt(stack, ciphertext, on)).toBe('before');
      for (const ciphertext of after) expect(await decrypt(stack, ciphertext, on)).toBe('after');
    }
    expect(keyOf(await encrypt(other, 'x'))).toBe(keyOf(untouched));
  });

  test('loses no ciphertext while two replicas encrypt and decrypt', async () => {
    const stack = await createStack(app);
    const id = await idOf(stack);
    const rotations = 25;
    let isRotating = true;
    const made: { text: string; ciphertext: string }[] = [];
    const work = async (on: TestApp, reader: TestApp, name: string): Promise<void> => {
      for (let at = 0; isRotating; at++) {
        const text = `${name}-${at}`;
        const { json } = await post(on, stack, 'batch-encrypt', { plaintexts: [base64(text), base64(text)] });
        for (const ciphertext of json.ciphertexts as string[]) made.push({ text, ciphertext });
        expect(await decrypt(stack, json.ciphertexts[0], reader)).toBe(text);
      }
    };
    const rotate = async (): Promise<void> => {
      // The first encryption on each replica creates version 1 at the same time.
      while (made.length < 8) await new Promise(setImmediate);
      const repositories = [keysOf(app), keysOf(replica)];
      for (let at = 0; at < rotations; at++) {
        // Two at once: one of them may find the other's.
        const both = await Promise.all(repositories.map((keys) => rotateKey(keys, ring, id)));
        expect(both).toEqual([true, true]);
        const found = made.length;
        while (made.length < found + 2) await new Promise(setImmediate);
      }
    };
    const workers = [app, replica].flatMap((on, at) => [work(on, replica, `a${at}`), work(on, app, `b${at}`)]);
    await Promise.all([rotate().finally(() => (isRotating = false)), ...workers]);
    expect(new Set(made.map(({ ciphertext }) => keyOf(ciphertext))).size).toBeGreaterThan(rotations / 2);
    // A process with an empty cache reads them all.
    await using fresh = await createTestApp({ database: app.database, dataDir: app.dataDir });
    const ciphertexts = made.map(({ ciphertext }) => ciphertext);
    const { json } = await post(fresh, stack, 'batch-decrypt', { ciphertexts });
    for (const { text, ciphertext } of made) expect(json.plaintexts[ciphertext]).toBe(base64(text));
    const versions = await query<{ version: number }>(
      app,
      'select version from encryption_keys where stack_id = $1 order by version',
      [id],
    );
    expect(versions.map(({ version }) => version)).toEqual(versions.map((_, at) => at + 1));
  });

  test('can be created for one stack, an organization, or all; stacks without a key get none', async () => {
    await using database = await createTestDatabase();
    await using own = await createTestApp({ database });
    const stacks = [await createStack(own), await createStack(own), await createStack(own)] as const;
    for (const stack of stacks.slice(0, 2)) await encrypt(stack, 'x', own);
    const keys = keysOf(own);
    const versions = async (): Promise<(number | null)[]> =>
      Promise.all(
        stacks.map(
          async (stack) =>
            (await keys.findCurrent((await own.context.stacks.find(stack))?.id as string))?.version ?? null,
        ),
      );
    const { identity } = own.context;
    const organization = await identity.findOrganization(stacks[1].organization);
    const scope = { kind: 'organization', organizationId: organization?.id as string } as const;
    expect(await rotateStackKeys(keys, ring, scope, 1)).toBe(1);
    expect(await versions()).toEqual([1, 2, null]);
    expect(await rotateStackKeys(keys, ring, { kind: 'all-stacks' }, 1)).toBe(2);
    expect(await versions()).toEqual([2, 3, null]);
    expect(await rotateKey(keys, ring, null)).toBe(false);
    expect(await rotateKey(keys, ring, randomUUID())).toBe(false);
  });

  test('is wrapped again, with all earlier versions, when the master key changes', async () => {
    await using database = await createTestDatabase();
    const [oldKey, newKey] = [KeyRing.generate().replace(/^[^:]+/, 'old'), KeyRing.generate().replace(/^[^:]+/, 'new')];
    await using before = await createTestApp({ database, masterKeys: oldKey });
    const stack = await createStack(before);
    const ciphertexts: string[] = [];
    for (let version = 1; version <= 3; version++) {
      ciphertexts.push(await encrypt(stack, `v${version}`, before));
      await rotateStackKeys(keysOf(before), keyRingOf(oldKey), { kind: 'all-stacks' });
    }
    const outcome = await rewrapKeys(keysOf(before), keyRingOf(`${newKey},${oldKey}`), 2);
    expect(outcome).toEqual({ rewrapped: 4, lost: [] });
    await using after = await createTestApp({ database, masterKeys: newKey });
    for (const [at, ciphertext] of ciphertexts.entries())
      expect(await decrypt(stack, ciphertext, after)).toBe(`v${at + 1}`);
    expect(await decrypt(stack, await encrypt(stack, 'new', after), after)).toBe('new');
  });

  test('is used by a deleted stack, too, when it is restored, and no other master key is needed then', async () => {
    await using database = await createTestDatabase();
    const [oldKey, newKey] = [KeyRing.generate().replace(/^[^:]+/, 'old'), KeyRing.generate().replace(/^[^:]+/, 'new')];
    const settings = { HOLDFAST_DELETED_STACK_DAYS: '7' };
    await using before = await createTestApp({ database, settings, masterKeys: oldKey });
    const [stack, purged] = [await createStack(before), await createStack(before)];
    const leaked = await encrypt(stack, 'leaked', before);
    await encrypt(purged, 'x', before);
    const remove = async (of: TestStack): Promise<string> => {
      const { id } = (await ok(before.call('GET', of.path, { auth: of.auth }))).json;
      await ok(before.call('DELETE', `${of.path}?force=true`, { auth: of.auth }));
      return `/api/orgs/${of.organization}/deleted-stacks/${id}`;
    };
    const path = await remove(stack);
    const purgedPath = await remove(purged);
    await ok(before.call('DELETE', purgedPath, { auth: purged.auth }));

    expect(await rotateStackKeys(keysOf(before), keyRingOf(oldKey), { kind: 'all-stacks' })).toBe(1);
    expect(await rewrapKeys(keysOf(before), keyRingOf(`${newKey},${oldKey}`))).toEqual({ rewrapped: 2, lost: [] });
    await using after = await createTestApp({ database, settings, masterKeys: newKey });
    await ok(after.call('POST', `${path}/restore`, { auth: stack.auth, body: {} }));
    expect(await decrypt(stack, leaked, after)).toBe('leaked');
    const next = await encrypt(stack, 'next', after);
    expect(keyOf(next)).not.toBe(keyOf(leaked));
    expect(await decrypt(stack, next, after)).toBe('next');
  });

  test('is deleted with its stack, and so are all earlier versions', async () => {
    const stack = await createStack(app);
    const id = await idOf(stack);
    const ciphertext = await encrypt(stack, 'x');
    await rotateKey(keysOf(app), ring, id);
    await encrypt(stack, 'y');
    await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
    // It is also unavailable between the deletion and the sweep.
    const late = { stackId: id, version: 3, wrapped: ring.wrap(Buffer.alloc(32), id) };
    expect(await keysOf(app).insert(late)).toBe(false);
    expect(await rotateStackKeys(keysOf(app), ring, { kind: 'stack', stackId: id })).toBe(0);
    await createStackDeletion(app.context)();
    expect(await createDeletedStackRepository(app.context.db).count()).toBe(0);
    expect(await query(app, 'select id from encryption_keys where stack_id = $1', [id])).toEqual([]);
    expect((await app.call('POST', `${stack.path}/decrypt`, { auth: stack.auth, body: { ciphertext } })).status).toBe(
      404,
    );
  });
});

test('a data key older than HOLDFAST_DATA_KEY_DAYS is replaced at the next encryption', async () => {
  await using aging = await createTestApp({
    database: app.database,
    dataDir: app.dataDir,
    settings: { HOLDFAST_DATA_KEY_DAYS: '30' },
  });
  const stack = await createStack(app);
  const id = await idOf(stack);
  const age = (days: number) =>
    query(app, `update encryption_keys set created_at = now() - make_interval(days => $2) where stack_id = $1`, [
      id,
      days,
    ]);
  const first = await encrypt(stack, 'first', aging);
  await age(29);
  expect(keyOf(await encrypt(stack, 'x', aging))).toBe(keyOf(first));
  await age(31);
  // Off by default.
  expect(keyOf(await encrypt(stack, 'x'))).toBe(keyOf(first));
  const [second, third] = await Promise.all([encrypt(stack, 'second', aging), encrypt(stack, 'third', aging)]);
  expect(keyOf(second)).toBe(keyOf(third));
  expect(keyOf(second)).not.toBe(keyOf(first));
  expect(keyOf(await encrypt(stack, 'x'))).toBe(keyOf(second));
  for (const [text, ciphertext] of Object.entries({ first, second, third }))
    expect(await decrypt(stack, ciphertext, replica)).toBe(text);
});

describe('the admin commands', () => {
  test('report invalid requests in a sentence', async () => {
    const stack = await createStack(app);
    const refusals: [string[], string][] = [
      [[], 'use one of --stack'],
      [['--all', '--documents'], 'use one of --stack'],
      [['--stack', 'nonsense'], 'not of the form organization/project/stack'],
      [['--stack', `${stack.organization}/proj/none`], 'there is no stack'],
      [['--organization', 'nobodys'], 'there is no organization'],
    ];
    for (const [args, sentence] of refusals) {
      const { code, refused } = await admin(app, masterKeys, 'rotate-data-keys', ...args);
      expect([code, refused]).toEqual([1, expect.stringContaining(sentence)]);
    }
    const { code, refused } = await admin(app, '', 'check-keys');
    expect([code, refused]).toEqual([
      1,
      expect.stringContaining('set HOLDFAST_MASTER_KEYS to the same value as on the servers'),
    ]);
  });

  test('that encrypt do so only with a key that a server has used', async () => {
    await using database = await createTestDatabase();
    const key = (id: string) => KeyRing.generate().replace(/^[^:]+/, id);
    const [known, other] = [key('known'), key('other')];
    await using own = await createTestApp({ database, masterKeys: known });
    await encrypt(await createStack(own), 'x', own);
    const read = () =>
      Promise.all([
        query(own, 'select id from master_keys'),
        query(own, 'select master_key_id as id, version from encryption_keys'),
      ]);
    const before = await read();
    for (const keys of [other, `${other},${known}`])
      for (const args of [['rotate-data-keys', '--all'], ['rewrap-keys']] as [string, string?][]) {
        const { code, refused } = await admin(own, keys, args[0], ...args.slice(1).map(String));
        expect([keys, code, refused]).toEqual([keys, 1, expect.stringContaining('has used master key "other"')]);
      }
    expect(await read()).toEqual(before);
    const looking = await openMasterKeys(`${other},${known}`, {
      ...{ config: own.context.config, rows: createMasterKeyRepository(own.context.db), registers: false },
      wait: { waitMs: 0, logger: own.context.logger },
    });
    expect(() => looking.ring.wrap(Buffer.alloc(32), null)).toThrow('has used master key "other"');
    expect((await admin(own, `${known},${other}`, 'rotate-data-keys', '--all')).code).toBe(0);
  });

  test('that only look register no key, so that another one may have its id', async () => {
    await using database = await createTestDatabase();
    const key = (id: string) => KeyRing.generate().replace(/^[^:]+/, id);
    const [first, tried, used] = [key('k1'), key('k2'), key('k2')];
    await using before = await createTestApp({ database, masterKeys: first });
    await encrypt(await createStack(before), 'x', before);
    for (const command of ['check-keys', 'scrub']) {
      const { code, refused } = await admin(before, `${first},${tried}`, command);
      expect([command, code, refused]).toEqual([command, 0, '']);
    }
    expect(await query(before, 'select id from master_keys')).toEqual([{ id: 'k1' }]);
    await (await createTestApp({ database, masterKeys: `${first},${used}` }))[Symbol.asyncDispose]();
    const { refused } = await admin(before, `${first},${tried}`, 'check-keys');
    expect(refused).toContain('Master key "k2" in HOLDFAST_MASTER_KEYS is not the one that was used');
  });

  test('count the secrets of webhooks for their master key', async () => {
    await using database = await createTestDatabase();
    const [oldKey, newKey] = [KeyRing.generate().replace(/^[^:]+/, 'old'), KeyRing.generate().replace(/^[^:]+/, 'new')];
    await using before = await createTestApp({ database, masterKeys: oldKey });
    const stack = await createStack(before);
    await createHook(before, stack, 'organization', { payloadUrl: 'https://8.8.8.8/', secret: 'hunter2' });
    await encrypt(stack, 'x', before);
    expect((await rewrapKeys(keysOf(before), keyRingOf(`${newKey},${oldKey}`))).rewrapped).toBe(1);
    const { code, printed } = await admin(before, `${newKey},${oldKey}`, 'check-keys');
    expect([code, printed.flatMap((text) => text.split('\n')).sort()]).toEqual([
      0,
      ['Master key new: 1 data keys.', 'Master key old: 0 data keys, 1 secrets of webhooks.'],
    ]);
    await using after = await createTestApp({ database, masterKeys: newKey });
    const rows = createMasterKeyRepository(after.context.db);
    const { faults } = await tryMasterKeys(newKey, { config: after.context.config, rows });
    expect(faults).toEqual([expect.stringContaining('Master key "old" is not in')]);
  });

  test('name the stacks whose master key is lost, and show no key', async () => {
    await using database = await createTestDatabase();
    await using lost = await createTestApp({ database, masterKeys: KeyRing.generate().replace(/^[^:]+/, 'lost') });
    await using own = await createTestApp({ database });
    const [gone, kept] = [await createStack(lost), await createStack(own)];
    await encrypt(gone, 'x', lost);
    await encrypt(kept, 'y', own);
    const { code, printed, refused } = await admin(own, masterKeys, 'check-keys');
    expect(code).toBe(1);
    expect(printed.flatMap((text) => text.split('\n')).sort()).toEqual(
      [`Master key ${ring.currentId}: 1 data keys.`, 'Master key lost: 1 data keys.'].sort(),
    );
    expect(refused).toBe(
      'holdfast: 1 data keys cannot be unwrapped:\n' +
        `  ${nameOf(gone)}, version 1: Master key "lost" is not in HOLDFAST_MASTER_KEYS`,
    );
  });
});
