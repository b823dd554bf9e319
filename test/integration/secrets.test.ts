import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { rewrapKeys } from '../../src/cli/admin/rewrap-keys.ts';
import { createEncryptionKeyRepository } from '../../src/shared/secrets/encryption-key-repository.ts';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { query } from '../support/database.ts';
import { keyRingOf } from '../support/key-ring.ts';
import { createStack, gzipped, ok, type TestStack } from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp } from '../support/test-app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app[Symbol.asyncDispose]());

const base64 = (text: string) => Buffer.from(text).toString('base64');
const post = (stack: TestStack, path: string, body: object, on = app) =>
  on.call('POST', `${stack.path}/${path}`, { auth: stack.auth, body });

async function encrypt(stack: TestStack, plaintext: string, on = app): Promise<string> {
  return (await ok(post(stack, 'encrypt', { plaintext: base64(plaintext) }, on))).json.ciphertext;
}

async function decrypt(stack: TestStack, ciphertext: string, on = app): Promise<string> {
  const { json } = await ok(post(stack, 'decrypt', { ciphertext }, on));
  return Buffer.from(json.plaintext, 'base64').toString();
}

describe('one value', () => {
  test.each(['', 'plain', 'ünïcödé 🙂', '\0\n', 'x'.repeat(1_000_000)])('is decrypted unchanged', async (plaintext) => {
    const stack = await createStack(app);
    expect(await decrypt(stack, await encrypt(stack, plaintext))).toBe(plaintext);
  });

  test('bytes that are not text are decrypted unchanged as well', async () => {
    const stack = await createStack(app);
    const plaintext = Buffer.from([0, 255, 128, 1]).toString('base64');
    const { json } = await ok(post(stack, 'encrypt', { plaintext }));
    expect((await ok(post(stack, 'decrypt', json))).json).toEqual({ plaintext });
  });

  test('the same plaintext has a different ciphertext each time', async () => {
    const stack = await createStack(app);
    expect(await encrypt(stack, 'same')).not.toBe(await encrypt(stack, 'same'));
  });
});

describe('batches', () => {
  test('encrypt keeps order and length; decrypt answers under the exact strings of the request', async () => {
    const stack = await createStack(app);
    const texts = Array.from({ length: 1_000 }, (_, index) => `secret-${index}`);
    const encrypted = await ok(
      app.call('POST', `${stack.path}/batch-encrypt`, {
        auth: stack.auth,
        ...gzipped({ plaintexts: texts.map(base64) }),
      }),
    );
    const ciphertexts: string[] = encrypted.json.ciphertexts;
    expect(ciphertexts).toHaveLength(1_000);
    const asked = [...ciphertexts].reverse();
    const decrypted = await ok(
      app.call('POST', `${stack.path}/batch-decrypt`, {
        auth: stack.auth,
        ...gzipped({ ciphertexts: [...asked, asked[0]] }),
      }),
    );
    expect(Object.keys(decrypted.json.plaintexts).sort()).toEqual([...ciphertexts].sort());
    expect(ciphertexts.map((ciphertext) => decrypted.json.plaintexts[ciphertext])).toEqual(texts.map(base64));
  });

  test('may be empty', async () => {
    const stack = await createStack(app);
    expect((await ok(post(stack, 'batch-encrypt', { plaintexts: [] }))).json).toEqual({ ciphertexts: [] });
    expect((await ok(post(stack, 'batch-decrypt', { ciphertexts: [] }))).json).toEqual({ plaintexts: {} });
  });

  test('one ciphertext of another stack fails the whole batch, with a message that names no plaintext', async () => {
    const [stack, other] = [await createStack(app), await createStack(app)];
    const ciphertexts = [await encrypt(stack, 'mine'), await encrypt(other, 'theirs')];
    const response = await post(stack, 'batch-decrypt', { ciphertexts });
    expect([response.status, response.json.code]).toEqual([400, 400]);
    expect(response.text).not.toContain(base64('mine'));
  });
});

describe('rejected calls', () => {
  test('a ciphertext of another stack, or of an earlier stack of the same name, returns 400', async () => {
    const [stack, other] = [await createStack(app), await createStack(app)];
    const ciphertext = await encrypt(stack, 'mine');
    await encrypt(other, 'x');
    expect((await post(other, 'decrypt', { ciphertext })).status).toBe(400);
    await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
    expect((await post(stack, 'decrypt', { ciphertext })).status).toBe(404);
    await ok(
      app.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body: { stackName: 'dev' } }),
    );
    expect((await post(stack, 'decrypt', { ciphertext })).status).toBe(400);
  });

  test('a ciphertext with any byte changed, removed or added returns 400', async () => {
    const stack = await createStack(app);
    const bytes = Buffer.from(await encrypt(stack, 'secret'), 'base64');
    const changed = [...bytes.keys()].map((at) => {
      const copy = Buffer.from(bytes);
      copy[at] = (copy[at] as number) ^ 1;
      return copy;
    });
    for (const wrong of [...changed, bytes.subarray(0, -1), bytes.subarray(0, 20), Buffer.concat([bytes, bytes])])
      expect((await post(stack, 'decrypt', { ciphertext: wrong.toString('base64') })).status).toBe(400);
  });

  test.each(['', 'QQ', 'Q===', 'QQ==\n', 'Q-_=', 'é', '%%%%'])('ciphertext %j returns 400', async (ciphertext) => {
    const stack = await createStack(app);
    expect((await post(stack, 'decrypt', { ciphertext })).status).toBe(400);
    expect((await post(stack, 'batch-decrypt', { ciphertexts: [ciphertext] })).status).toBe(400);
  });

  test('plaintext that is not base64 returns 400, and the response does not repeat it', async () => {
    const stack = await createStack(app);
    const response = await post(stack, 'encrypt', { plaintext: 'hunter2-hunter2!' });
    expect(response.status).toBe(400);
    expect(response.text).not.toContain('hunter2');
  });

  test('a stack that does not exist returns 404', async () => {
    const stack = await createStack(app);
    const none = { ...stack, path: `${stack.path}x` };
    for (const [path, body] of [
      ['encrypt', { plaintext: 'QQ==' }],
      ['decrypt', { ciphertext: 'QQ==' }],
      ['batch-encrypt', { plaintexts: ['QQ=='] }],
      ['batch-decrypt', { ciphertexts: ['QQ=='] }],
    ] as const)
      expect((await post(none, path, body)).status).toBe(404);
  });
});

