import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { EventGaps } from '../../src/api/events/event-gaps.ts';
import { EventWaits } from '../../src/api/events/event-waits.ts';
import { query } from '../support/database.ts';
import { createStack, gzipped, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { contractAccept, createTestApp, type TestResponse, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { cancel, complete } from '../support/update-calls.ts';

const app = testApp({ settings: { eventHoldMs: 0 } });
let stack: TestStack;
let update: RunningUpdate;

async function begin(): Promise<void> {
  stack = await createStack(app);
  update = await startUpdate(app, stack);
}

const event = (sequence: number) => ({
  sequence,
  timestamp: 1_700_000_000,
  stdoutEvent: { message: `m${sequence}`, color: 'raw' },
});
const send = (events: readonly object[] | string): Promise<TestResponse> =>
  app.call('POST', `${update.path}/events/batch`, {
    auth: update.lease,
    body: typeof events === 'string' ? events : { events },
  });
const read = async (token?: string): Promise<{ sequences: number[]; token: string | null; text: string }> => {
  const suffix = token === undefined ? '' : `?continuationToken=${token}`;
  const { json, text } = await ok(app.call('GET', `${update.path}/events${suffix}`, { auth: stack.auth }));
  return {
    sequences: json.events.map((one: { sequence: number }) => one.sequence),
    token: json.continuationToken,
    text,
  };
};

describe('recording', () => {
  test('batches out of order and repeated are read once each, by sequence, from 0', async () => {
    await begin();
    for (const batch of [[4, 5], [0, 1], [2, 3, 4], [0, 1], []]) await ok(send(batch.map(event)));
    expect((await read()).sequences).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test('the first event with a sequence number counts', async () => {
    await begin();
    await ok(send([event(0)]));
    await ok(send([{ sequence: 0, timestamp: 1, cancelEvent: {} }]));
    expect((await read()).text).toContain('stdoutEvent');
    expect((await read()).text).not.toContain('cancelEvent');
  });

  test('three batches in flight, gzipped, are all kept', async () => {
    await begin();
    const batch = (from: number) =>
      app.call('POST', `${update.path}/events/batch`, {
        auth: update.lease,
        ...gzipped({ events: Array.from({ length: 50 }, (_, index) => event(from + index)) }),
      });
    for (const { status } of await Promise.all([batch(100), batch(0), batch(50)])) expect(status).toBe(204);
    expect((await read()).sequences).toHaveLength(150);
  });

  test('unknown fields and types are kept unchanged', async () => {
    await begin();
    const text =
      '{"sequence":0,"timestamp":1,"laterEvent":{"n":1.0,"big":9007199254740993,"__proto__":{"a":[]},"d":null}}';
    await ok(send(`{"unheardOf":1,"events":[ ${text} ]}`));
    expect((await read()).text).toContain(text.slice(1));
  });

  test.each([
    ['no JSON', '{'],
    ['no events', '{}'],
    ['events that are no array', '{"events":{}}'],
    ['an event that is not an object', '{"events":[1]}'],
    ['an event without sequence', '{"events":[{"timestamp":1}]}'],
    ['a timestamp that is a text', '{"events":[{"sequence":0,"timestamp":"1","cancelEvent":{}}]}'],
    ['a timestamp with a fraction', '{"events":[{"sequence":0,"timestamp":1.5,"cancelEvent":{}}]}'],
    ['a negative sequence after a good one', '{"events":[{"sequence":0},{"sequence":-1}]}'],
  ])('a batch with %s is 400 and adds nothing', async (_name, body) => {
    await begin();
    const response = await send(body);
    expect([response.status, response.json.code]).toEqual([400, 400]);
    expect((await read()).sequences).toEqual([]);
  });

  test('after the end of the update it returns 403', async () => {
    await begin();
    await ok(send([event(0)]));
    await ok(cancel(app, stack, update));
    expect((await send([event(1)])).status).toBe(403);
    expect((await read()).sequences).toEqual([0]);
  });

  test('a summary’s changes are in the history', async () => {
    await begin();
    const summaryEvent = { durationSeconds: 1, resourceChanges: { create: 2, same: 1 }, isPreview: false };
    await ok(send([event(0), { sequence: 1, timestamp: 1, summaryEvent }]));
    await ok(complete(app, update));
    const { json } = await ok(app.call('GET', `${stack.path}/updates`, { auth: stack.auth }));
    expect(json.updates[0].resourceChanges).toEqual({ create: 2, same: 1 });
  });
});

describe('reading', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  test('an event is found by its payload, whatever is beside it, and has one type', async () => {
    await begin();
    const members = ['"cancelEvent":null,', '"traceId":"x",', '"type":"resourcePreEvent",', '"type":null,'];
    const texts = members.map((text, at) => `{"sequence":${at},"timestamp":1,${text}"resourcePreEvent":{}}`);
    await ok(send(`{"events":[${texts.join(',')}]}`));
    const options = { auth: stack.auth, accept: contractAccept };
    const found = await ok(app.call('GET', `${update.path}/events?type=resourcePreEvent`, options));
    const type = 'resourcePreEvent';
    expect(found.json.events).toMatchObject(members.map((_, sequence) => ({ sequence, type, resourcePreEvent: {} })));
    expect(found.text.match(/"type"/g)).toHaveLength(members.length);
  });

  test('each event has its type, which is the name of its payload', async () => {
    await begin();
    await ok(send([event(0), { sequence: 1, timestamp: 1, type: 'own', resourcePreEvent: {} }]));
    const options = { auth: stack.auth, accept: contractAccept };
    const { json } = await ok(app.call('GET', `${update.path}/events`, options));
    expect(json.events).toEqual([
      { type: 'stdoutEvent', ...event(0) },
      { sequence: 1, timestamp: 1, type: 'own', resourcePreEvent: {} },
    ]);
  });

  test('the token is the last sequence; an empty page repeats it while the update runs, and omits it afterwards', async () => {
    await begin();
    expect(await read()).toMatchObject({ sequences: [], token: '-1' });
    await ok(send([event(0), event(1)]));
    expect(await read()).toMatchObject({ sequences: [0, 1], token: '1' });
    expect(await read('1')).toMatchObject({ sequences: [], token: '1' });
    expect(await read('0')).toMatchObject({ sequences: [1], token: '1' });
    expect(await read('-1')).toMatchObject({ sequences: [0, 1] });
    await ok(complete(app, update));
    expect(await read('0')).toMatchObject({ sequences: [1], token: '1' });
    expect(await read('1')).toMatchObject({ sequences: [], token: null });
  });

  test('a page of a running update ends before a gap that a late batch may fill', async () => {
    await begin();
    // No time passes, however slow the machine is.
    const { note } = EventGaps.prototype;
    const stopped = jest.spyOn(EventGaps.prototype, 'note').mockImplementation(function (this: EventGaps, id, highest) {
      return note.call(this, id, highest, 0);
    });
    const pageOf = async (suffix: string) =>
      (await ok(app.call('GET', `${update.path}/events?${suffix}`, { auth: stack.auth }))).json.events.length;
    await ok(send([event(2), event(3)]));
    expect(await read()).toMatchObject({ sequences: [], token: '-1' });
    await ok(send([event(0)]));
    expect(await read()).toMatchObject({ sequences: [0], token: '0' });
    expect(await read('0')).toMatchObject({ sequences: [], token: '0' });
    expect(await pageOf('order=desc')).toBe(3);
    expect(await pageOf('type=stdoutEvent')).toBe(3);
    await ok(send([event(1)]));
    expect(await read('0')).toMatchObject({ sequences: [1, 2, 3], token: '3' });
    await ok(send([event(9)]));
    expect(await read('3')).toMatchObject({ sequences: [], token: '3' });
    await ok(complete(app, update));
    expect(await read('3')).toMatchObject({ sequences: [9], token: '9' });
    expect(stopped).toHaveBeenCalled();
  });

  test('the contract’s clients read what is stored at once, whatever their sequences', async () => {
    await begin();
    const options = { auth: stack.auth, accept: contractAccept };
    const events = async () => (await ok(app.call('GET', `${update.path}/events`, options))).json;
    await ok(send([10, 20, 30].map(event)));
    expect(await events()).toMatchObject({
      events: [10, 20, 30].map((sequence) => ({ sequence })),
      continuationToken: '30',
    });
  });

  test('an empty page of a running update waits for events of any process, its end, or that of the process', async () => {
    await begin();
    const waits = jest.spyOn(EventWaits.prototype, 'next');
    await using held = await createTestApp({
      database: app.database,
      dataDir: app.dataDir,
      settings: { eventHoldMs: 3_600_000 },
    });
    const wait = async (token: number) => {
      const before = waits.mock.calls.length;
      const page = ok(held.call('GET', `${update.path}/events?continuationToken=${token}`, { auth: stack.auth }));
      await until(() => waits.mock.calls.length > before, 'the call waits');
      return { page };
    };
    const first = await wait(-1);
    await ok(send([event(0)]));
    expect((await first.page).json).toMatchObject({ events: [event(0)], continuationToken: '0' });
    const second = await wait(0);
    await ok(complete(app, update));
    expect((await second.page).json).toEqual({ events: [], continuationToken: '0' });
    await begin();
    const last = await wait(-1);
    await held.app.close();
    expect((await last.page).json).toEqual({ events: [], continuationToken: '-1' });
  });

  test('long streams are split into pages without gaps or repeats', async () => {
    await begin();
    await query(
      app,
      `insert into engine_events (update_id, sequence, event) select $1, i, '{"sequence":' || i || ',"timestamp":1,"cancelEvent":{}}' from generate_series(0, 1233) i`,
      [update.id],
    );
    await ok(complete(app, update));
    const seen: number[] = [];
    for (let token: string | null | undefined; token !== null; ) {
      const page = await read(token);
      seen.push(...page.sequences);
      token = page.token;
    }
    expect(seen).toEqual(Array.from({ length: 1234 }, (_, index) => index));
  });

  test('a token that is not a sequence number returns 400; unknown filters and codes of types are ignored', async () => {
    await begin();
    const get = (parameters: string) => app.call('GET', `${update.path}/events?${parameters}`, { auth: stack.auth });
    for (const token of ['x', '-2', '1.5', '99999999999999999999'])
      expect((await get(`continuationToken=${token}`)).status).toBe(400);
    // `pulumi stack history events --event-type 3`
    for (const parameters of [
      'type=3',
      'type=3&type=stdoutEvent',
      'type=&urn=u&include_non_activated=true&continuationToken=',
    ])
      expect((await get(parameters)).status).toBe(200);
  });
});
