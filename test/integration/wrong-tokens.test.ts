import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hashToken, mintToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { startBackgroundTasks } from '../../src/workers/background-tasks.ts';
import { query } from '../support/database.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { type NotedStatements, noteStatements } from '../support/statement-count.ts';
import { createTestApp, type TestApp, type TestResponse } from '../support/test-app.ts';
import { until } from '../support/until.ts';

/** The free look-ups per minute of one address, and of all addresses together. */
const free = 20;
const settings = { invalidTokensPerMinute: free, HOLDFAST_TRUSTED_PROXIES: '127.0.0.1' };

let app: TestApp;
let replica: TestApp;
let statements: NotedStatements;
let replicaStatements: NotedStatements;
beforeAll(async () => {
  app = await createTestApp({ settings });
  replica = await createTestApp({
    settings: { ...settings, sweepSeconds: 1 },
    database: app.database,
    dataDir: app.dataDir,
  });
  statements = noteStatements(app);
  replicaStatements = noteStatements(replica);
});
afterAll(async () => {
  await replica[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
});

let addresses = 0;
const newAddress = () => `192.0.2.${++addresses}`;
const wrong = () => mintToken('hf-').token;
const ofOperator = () => `operator-${randomBytes(12).toString('hex')}`;

function from(address: string, token: string, of = app): Promise<TestResponse> {
  return of.call('GET', '/api/user', { auth: `token ${token}`, headers: { 'x-forwarded-for': address } });
}

/** Look-ups since the last call. */
function taken(noted = statements): { single: number; batches: number; reports: number; other: string[] } {
  const names = noted.begun.splice(0);
  noted.answered.length = 0;
  const count = (name: string) => names.filter((each) => each === name).length;
  const known = ['identity.findCaller', 'updates.findInStack', 'credentials.listTokens', 'credentials.listLeases'];
  return {
    single: count('identity.findCaller') + count('updates.findInStack'),
    batches: count('credentials.listTokens') + count('credentials.listLeases'),
    reports: count('failedLookups.report'),
    other: names.filter((name) => ![...known, 'failedLookups.report'].includes(name)),
  };
}

/** Uses up the free look-ups of the address. */
async function exhaust(address: string, of = app): Promise<void> {
  await Promise.all(Array.from({ length: 2 * free }, () => from(address, wrong(), of)));
}

/** Lets the window of a per-minute limit pass. */
function freeSince(began: number): number {
  return free + Math.ceil(((performance.now() - began) * free) / 60_000);
}

async function grant(token: string, login = `user-${randomBytes(4).toString('hex')}`): Promise<void> {
  const { identity } = app.context;
  const user = await identity.ensureUser(login);
  await identity.insertToken({ userId: user.id, hash: hashToken(token), description: '', expiresAt: null });
}

describe('tokens that need no look-up', () => {
  test('a mistyped one is rejected without a statement', async () => {
    const token = wrong();
    await grant(token);
    taken();
    const typo = `${token.slice(0, 10)}${token[10] === 'x' ? 'y' : 'x'}${token.slice(11)}`;
    for (const scheme of ['token', 'Bearer'])
      expect((await app.call('GET', '/api/user', { auth: `${scheme} ${typo}` })).status).toBe(401);
    expect(taken()).toEqual({ single: 0, batches: 0, reports: 0, other: [] });
    expect((await from(newAddress(), token)).status).toBe(200);
  });

  test('a recently rejected one is not looked up again', async () => {
    const address = newAddress();
    const token = wrong();
    const began = performance.now();
    taken();
    for (let call = 0; call < 100; call++) expect((await from(address, token)).status).toBe(401);
    const { single } = taken();
    expect(single).toBeGreaterThan(0);
    expect(single).toBeLessThanOrEqual(1 + (performance.now() - began) / 2_000);
  });

  test('one that is created right after it was rejected is accepted soon', async () => {
    const address = newAddress();
    const token = wrong();
    expect((await from(address, token)).status).toBe(401);
    await grant(token);
    await until(async () => (await from(address, token)).status === 200, 'it is let in');
  });
});

describe('an address with many wrong tokens', () => {
  test('costs its free look-ups, then a few statements for all', async () => {
    const address = newAddress();
    const count = 400;
    const began = performance.now();
    taken();
    const answers = await Promise.all(Array.from({ length: count }, () => from(address, wrong())));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`))).toEqual(
      new Set([`401 ${answers[0]?.text}`]),
    );
    const { single, batches, reports, other } = taken();
    expect(single).toBeGreaterThan(0);
    expect(single).toBeLessThanOrEqual(freeSince(began));
    const seconds = (performance.now() - began) / 1_000;
    // A batch every 200 ms, of up to 500.
    expect(batches).toBeGreaterThan(0);
    expect(batches).toBeLessThanOrEqual(2 + seconds * 5);
    expect(reports).toBeLessThanOrEqual(1 + seconds);
    expect(other).toEqual([]);
  });

  test.each([
    ['ours', wrong],
    ["an operator's own", ofOperator],
  ])('has its valid tokens accepted, even if seen for the first time: %s', async (_name, make) => {
    const address = newAddress();
    const token = make();
    await grant(token);
    await exhaust(address);
    const flood = Array.from({ length: 300 }, () => from(address, wrong()));
    const began = performance.now();
    taken();
    expect((await from(address, token)).status).toBe(200);
    const { single } = taken();
    expect(single).toBeLessThanOrEqual(1 + freeSince(began) - free);
    await Promise.all(flood);
  });

  test('has a known token accepted without another look-up', async () => {
    const address = newAddress();
    const token = wrong();
    await grant(token);
    expect((await from(newAddress(), token)).status).toBe(200);
    await exhaust(address);
    taken();
    expect((await from(address, token)).status).toBe(200);
    expect(taken()).toMatchObject({ single: 1, batches: 0 });
  });

  test('a revoked token is rejected at once, however well known', async () => {
    const address = newAddress();
    const token = wrong();
    await grant(token);
    for (const where of [app, replica]) expect((await from(address, token, where)).status).toBe(200);
    await query(app, 'update api_tokens set revoked_at = now() where token_hash = $1', [hashToken(token)]);
    for (const where of [app, replica]) expect((await from(address, token, where)).status).toBe(401);
    await exhaust(address);
    for (const where of [app, replica]) expect((await from(address, token, where)).status).toBe(401);
  });

  test('guesses at operator tokens are limited to a few per second: the others get 429 with a delay', async () => {
    const address = newAddress();
    await exhaust(address);
    const answers = await Promise.all(Array.from({ length: 200 }, () => from(address, ofOperator())));
    const late = answers.filter(({ status }) => status === 429);
    expect(late.length).toBeGreaterThan(0);
    expect(late.length).toBeLessThan(answers.length);
    expect(answers.filter(({ status }) => status !== 429 && status !== 401)).toEqual([]);
    expect(late[0]?.headers['retry-after']).toBe('1');
    expect(late[0]?.json.code).toBe(429);
    // Nobody else has to wait.
    const token = ofOperator();
    await grant(token);
    expect((await from(newAddress(), token)).status).toBe(200);
  });

  test('is known to the other replicas', async () => {
    const address = newAddress();
    const level = async () => {
      const rows = await query<{ level: number }>(app, 'select level from failed_lookups where source = $1', [
        `address ${address}`,
      ]);
      return rows[0]?.level ?? 0;
    };
    await until(async () => {
      await exhaust(address);
      return (await level()) > 1.5 * free;
    }, 'what one replica has seen is in the database');
    taken(replicaStatements);
    // A few failures of its own make a replica ask what the others have seen.
    await Promise.all(Array.from({ length: free / 4 }, () => from(address, wrong(), replica)));
    await until(() => replicaStatements.answered.includes('failedLookups.report'), 'the other replica has asked');
    taken(replicaStatements);
    await from(address, wrong(), replica);
    expect(taken(replicaStatements)).toMatchObject({ single: 0, batches: 1 });
  });

  test('all addresses together have ten times as many', async () => {
    const began = performance.now();
    taken();
    const many = Array.from({ length: 20 * free }, () => newAddress());
    for (let at = 0; at < many.length; at += 50)
      await Promise.all(many.slice(at, at + 50).map((address) => from(address, wrong())));
    const { single } = taken();
    expect(single).toBeLessThanOrEqual(10 * freeSince(began));
    const token = ofOperator();
    await grant(token);
    expect((await from(newAddress(), token)).status).toBe(200);
  });

  test('is a network of 64 bits with IPv6', async () => {
    await exhaust('2001:db8:1:2::1');
    taken();
    const began = performance.now();
    await from('2001:db8:1:2:ffff::9', wrong());
    expect(taken()).toMatchObject({ batches: 1 });
    expect(freeSince(began)).toBeGreaterThan(free);
  });
});

describe('leases', () => {
  let stack: TestStack;
  let update: RunningUpdate;
  beforeAll(async () => {
    stack = await createStack(app);
    update = await startUpdate(app, stack);
  });

  const renew = (lease: string, address: string, of = app, path = update.path) =>
    of.call('POST', `${path}/renew_lease`, {
      auth: `update-token ${lease}`,
      headers: { 'x-forwarded-for': address },
      body: { duration: 300 },
    });
  const guess = () => mintToken('lease-').token;

  test('an invalid lease returns 403 without a statement', async () => {
    taken();
    for (const text of [wrong(), 'x', `lease-${'x'.repeat(49)}`, `lease-${'x'.repeat(20)}`])
      expect((await renew(text, newAddress())).status).toBe(403);
    expect((await renew(guess(), newAddress(), app, `${stack.path}/update/nonsense`)).status).toBe(403);
    expect(taken()).toEqual({ single: 0, batches: 0, reports: 0, other: [] });
  });

  test('guesses cost few statements, and a live lease from the same address stays valid on every replica', async () => {
    const address = newAddress();
    const lease = update.lease.replace('update-token ', '');
    const began = performance.now();
    taken();
    const guesses = Array.from({ length: 300 }, (_, call) =>
      renew(guess(), address, app, call % 2 === 0 ? update.path : `${stack.path}/update/${randomUUID()}`),
    );
    const answers = await Promise.all(guesses);
    const { single, batches } = taken();
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([403]));
    expect(single).toBeLessThanOrEqual(freeSince(began));
    expect(batches).toBeLessThanOrEqual(2 + ((performance.now() - began) / 1_000) * 5);
    for (const where of [app, replica]) {
      const flood = Array.from({ length: 100 }, () => renew(guess(), address, where));
      expect((await renew(lease, address, where)).status).toBe(200);
      await Promise.all(flood);
    }
  });

  test('more than can be looked up return 503, never 403: a lease among them may be valid', async () => {
    const address = newAddress();
    for (const round of [1, 2]) await Promise.all(Array.from({ length: free * round }, () => renew(guess(), address)));
    const answers = await Promise.all(Array.from({ length: 900 }, () => renew(guess(), address)));
    const late = answers.filter(({ status }) => status === 503);
    expect(late.length).toBeGreaterThan(0);
    expect(late[0]?.headers['retry-after']).toBe('1');
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([403, 503]));
  });

  test('one whose update was cancelled returns 403 each time, for one look-up', async () => {
    const other = await createStack(app);
    const dead = await startUpdate(app, other);
    const address = newAddress();
    const lease = dead.lease.replace('update-token ', '');
    expect((await renew(lease, address, app, dead.path)).status).toBe(200);
    await ok(app.call('POST', `${dead.path}/cancel`, { auth: other.auth }));
    const began = performance.now();
    taken();
    for (let call = 0; call < 20; call++) expect((await renew(lease, address, app, dead.path)).status).toBe(403);
    expect(taken().single).toBeLessThanOrEqual(1 + (performance.now() - began) / 2_000);
  });
});

describe('reporting', () => {
  test('the log has an occasional line per address, with no part of a token', async () => {
    const lines: string[] = [];
    await using logging = await createTestApp({ settings, log: { write: (line) => lines.push(line) } });
    const tokens = Array.from({ length: 60 }, () => wrong());
    const began = performance.now();
    await Promise.all(tokens.map((token) => from('192.0.2.255', token, logging)));
    const own = lines.filter((line) => line.includes('wrong credentials'));
    expect(own.length).toBeGreaterThan(0);
    expect(own.length).toBeLessThanOrEqual(1 + (performance.now() - began) / 10_000);
    expect(JSON.parse(own[0] as string)).toMatchObject({ address: '192.0.2.255', credential: 'token', kind: 'hf-' });
    const text = lines.join('');
    expect(tokens.filter((token) => text.includes(token.slice(3, 9)))).toEqual([]);
  });

  test('metrics count rejections by reason, and statements', async () => {
    const { text } = await ok(app.call('GET', '/metrics'));
    for (const reason of ['malformed', 'remembered', 'unknown', 'too-many'])
      expect(text).toMatch(
        new RegExp(`holdfast_credentials_rejected_total\\{credential="token",reason="${reason}"\\} [1-9]`),
      );
    expect(text).toMatch(/holdfast_credential_lookups_total\{credential="lease",mode="batch"\} [1-9]/);
  });

  test('the counts of addresses are stored without hashes or tokens, and swept', async () => {
    const rows = await query<{ source: string }>(app, 'select source from failed_lookups');
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.filter(({ source }) => !/^(address [0-9a-f.:/]+|kind (hf-|lease-|other))$/.test(source))).toEqual([]);
    await query(
      app,
      `update failed_lookups set updated_at = now() - interval '11 minutes' where source like 'address%'`,
    );
    startBackgroundTasks(replica.context);
    await until(async () => {
      const left = await query(app, `select 1 from failed_lookups where updated_at < now() - interval '10 minutes'`);
      return left.length === 0;
    }, 'they are swept');
  });
});
