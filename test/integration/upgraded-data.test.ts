import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createVersionRepository } from '../../src/shared/state/versions/version-repository.ts';
import { packEventBacklog } from '../../src/workers/events/pack-events.ts';
import { encodeVersions } from '../../src/workers/state/encode-versions.ts';
import { query } from '../support/database.ts';
import { createEncoder, exportVersions, importVersions, versionsOf } from '../support/encode-versions.ts';
import { countStored, insertEndedUpdate, readPages, sampleEvent, smallLimits } from '../support/packed-events.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

class Crash extends Error {
  override readonly name = 'Crash';
}

const versions = 5;
const events = Array.from({ length: 30 }, (_, at) => sampleEvent(at, { chars: 300 }));
const eventTexts = events.map(({ text }) => text);

let app: TestApp;
let stack: TestStack;
let states: string[];
const updates: string[] = [];

/** Statements and transactions left before the process crashes. */
let left = Number.POSITIVE_INFINITY;

/** Crashes between two statements, also those of a transaction, once `left` are used up; nothing happens after that. */
function withCrashes<T extends object>(target: T): T {
  const step = (): void => {
    if (left-- <= 0) throw new Crash('crash');
  };
  return new Proxy(target, {
    get: (object, name) => {
      const value: unknown = Reflect.get(object, name, object);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        step();
        const work = args[0];
        const given =
          name === 'inTransaction' && typeof work === 'function'
            ? [(tx: object) => (work as (tx: object) => unknown)(withCrashes(tx))]
            : args;
        const result: unknown = await value.apply(object, given);
        step();
        return result;
      };
    },
  });
}

/** Takes away what later releases added to the schema for packed events and encoded versions, and adds it as they do. */
async function upgrade(): Promise<void> {
  await query(
    app,
    `drop table checkpoint_pieces, version_pieces;
     alter table checkpoints drop column encode_at, drop column encoded_number;
     drop function note_piece_released, note_base_released;
     drop function keep_blob_of_piece cascade;
     drop table event_segments;
     drop function keep_blob_of_segment cascade;
     alter table updates drop column event_rows;`,
  );
  for (const name of ['0014_event_segments', '0015_version_pieces'])
    await query(app, await readFile(path.join(import.meta.dirname, `../../migrations/${name}.sql`), 'utf8'));
}

beforeAll(async () => {
  app = await createTestApp({ settings: { HOLDFAST_INLINE_BYTES: '600', eventPackDelaySeconds: 0 } });
  stack = await createStack(app);
  states = await importVersions(app, stack, versions);
  const { id } = (await ok(app.call('GET', stack.path, { auth: stack.auth }))).json as { id: string };
  for (let at = 0; at < 3; at++) updates.push(await insertEndedUpdate(app, id, events));
  // Before the imports, whose turn comes later.
  await query(app, `update updates set ended_at = now() - interval '1 hour' where kind = 'preview'`);
  await upgrade();
});
afterAll(() => app[Symbol.asyncDispose]());

/** Everything that was written before is read as it was. */
async function expectAllReadable(): Promise<void> {
  expect(await exportVersions(app, stack, versions)).toEqual(states);
  for (const update of updates) expect(await readPages(app, update)).toEqual(eventTexts);
}

/** Runs `work` again and again, one step further each time, until it ends. Returns how many times it crashed. */
async function crashingUntilDone(work: () => Promise<unknown>): Promise<number> {
  for (let crashes = 0; ; crashes++) {
    left = 1 + 6 * crashes;
    try {
      await work();
      if (left > 0) return crashes;
    } catch (error) {
      let cause: unknown = error;
      while (cause instanceof Error && !(cause instanceof Crash)) cause = cause.cause;
      if (!(cause instanceof Crash)) throw error;
    } finally {
      left = Number.POSITIVE_INFINITY;
    }
    await expectAllReadable();
  }
}

/** Runs `work` until it waits for its rate after the first of several, and stops it there. */
async function firstOf(work: (signal: AbortSignal) => Promise<unknown>, count: () => Promise<number>): Promise<number> {
  const stop = new AbortController();
  const running = until(async () => {
    await work(stop.signal);
    return stop.signal.aborted;
  }, 'the work is stopped');
  await until(async () => (await count()) > 0, 'the first is done');
  // Without a rate, the others would be done meanwhile.
  await expectAllReadable();
  await expectAllReadable();
  stop.abort();
  await running;
  return count();
}

test('events in rows become segments, at the set rate, whatever stops it in between', async () => {
  const contextAt = (backlogBytesPerSecond: number) => ({
    ...app.context,
    db: withCrashes(app.context.db),
    config: { ...app.context.config, eventPacking: { delaySeconds: 0, backlogBytesPerSecond } },
  });
  const countPacked = async (): Promise<number> => {
    const stored = await Promise.all(updates.map((update) => countStored(app, update)));
    return stored.filter(({ segments }) => segments > 0).length;
  };
  await expectAllReadable();
  expect(await firstOf((signal) => packEventBacklog(contextAt(1), signal, smallLimits), countPacked)).toBe(1);
  const hasRows = async (): Promise<boolean> =>
    (await Promise.all(updates.map((update) => countStored(app, update)))).some(({ rows }) => rows > 0);
  let crashes = 0;
  // The sessions of helpers have no name, like those of the release before: then nothing is packed in this round.
  while (await hasRows())
    crashes += await crashingUntilDone(() => packEventBacklog(contextAt(1e12), undefined, smallLimits));
  expect(crashes).toBeGreaterThan(3);
  await expectAllReadable();
});

test('whole versions become differences, at the set rate, whatever stops it in between', async () => {
  const db = withCrashes(app.context.db);
  const parts = { versions: createVersionRepository(db), encoder: createEncoder(app, db) };
  const contextAt = (bytesPerSecond: number) => ({
    ...app.context,
    config: { ...app.context.config, encoding: { ...app.context.config.encoding, bytesPerSecond } },
  });
  const codecs = async (): Promise<string[]> => (await versionsOf(app, stack)).map(({ codec }) => codec);
  const countEncoded = async (): Promise<number> => (await codecs()).filter((codec) => codec === 'pieces').length;
  expect(await codecs()).toEqual(Array(versions).fill('zstd'));
  expect(await firstOf((signal) => encodeVersions(contextAt(1), { ...parts, signal }), countEncoded)).toBe(1);
  expect(await crashingUntilDone(() => encodeVersions(contextAt(1e12), parts))).toBeGreaterThan(3);
  expect(await codecs()).toEqual([...Array(versions - 1).fill('pieces'), 'zstd']);
  await expectAllReadable();
});
