import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { createStack, gzipped, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { complete } from '../support/update-calls.ts';
import { head, WireServer } from '../support/wire.ts';

const mib = 1024 * 1024;
const app = testApp();
let server: WireServer;
beforeAll(async () => {
  server = await WireServer.listen(app);
});

/** The most characters of text, and the most rows, that Postgres sent in response to one statement while `work` ran. */
async function largestRead<T>(work: () => Promise<T>): Promise<{ result: T; chars: number; rows: number }> {
  let chars = 0;
  let rows = 0;
  const note = ({ rows: found }: pg.QueryResult): void => {
    let sum = 0;
    for (const row of found) for (const value of Object.values(row)) if (typeof value === 'string') sum += value.length;
    chars = Math.max(chars, sum);
    rows = Math.max(rows, found.length);
  };
  const { prototype } = pg.Client;
  const original = prototype.query as (...args: unknown[]) => Promise<pg.QueryResult>;
  const noting = async function (this: pg.Client, ...args: unknown[]): Promise<pg.QueryResult> {
    const answer = await original.apply(this, args);
    note(answer);
    return answer;
  };
  prototype.query = noting as typeof prototype.query;
  try {
    return { result: await work(), chars, rows };
  } finally {
    prototype.query = original as typeof prototype.query;
    expect(app.context.db.poolState().waiting).toBe(0);
  }
}

/** The lower limit shows that the read was seen. */
function expectBetween(chars: number, above: number, below: number): void {
  expect(chars).toBeGreaterThan(above);
  expect(chars).toBeLessThan(below);
}

describe('events', () => {
  test('are returned in pages of about 1 MiB, whatever was stored, and completely', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const event = (sequence: number, bytes: number) => ({
      sequence,
      timestamp: 1,
      stdoutEvent: { message: 'x'.repeat(bytes), color: 'raw' },
    });
    for (let from = 0; from < 40; from += 10) {
      const events = Array.from({ length: 10 }, (_, index) => event(from + index, 200_000));
      await ok(app.call('POST', `${update.path}/events/batch`, { auth: update.lease, ...gzipped({ events }) }));
    }
    // As stored before the limit existed.
    const old = JSON.stringify({ stdoutEvent: { message: 'é'.repeat(3_000_000), color: 'raw' }, sequence: 40 });
    await query(
      app,
      `insert into engine_events (update_id, sequence, event, type) values ($1, 40, $2, 'stdoutEvent')`,
      [update.id, old],
    );
    await ok(complete(app, update));
    const { result, chars } = await largestRead(async () => {
      const pages: { sequences: number[]; bytes: number; text: string }[] = [];
      for (let token: string | null = ''; token !== null; ) {
        const page = await ok(
          app.call('GET', `${update.path}/events?continuationToken=${token}`, { auth: stack.auth }),
        );
        const sequences = page.json.events.map((one: { sequence: number }) => one.sequence);
        pages.push({ sequences, bytes: page.bytes.length, text: page.text });
        token = page.json.continuationToken;
      }
      return pages;
    });
    expect(result.flatMap(({ sequences }) => sequences)).toEqual(Array.from({ length: 41 }, (_, index) => index));
    for (const { sequences, bytes } of result) if (!sequences.includes(40)) expect(bytes).toBeLessThan(1.1 * mib);
    expectBetween(chars, 0.4 * mib, 1.1 * mib);
    const last = result.find(({ sequences }) => sequences.includes(40));
    expect(last?.sequences).toEqual([40]);
    expect(last?.text).toContain(`{"type":"stdoutEvent",${old.slice(1)}`);
  });

  test('of one resource are found without reading the others', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const events = [
      { sequence: 0, resourcePreEvent: { metadata: { urn: 'urn:a', op: 'same' } } },
      { sequence: 1, diagnosticEvent: { urn: 'urn:b', message: 'x'.repeat(500_000) } },
      { sequence: 2, policyEvent: { resourceUrn: 'urn:a' } },
      { sequence: 3, type: 'own', diagnosticEvent: { urn: 'urn:a\u00e9', metadata: { urn: 'urn:a' } } },
      { sequence: 4, cancelEvent: {} },
    ];
    await ok(app.call('POST', `${update.path}/events/batch`, { auth: update.lease, body: { events } }));
    const read = async (urn: string) =>
      (await ok(app.call('GET', `${update.path}/events?urn=${urn}`, { auth: stack.auth }))).json;
    const { result, rows } = await largestRead(() => read('urn:a'));
    expect(result.events.map((one: { sequence: number; type: string }) => [one.sequence, one.type])).toEqual([
      [0, 'resourcePreEvent'],
      [2, 'policyEvent'],
      [3, 'own'],
    ]);
    expect(rows).toBe(3);
    expect((await read('urn:b')).continuationToken).toBe('1');
    expect((await read('urn:c')).events).toEqual([]);
  });

  test('above the limit are replaced by a warning, and the others of their batch are kept', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const metadata = { op: 'update', urn: 'urn:large', detail: 'x'.repeat(2 * mib) };
    const events = [
      { sequence: 0, timestamp: 5, stdoutEvent: { message: 'before', color: 'raw' } },
      { sequence: 1, timestamp: 6, resOutputsEvent: { metadata } },
      { sequence: 2, timestamp: 7, summaryEvent: { resourceChanges: { same: 3 }, note: 'x'.repeat(2 * mib) } },
    ];
    await ok(app.call('POST', `${update.path}/events/batch`, { auth: update.lease, ...gzipped({ events }) }));
    const { json } = await ok(app.call('GET', `${update.path}/events`, { auth: stack.auth }));
    expect(json.events[0]).toMatchObject(events[0] as object);
    expect(json.events[1]).toEqual({
      type: 'diagnosticEvent',
      sequence: 1,
      timestamp: 6,
      diagnosticEvent: {
        urn: 'urn:large',
        message: expect.stringMatching(/resOutputsEvent .* 1 .* 2097\d+ bytes.* 1048576/),
        color: 'never',
        severity: 'warning',
      },
    });
    expect(json.events[2].sequence).toBe(2);
    await ok(complete(app, update));
    const latest = await ok(app.call('GET', `${stack.path}/updates/latest`, { auth: stack.auth }));
    expect(latest.json.info.resourceChanges).toEqual({ same: 3 });
  });
});

