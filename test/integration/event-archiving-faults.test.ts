import { beforeAll, describe, expect, test } from '@jest/globals';
import { createEventRepository } from '../../src/shared/events/event-repository.ts';
import { createEventSegmentRepository } from '../../src/shared/events/event-segment-repository.ts';
import { EventSegments } from '../../src/shared/events/event-segments.ts';
import { createBlobRepository } from '../../src/shared/state/checkpoints/blob-repository.ts';
import { createChunkRepository } from '../../src/shared/state/checkpoints/chunks/chunk-repository.ts';
import { DocumentStore } from '../../src/shared/state/checkpoints/document-store.ts';
import { EventArchiver } from '../../src/workers/events/event-archiver.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import {
  countStored,
  insertEndedUpdate,
  pack,
  readPages,
  sampleEvent,
  smallLimits,
} from '../support/archived-events.ts';
import { letBlobsAge, storedKeys } from '../support/blob-rows.ts';
import { query } from '../support/database.ts';
import { createStack, ok } from '../support/state.ts';
import { type TestApp, testApp } from '../support/test-app.ts';

const app = testApp({ settings: { HOLDFAST_INLINE_BYTES: '600', eventArchiveDelaySeconds: 0 } });

const events = Array.from({ length: 50 }, (_, at) => sampleEvent(at, { chars: at === 20 ? 7_000 : 200 }));
const texts = events.map(({ text }) => text);
const limits = { ...smallLimits, events: 20 };

let stackId: string;
beforeAll(async () => {
  const stack = await createStack(app);
  stackId = (await ok(app.call('GET', stack.path, { auth: stack.auth }))).json.id;
});

const newUpdate = (): Promise<string> => insertEndedUpdate(app, stackId, events);

class Crash extends Error {}

/** Stops at the given step: before or after a call to the database or the blob store. */
class Steps {
  #left: number;
  readonly #names: string[] = [];

  constructor(crashAt: number) {
    this.#left = crashAt;
  }

  get last(): string {
    return this.#names.at(-1) ?? '';
  }

  over<T extends object>(target: T, name: string): T {
    return new Proxy(target, {
      get: (_, member) => {
        const value: unknown = Reflect.get(target, member);
        if (typeof value !== 'function') return value;
        return async (...args: unknown[]) => {
          this.#take(`before ${name}.${String(member)}`);
          const given =
            member === 'inTransaction'
              ? [(tx: object) => (args[0] as (tx: object) => unknown)(this.over(tx, 'tx'))]
              : args;
          const result: unknown = await value.apply(target, given);
          try {
            this.#take(`after ${name}.${String(member)}`);
          } catch (error) {
            if (member === 'open') await (result as AsyncIterable<Buffer>)[Symbol.asyncIterator]().return?.();
            throw error;
          }
          return result;
        };
      },
    });
  }