describe('master keys', () => {
  test('are rotated by putting a new one first: old ciphertexts decrypt, new stacks use the new key', async () => {
    await using database = await createTestDatabase();
    const [oldKey, newKey] = [KeyRing.generate().replace(/^[^:]+/, 'old'), KeyRing.generate().replace(/^[^:]+/, 'new')];
    let stack: TestStack;
    let ciphertext: string;
    {
      await using before = await createTestApp({ database, masterKeys: oldKey });
      stack = await createStack(before);
      ciphertext = await encrypt(stack, 'long-lived', before);
    }
    {
      await using during = await createTestApp({ database, masterKeys: `${newKey},${oldKey}` });
      expect(await decrypt(stack, ciphertext, during)).toBe('long-lived');
      const fresh = await createStack(during);
      const made = await encrypt(fresh, 'fresh', during);
      const ids = await query(during, 'select master_key_id as id from encryption_keys order by created_at');
      expect(ids).toEqual([{ id: 'old' }, { id: 'new' }]);
      await using only = await createTestApp({ database, masterKeys: newKey });
      expect(await decrypt(fresh, made, only)).toBe('fresh');
      // Not the caller's fault, and it must not reveal which keys exist.
      const lost = await post(stack, 'decrypt', { ciphertext }, only);
      expect(lost.status).toBe(500);
      expect(lost.text).not.toContain('old');
    }
  });
});

describe('rewrapping keys', () => {
  const ringOf = (id: string) => KeyRing.generate().replace(/^[^:]+/, id);
  const rewrap = (on: TestApp, ring: string, pageSize?: number) =>
    rewrapKeys(createEncryptionKeyRepository(on.context.db), keyRingOf(ring), pageSize);

  test('makes the old master key unnecessary: old ciphertexts are decrypted with the new one alone', async () => {
    await using database = await createTestDatabase();
    const [oldKey, newKey] = [ringOf('old'), ringOf('new')];
    await using before = await createTestApp({ database, masterKeys: oldKey });
    const stacks: [TestStack, string][] = [];
    for (let index = 0; index < 3; index++) {
      const stack = await createStack(before);
      stacks.push([stack, await encrypt(stack, `kept-${index}`, before)]);
    }
    expect(await rewrap(before, `${newKey},${oldKey}`)).toEqual({ rewrapped: 3, lost: [] });
    expect(await rewrap(before, `${newKey},${oldKey}`)).toEqual({ rewrapped: 0, lost: [] });
    await using after = await createTestApp({ database, masterKeys: newKey });
    for (const [index, [stack, ciphertext]] of stacks.entries()) {
      expect(await decrypt(stack, ciphertext, after)).toBe(`kept-${index}`);
    }
  });

  test('handles many keys, and skips and names those whose master key is missing', async () => {
    await using database = await createTestDatabase();
    const [lostKey, oldKey, newKey] = [ringOf('lost'), ringOf('old'), ringOf('new')];
    await using lost = await createTestApp({ database, masterKeys: lostKey });
    const lostStack = await createStack(lost);
    await encrypt(lostStack, 'x', lost);
    await using app = await createTestApp({ database, masterKeys: oldKey });
    const stack = await createStack(app);
    const ciphertext = await encrypt(stack, 'y', app);
    const old = keyRingOf(oldKey);
    for (let index = 0; index < 6; index++) {
      const stackId = randomUUID();
      await query(app, `insert into stacks (id, project_id, name) select $1, project_id, $2 from stacks limit 1`, [
        stackId,
        `many-${index}`,
      ]);
      const { masterKeyId, wrappedKey } = old.wrap(randomBytes(32), stackId);
      await query(app, 'insert into encryption_keys (stack_id, master_key_id, wrapped_key) values ($1, $2, $3)', [
        stackId,
        masterKeyId,
        wrappedKey,
      ]);
    }
    const outcome = await rewrap(app, `${newKey},${oldKey}`, 2);
    const reason = 'Master key "lost" is not in HOLDFAST_MASTER_KEYS';
    const owner = `${lostStack.organization}/proj/dev`;
    expect(outcome).toEqual({ rewrapped: 7, lost: [{ owner, version: 1, masterKeyId: 'lost', reason }] });
    const left = await query(
      app,
      'select master_key_id as id, count(*)::int from encryption_keys group by 1 order by 1',
    );
    expect(left).toEqual([
      { id: 'lost', count: 1 },
      { id: 'new', count: 7 },
    ]);
    await using after = await createTestApp({ database, masterKeys: newKey });
    expect(await decrypt(stack, ciphertext, after)).toBe('y');
  });
});

test('reporting that secrets were shown succeeds', async () => {
  const stack = await createStack(app);
  expect((await post(stack, 'decrypt/log-decryption', { secretName: 'a' })).status).toBe(204);
  expect((await post(stack, 'decrypt/log-batch-decryption', { commandName: 'pulumi stack' })).status).toBe(204);
  // The CLI leaves out an empty name.
  expect((await post(stack, 'decrypt/log-decryption', {})).status).toBe(204);
});
