import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createVersionRepository } from '../../src/shared/state/version-repository.ts';
import { encodeVersions } from '../../src/workers/state/encode-versions.ts';
import { query } from '../support/database.ts';
import { createEncoder, exportVersions, importVersions, versionsOf } from '../support/encode-versions.ts';
import { createStack, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

class Crash extends Error {
  override readonly name = 'Crash';
}

const versions = 5;

let app: TestApp;
let stack: TestStack;
let states: string[];

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

beforeAll(async () => {
  app = await createTestApp({ settings: { HOLDFAST_INLINE_BYTES: '600' } });
  stack = await createStack(app);
  states = await importVersions(app, stack, versions);
  await query(app, `update checkpoints set encode_at = 'epoch'`);
});
afterAll(() => app[Symbol.asyncDispose]());

/** Everything that was written before is read as it was. */
async function expectAllReadable(): Promise<void> {
  expect(await exportVersions(app, stack, versions)).toEqual(states);
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

test('whole versions become differences, at the set rate, despite interruptions', async () => {
  const db = withCrashes(app.context.db);
  const parts = { versions: createVersionRepository(db), encoder: createEncoder(app, db) };
  const contextAt = (bytesPerSecond: number) => ({
    ...app.context,
    config: { ...app.context.config, encoding: { ...app.context.config.encoding, bytesPerSecond } },
  });
  const codecs = async (): Promise<string[]> => (await versionsOf(app, stack)).map(({ codec }) => codec);
  const countEncoded = async (): Promise<number> => (await codecs()).filter((codec) => codec === 'chunks').length;
  expect(await codecs()).toEqual(Array(versions).fill('zstd'));
  expect(await firstOf((signal) => encodeVersions(contextAt(1), { ...parts, signal }), countEncoded)).toBe(1);
  expect(await crashingUntilDone(() => encodeVersions(contextAt(1e12), parts))).toBeGreaterThan(3);
  expect(await codecs()).toEqual([...Array(versions - 1).fill('chunks'), 'zstd']);
  await expectAllReadable();
});