describe('histories', () => {
  test('with large configurations are read in chunks and returned completely', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(complete(app, update));
    const config = { 'ns:key': { string: `"\\é😀${'z'.repeat(20_000)}`, secret: false } };
    for (let index = 0; index < 60; index++) {
      const created = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: { config } }));
      await ok(app.call('POST', `${stack.path}/update/${created.json.updateID}/cancel`, { auth: stack.auth }));
    }
    // As stored before the limit existed.
    const large = { a: '😀'.repeat(1_200_000), b: ['"', '\\'] };
    const message = `"${'日\n'.repeat(600_000)}`;
    await query(app, `update updates set config = $2, message = $3 where id = $1`, [
      update.id,
      JSON.stringify(large),
      message,
    ]);
    const { result, chars } = await largestRead(() => app.call('GET', `${stack.path}/updates`, { auth: stack.auth }));
    expect(result.status).toBe(200);
    const { updates } = result.json;
    expect(updates).toHaveLength(61);
    expect(updates[0].config).toEqual(config);
    expect(updates[60]).toMatchObject({ updateID: update.id, config: large, message, resourceCount: 0 });
    expectBetween(chars, 0.9 * mib, 1.1 * mib);
    const one = await largestRead(() => app.call('GET', update.path, { auth: stack.auth }));
    expect(one.result.json.message).toBe(message);
    expectBetween(one.chars, 0.2 * mib, 1.1 * mib);
    const page = await ok(app.call('GET', `${stack.path}/updates?pageSize=10&page=7`, { auth: stack.auth }));
    expect(page.json.updates.map((info: { updateID: string }) => info.updateID)).toEqual([update.id]);
  });
});

describe('stacks', () => {
  test('with many tags are read in chunks of about 1 MiB and all listed', async () => {
    const organization = `tags${process.pid}`;
    const auth = `token ${await app.createUser(organization, 'admin')}`;
    const tags = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`tag${index}`, 'v'.repeat(256)]));
    for (let index = 0; index < 25; index++)
      await ok(app.call('POST', `/api/stacks/${organization}/p`, { auth, body: { stackName: `s${index}`, tags } }));
    const { result, chars } = await largestRead(async () => {
      const names: string[] = [];
      let pages = 0;
      for (let token: string | undefined = ''; token !== undefined; pages++) {
        const { json } = await ok(app.call('GET', `/api/user/stacks?continuationToken=${token}`, { auth }));
        names.push(...json.stacks.map((one: { stackName: string }) => one.stackName));
        token = json.continuationToken;
      }
      return { names: names.length, distinct: new Set(names).size, pages };
    });
    expect(result).toEqual({ names: 25, distinct: 25, pages: 1 });
    expectBetween(chars, 0.9 * mib, 1.1 * mib);
  });
});