  #take(name: string): void {
    // A process that crashed does nothing more.
    if (this.#left <= 0) throw new Crash();
    this.#names.push(name);
    this.#left--;
    if (this.#left === 0) throw new Crash(name);
  }
}

function packInSteps({ context }: TestApp, updateId: string, steps: Steps): Promise<boolean> {
  const db = steps.over(context.db, 'db');
  const encryption = { isOn: false, keys: null as never };
  const blobs = steps.over(context.blobs, 'blobs');
  const documents = new DocumentStore(
    blobs,
    { blobs: createBlobRepository(db), chunks: createChunkRepository(db) },
    600,
    encryption,
  );
  const rows = createEventSegmentRepository(db);
  const eventSegments = new EventSegments({ ...context, rows, documents });
  return new EventArchiver({ db, events: createEventRepository(db), documents, eventSegments, limits }).pack(
    updateId,
    async () => {},
  );
}

async function expectNoBlobLeftOver(): Promise<void> {
  await letBlobsAge(app);
  await sweepBlobs(app.context);
  const referred = await query<{ key: string }>(
    app,
    'select blob_key as key from event_segments where blob_key is not null',
  );
  expect(await storedKeys(app)).toEqual(referred.map(({ key }) => key).sort());
}

describe('packing', () => {
  test('loses and doubles nothing when it stops between any two steps', async () => {
    const seen = new Set<string>();
    for (let at = 1; ; at++) {
      const update = await newUpdate();
      const steps = new Steps(at);
      const isDone = await packInSteps(app, update, steps).catch((error: unknown) => {
        expect(error).toBeInstanceOf(Crash);
        return null;
      });
      seen.add(steps.last);
      expect([steps.last, await readPages(app, update)]).toEqual([steps.last, texts]);
      expect([steps.last, await pack(app, update, { limits })]).toEqual([steps.last, true]);
      expect([steps.last, await readPages(app, update)]).toEqual([steps.last, texts]);
      expect(await countStored(app, update)).toEqual({ rows: 0, segments: 3 });
      if (isDone !== null) break;
    }
    for (const step of [
      'db.query',
      'blobs.put',
      'db.exists',
      'blobs.open',
      'tx.maybeOne',
      'tx.one',
      'db.inTransaction',
    ])
      expect([...seen]).toEqual(expect.arrayContaining([`before ${step}`, `after ${step}`]));
    await expectNoBlobLeftOver();
  });

  test('by several processes at once, while clients read, shows every event once at any moment', async () => {
    const update = await newUpdate();
    let isArchived = false;
    const reader = async (newestFirst: boolean): Promise<number> => {
      let reads = 0;
      for (; !isArchived || reads < 2; reads++) {
        const found = await readPages(app, update, { newestFirst }, 7);
        expect(newestFirst ? found.reverse() : found).toEqual(texts);
      }
      return reads;
    };
    const reading = Promise.all([reader(false), reader(true)]);
    const archiving = Promise.all(Array.from({ length: 4 }, () => pack(app, update, { limits }))).finally(() => {
      isArchived = true;
    });
    await Promise.all([archiving, reading]);
    expect(await pack(app, update, { limits })).toBe(true);
    expect(await countStored(app, update)).toEqual({ rows: 0, segments: 3 });
    expect(await readPages(app, update)).toEqual(texts);
    await expectNoBlobLeftOver();
  });

  test('does not delete rows when what it stored is read back as something else', async () => {
    const one = { ...limits, events: 50, bytes: 100_000 };
    const update = await newUpdate();
    const documents = new Proxy(app.context.documents, {
      get: (target, member) => {
        const value: unknown = Reflect.get(target, member);
        if (member === 'saveStream') {
          return async (encoded: AsyncIterable<Buffer>) => {
            const stored = await target.saveStream(encoded);
            const { blobKey } = stored;
            if (blobKey === null) throw new Error('The sample is too small');
            const bytes = Buffer.concat(await Array.fromAsync(await app.context.blobs.open(blobKey)));
            bytes.writeUInt8(bytes.readUInt8(bytes.length - 10) ^ 1, bytes.length - 10);
            await app.context.blobs.put(
              blobKey,
              (async function* () {
                yield bytes;
              })(),
            );
            return stored;
          };
        }
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    await expect(pack(app, update, { documents, limits: one })).rejects.toThrow(/stored bytes|SHA-256/);
    expect(await countStored(app, update)).toEqual({ rows: 50, segments: 0 });
    expect(await pack(app, update, { limits: one })).toBe(true);
    await expectNoBlobLeftOver();
  });

  test('does not delete a row that was added after it read the rows', async () => {
    const sparse = events.filter((_, at) => at !== 25);
    const update = await insertEndedUpdate(app, stackId, sparse);
    const added = sampleEvent(25, { chars: 300 });
    const documents = new Proxy(app.context.documents, {
      get: (target, member) => {
        const value: unknown = Reflect.get(target, member);
        if (member === 'saveStream') {
          return async (encoded: AsyncIterable<Buffer>) => {
            const stored = await target.saveStream(encoded);
            await query(app, 'insert into engine_events (update_id, sequence, event) values ($1, $2, $3)', [
              update,
              added.sequence,
              added.text,
            ]);
            return stored;
          };
        }
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const one = { ...limits, events: 50, bytes: 100_000 };
    expect(await pack(app, update, { documents, limits: one })).toBe(false);
    expect(await countStored(app, update)).toEqual({ rows: 50, segments: 0 });
    expect(await readPages(app, update)).toEqual(texts.with(25, added.text));
    expect(await pack(app, update, { limits: one })).toBe(true);
    expect(await readPages(app, update)).toEqual(texts.with(25, added.text));
    await expectNoBlobLeftOver();
  });
});