describe('limits', () => {
  let stack: TestStack;
  beforeAll(async () => {
    stack = await createStack(app);
  });
  const large = 'x'.repeat(mib);

  test.each([
    ['metadata.message', { metadata: { message: `${large}x` } }],
    ['metadata.environment', { metadata: { environment: { a: large } } }],
    ['config', { config: { a: large } }],
    ['The program \\(name, runtime, main and description\\)', { name: large }],
  ])('%s of an update', async (field, body) => {
    const answer = await app.call('POST', `${stack.path}/update`, { auth: stack.auth, body });
    expect(answer.status).toBe(413);
    expect(answer.json.message).toMatch(new RegExp(`${field}.* has 1048[56]\\d\\d bytes; at most 1048576`));
  });

  test('a secret to encrypt has its own setting', async () => {
    await using other = await createTestApp({ settings: { maxSecretBytes: 1000 } });
    const small = await createStack(other);
    const send = (bytes: number) =>
      other.call('POST', `${small.path}/batch-encrypt`, {
        auth: small.auth,
        body: { plaintexts: ['', Buffer.alloc(bytes).toString('base64')] },
      });
    expect((await ok(send(1000))).json.ciphertexts).toHaveLength(2);
    const refused = await send(1001);
    expect(refused.status).toBe(413);
    expect(refused.json.message).toContain('plaintexts[1] has 1001 bytes; at most 1000 are encrypted');
  });
});

describe('bodies of control calls', () => {
  test('are counted while they arrive: one that exceeds the budget is not read', async () => {
    await using small = await createTestApp({ settings: { bufferedBodyBytes: 8 * mib } });
    const wire = await WireServer.listen(small);
    const stack = await createStack(small);
    const begin = async (sent: number) => {
      const connection = wire.connect();
      const headers = {
        Authorization: stack.auth,
        Accept: 'application/vnd.pulumi+9',
        'Content-Type': 'application/json',
      };
      await connection.write(head('POST', `${stack.path}/batch-decrypt`, { headers, length: 6 * mib }));
      await connection.write(Buffer.alloc(sent, 0x20));
      return connection;
    };
    const connections = [await begin(5 * mib)];
    await until(() => small.context.bodyBuffer.arrivals.bytes >= 5 * mib, 'the first has arrived');
    for (let index = 0; index < 5; index++) connections.push(await begin(64 * 1024));
    // Small calls continue meanwhile.
    for (let round = 0; round < 5; round++)
      await ok(small.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body: { plaintext: 'AAAA' } }));
    expect(small.context.bodyBuffer.arrivals.bytes).toBeLessThanOrEqual(8 * mib);
    for (const connection of connections) connection.destroy();
    await until(() => small.context.bodyBuffer.arrivals.bytes === 0, 'the whole budget is free');
  });

  test('of a large batch release their budget with the response, complete or not', async () => {
    const stack = await createStack(app);
    const plaintexts = Array.from({ length: 4_000 }, (_, index) => Buffer.alloc(400, `${index} `).toString('base64'));
    const call = (name: string, body: object) =>
      app.call('POST', `${stack.path}/${name}`, { auth: stack.auth, ...gzipped(body) });
    const { ciphertexts } = (await ok(call('batch-encrypt', { plaintexts }))).json;
    const twice = [...ciphertexts, ...ciphertexts];
    const answer = await ok(call('batch-decrypt', { ciphertexts: twice }));
    expect(Object.entries(answer.json.plaintexts)).toEqual(
      ciphertexts.map((text: string, index: number) => [text, plaintexts[index]]),
    );
    const foreign = await createStack(app);
    const refused = await app.call('POST', `${foreign.path}/batch-decrypt`, {
      auth: foreign.auth,
      ...gzipped({ ciphertexts }),
    });
    expect(refused.status).toBe(400);
    expect(app.context.bufferedBodyBytes.used).toBe(0);
    // A client that disconnects before reading the response.
    const connection = server.connect();
    const body = gzipSync(JSON.stringify({ ciphertexts }));
    const headers = {
      Authorization: stack.auth,
      Accept: 'application/vnd.pulumi+9',
      'Content-Type': 'application/json',
      'Content-Encoding': 'gzip',
    };
    await connection.write(head('POST', `${stack.path}/batch-decrypt`, { headers, length: body.length }));
    await connection.write(body);
    await until(() => app.context.bufferedBodyBytes.used > 0, 'the body is held');
    connection.destroy();
    await until(
      () => app.context.bufferedBodyBytes.used === 0 && app.context.bodyBuffer.arrivals.bytes === 0,
      'all is free',
    );
  });

  test('that create a stack keep the bytes of their state', async () => {
    const organization = `state${process.pid}`;
    const auth = `token ${await app.createUser(organization, 'admin')}`;
    const state = `{"version":3,"deployment":{"manifest":{},"resources":[],"note":"${'s'.repeat(5 * mib)}","n":1.0,"big":9007199254740993}}`;
    const body = Buffer.from(`{"stackName":"dev", "state": ${state} ,"tags":{"a":"b"}}`);
    await ok(app.call('POST', `/api/stacks/${organization}/p`, { auth, body }));
    const exported = await ok(app.call('GET', `/api/stacks/${organization}/p/dev/export`, { auth }));
    expect(exported.text === state).toBe(true);
    expect((await ok(app.call('GET', `/api/stacks/${organization}/p/dev`, { auth }))).json.tags).toEqual({ a: 'b' });
  });
});
