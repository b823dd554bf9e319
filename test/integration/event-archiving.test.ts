import { readFile, rm, writeFile } from 'node:fs/promises';
import { describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { readBackDocuments } from '../../src/cli/fsck/read-back.ts';
import { createArchivingRepository } from '../../src/shared/events/archiving-repository.ts';
import { BlobStoreUnavailableError } from '../../src/shared/platform/blobs/blob-store.ts';
import { archiveEvents } from '../../src/workers/events/archive-events.ts';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';
import { Scrubber } from '../../src/workers/state/scrub.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import {
  countStored,
  insertEndedUpdate,
  insertEvents,
  pack,
  readPages,
  type SampleEvent,
  sampleEvent,
  smallLimits,
} from '../support/archived-events.ts';
import { letBlobsAge, storedKeys } from '../support/blob-rows.ts';
import { blobFile, flipBit } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { cliAccept, contractAccept, type TestApp, testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';

const settings = { HOLDFAST_INLINE_BYTES: '600', eventArchiveDelaySeconds: 0 };
const plain = testApp({ settings });
const encrypted = testApp({ settings: { ...settings, HOLDFAST_ENCRYPT_DOCUMENTS: 'true' } });

const types = ['stdoutEvent', 'resourcePreEvent', 'diagnosticEvent'];
const urns = [null, 'urn:a', 'urn:b', 'urn:é'];
/** Events of every type and resource, some larger than a frame. */
const someEvents = (count: number): SampleEvent[] =>
  Array.from({ length: count }, (_, at) =>
    sampleEvent(at * 2, {
      type: types[at % 3] as string,
      urn: urns[at % 4] as string | null,
      chars: at % 17 === 3 ? 7_000 : 30 + ((at * 7) % 200),
    }),
  );

interface EndedUpdate extends RunningUpdate {
  readonly stack: TestStack;
}

async function endedUpdate(app: TestApp, events: readonly SampleEvent[]): Promise<EndedUpdate> {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  await insertEvents(app, update.id, events);
  await ok(complete(app, update));
  return { ...update, stack };
}

/** The stack of updates that are made by SQL. */
async function stackOf(app: TestApp): Promise<string> {
  const stack = await createStack(app);
  return (await ok(app.call('GET', stack.path, { auth: stack.auth }))).json.id;
}

const textsOf = (events: readonly SampleEvent[]): string[] => events.map(({ text }) => text);

describe('archived events', () => {
  test.each([
    ['plain', plain],
    ['encrypted', encrypted],
  ])('are what clients read as before, byte by byte, %s', async (_name, app) => {
    const update = await endedUpdate(app, someEvents(540));
    const read = async (parameters: string, accept: string) => {
      const pages: string[] = [];
      for (let token: string | null = ''; token !== null; ) {
        const url = `${update.path}/events?continuationToken=${token}&${parameters}`;
        const { json, text } = await ok(app.call('GET', url, { auth: update.stack.auth, accept }));
        pages.push(text);
        token = json.continuationToken;
        if (json.events.length === 0) break;
      }
      return pages;
    };
    const all = async () => {
      const pages = [];
      for (const parameters of [
        '',
        'order=desc',
        'urn=urn:a',
        'type=stdoutEvent&type=other&order=desc',
        'type=diagnosticEvent&urn=urn:b',
      ])
        for (const accept of [cliAccept, contractAccept]) pages.push(await read(parameters, accept));
      return pages;
    };
    const before = await all();
    expect(before.map((pages) => pages.length)).toEqual([3, 3, 3, 3, 2, 2, 2, 2, 2, 2]);
    expect(await pack(app, update.id)).toBe(true);
    expect(await countStored(app, update.id)).toEqual({ rows: 0, segments: expect.any(Number) });
    const codecs = await query(
      app,
      'select distinct codec from event_segments where update_id = $1 and blob_key is not null',
      [update.id],
    );
    expect(codecs).toEqual([{ codec: app === encrypted ? 'zstd+encrypted' : 'zstd' }]);
    expect(await all()).toEqual(before);
  });

  test('any page size, filter, direction and position of archiving', async () => {
    const event = fc.record({
      gap: fc.integer({ min: 1, max: 3 }),
      type: fc.constantFrom(...types),
      urn: fc.constantFrom(...urns),
      chars: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 6_000 })),
    });
    const selection = fc.record({
      urn: fc.constantFrom(...urns),
      types: fc.option(fc.subarray(types, { minLength: 1 })),
      newestFirst: fc.boolean(),
      pageEvents: fc.integer({ min: 1, max: 40 }),
    });
    const stackIds = new Map([
      [plain, await stackOf(plain)],
      [encrypted, await stackOf(encrypted)],
    ]);
    const property = fc.asyncProperty(
      fc.array(event, { minLength: 1, maxLength: 60 }),
      fc.record({
        /** Which events arrive late, as rows between archived ones. */
        late: fc.array(fc.nat(59), { maxLength: 8 }),
        /** After how many segments packing stops. */
        segments: fc.integer({ min: 0, max: 4 }),
        limits: fc.record({
          events: fc.integer({ min: 1, max: 30 }),
          bytes: fc.integer({ min: 1, max: 8_000 }),
          frameBytes: fc.integer({ min: 300, max: 3_000 }),
        }),
      }),
      fc.array(selection, { minLength: 3, maxLength: 3 }),
      fc.boolean(),
      async (described, { late, limits, segments }, selections, isEncrypted) => {
        const app = isEncrypted ? encrypted : plain;
        let sequence = -1;
        const events = described.map(({ gap, ...options }) => {
          sequence += gap;
          return sampleEvent(sequence, options);
        });
        const early = events.filter((_, at) => !late.includes(at));
        const id = await insertEndedUpdate(app, stackIds.get(app) as string, early);
        let left = segments;
        const stop = new Error('stopped');
        const onSegment = async (): Promise<void> => {
          if (--left <= 0) throw stop;
        };
        const archiving = segments === 0 ? Promise.resolve() : pack(app, id, { limits, onSegment });
        await archiving.catch((error: unknown) => expect(error).toBe(stop));
        await insertEvents(
          app,
          id,
          events.filter((_, at) => late.includes(at)),
        );
        for (const { pageEvents, ...selected } of selections) {
          const expected = events.filter(
            ({ type, urn }) =>
              (selected.urn === null || selected.urn === urn) && (selected.types?.includes(type) ?? true),
          );
          if (selected.newestFirst) expected.reverse();
          expect(await readPages(app, id, selected, pageEvents)).toEqual(textsOf(expected));
        }
        await pack(app, id, { limits });
        expect(await readPages(app, id)).toEqual(textsOf(events));
      },
    );
    await fc.assert(property, { numRuns: 15 });
  });
});

describe('the sweep', () => {
  test('archives events of ended updates after the delay, and leaves running updates alone', async () => {
    const app = plain;
    const ended = await endedUpdate(app, someEvents(40));
    const stack = await createStack(app);
    const running = await startUpdate(app, stack);
    await insertEvents(app, running.id, someEvents(40));
    const slow = {
      ...app.context,
      config: { ...app.context.config, eventArchiving: { delaySeconds: 3600 } },
    };
    expect(await archiveEvents(slow)).toBe(0);
    expect(await archiveEvents(app.context)).toBeGreaterThan(0);
    expect(await countStored(app, ended.id)).toMatchObject({ rows: 0 });
    expect(await countStored(app, running.id)).toEqual({ rows: 40, segments: 0 });
    expect(await pack(app, running.id)).toBe(false);
    expect(await countStored(app, running.id)).toEqual({ rows: 40, segments: 0 });
    // A late batch of an ended update is rejected, as before.
    const late = await app.call('POST', `${ended.path}/events/batch`, {
      auth: ended.lease,
      body: { events: [{ sequence: 1 }] },
    });
    expect(late.status).toBe(403);
    expect(await readPages(app, ended.id)).toEqual(textsOf(someEvents(40)));
    const metrics = await app.context.metrics.registry.metrics();
    expect(metrics).toMatch(/^holdfast_events_archived_total [1-9]/m);
    expect(metrics).toMatch(/^holdfast_event_archiving_updates\{queue="recent"\} \d/m);
  });

  test('packs other updates, though a blob of one cannot be written', async () => {
    const app = plain;
    const { config } = app.context;
    const context = {
      ...app.context,
      config: { ...config, eventArchiving: { ...config.eventArchiving, delaySeconds: 0 } },
    };
    // The failure must not be that of an update whose late rows lie between archived ones.
    await query(app, `update updates set events_archived = true where ended_at is not null`);
    const updates = [await endedUpdate(app, someEvents(40)), await endedUpdate(app, someEvents(40))];
    let failures = 0;
    const documents = new Proxy(app.context.documents, {
      get: (object, name) => {
        const value: unknown = Reflect.get(object, name);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (failures++ === 0) throw new BlobStoreUnavailableError('denied', 'access denied');
          return value.apply(object, args);
        };
      },
    });
    await archiveEvents({ ...context, documents });
    expect(failures).toBeGreaterThan(0);
    const left = async () =>
      (await Promise.all(updates.map(({ id }) => countStored(app, id)))).filter(({ rows }) => rows > 0).length;
    expect(await left()).toBe(1);
    await archiveEvents(context);
    expect(await left()).toBe(0);
  });
});

describe('segments', () => {
  test('go with their stack, and their objects after the retention; those in use stay', async () => {
    const app = plain;
    const gone = await endedUpdate(app, someEvents(200));
    const kept = await endedUpdate(app, someEvents(200));
    for (const { id } of [gone, kept]) expect(await pack(app, id)).toBe(true);
    await ok(app.call('DELETE', `${gone.stack.path}?force=true`, { auth: gone.stack.auth }));
    await createStackDeletion(app.context, { pauseMs: 0, runMs: 600_000 })();
    expect((await countStored(app, gone.id)).segments).toBe(0);
    await letBlobsAge(app);
    await sweepBlobs(app.context);
    const referred = await query<{ key: string }>(
      app,
      'select blob_key as key from event_segments where blob_key is not null',
    );
    expect(await storedKeys(app)).toEqual(referred.map(({ key }) => key).sort());
    expect(await readPages(app, kept.id)).toEqual(textsOf(someEvents(200)));
  });

  test('are archived for a deleted stack only if it can be restored', async () => {
    const app = plain;
    const update = await endedUpdate(app, someEvents(20));
    await ok(app.call('DELETE', `${update.stack.path}?force=true`, { auth: update.stack.auth }));
    const isDue = async (): Promise<boolean> =>
      (await createArchivingRepository(app.context.db).listDue(0, null, 10_000)).some(({ id }) => id === update.id);
    expect([await isDue(), await pack(app, update.id)]).toEqual([false, false]);
    expect(await countStored(app, update.id)).toEqual({ rows: 20, segments: 0 });
    await query(
      app,
      `update stacks set restorable_until = now() + interval '1 day' where id = (select stack_id from updates where id = $1)`,
      [update.id],
    );
    expect([await isDue(), await pack(app, update.id)]).toEqual([true, true]);
    expect(await countStored(app, update.id)).toEqual({ rows: 0, segments: 1 });
    expect([await isDue(), await readPages(app, update.id)]).toEqual([false, textsOf(someEvents(20))]);
  });

  test('keep their objects when these are marked as unreferenced by mistake', async () => {
    const app = plain;
    const update = await endedUpdate(app, someEvents(200));
    expect(await pack(app, update.id)).toBe(true);
    const of = `key in (select blob_key from event_segments where update_id = $1)`;
    await query(
      app,
      `update blobs set unreferenced_since = coalesce(unreferenced_since, now() - interval '2 days') where ${of}`,
      [update.id],
    );
    await sweepBlobs(app.context);
    const rows = await query(
      app,
      `select distinct unreferenced_since, pending_deletion_since, delete_at from blobs where ${of}`,
      [update.id],
    );
    expect(rows).toEqual([{ unreferenced_since: null, pending_deletion_since: null, delete_at: null }]);
    expect(await readPages(app, update.id)).toEqual(textsOf(someEvents(200)));
  });

  test.each([
    ['plain', plain],
    ['encrypted', encrypted],
  ])(
    'that are damaged are reported and not used, found by the scrub, and used again once restored, %s',
    async (_name, app) => {
      const update = await endedUpdate(app, someEvents(200));
      expect(await pack(app, update.id)).toBe(true);
      const { id: stackId } = (await ok(app.call('GET', update.stack.path, { auth: update.stack.auth }))).json;
      const [segment] = await query<{ id: string; blob_key: string; last_sequence: string }>(
        app,
        'select id, blob_key, last_sequence from event_segments where update_id = $1 and blob_key is not null order by last_sequence desc',
        [update.id],
      );
      const file = await blobFile(app, segment?.blob_key as string);
      const bytes = await readFile(file);
      const isDamaged = async () =>
        (await query(app, 'select 1 from event_segments where id = $1 and damaged_at is not null', [segment?.id]))
          .length > 0;
      const scrub = async () => {
        await query(app, `update event_segments set checked_at = now() - interval '31 days' where id = $1`, [
          segment?.id,
        ]);
        await new Scrubber(app.context, { bytesPerSecond: 1e9, periodSeconds: 30 * 86_400 }).run(1_000);
      };
      const readLast = () => app.call('GET', `${update.path}/events?order=desc`, { auth: update.stack.auth });
      for (const damaged of [flipBit(bytes, bytes.length - 30, 1), bytes.subarray(0, 100), null]) {
        await (damaged ? writeFile(file, damaged) : rm(file));
        const refused = await readLast();
        expect([refused.status, refused.json.message]).toEqual([500, expect.stringContaining('is damaged')]);
        expect(await isDamaged()).toBe(true);
        // The others can still be read.
        expect((await app.call('GET', `${update.path}/events?urn=urn:none`, { auth: update.stack.auth })).status).toBe(
          200,
        );
        await writeFile(file, bytes);
        await scrub();
        expect(await isDamaged()).toBe(false);
        expect((await readLast()).status).toBe(200);
      }
      await writeFile(file, flipBit(bytes, 80, 1));
      await scrub();
      expect(await isDamaged()).toBe(true);
      expect(await app.context.eventSegments.readStatistics()).toMatchObject({ damaged: 1 });
      const summary = await readBackDocuments(app.context, stackId);
      expect(summary).toMatchObject({ damaged: 1, damagedSegments: [segment?.id], unrepaired: [] });
      await writeFile(file, bytes);
      await scrub();
    },
  );

  test('are read only in the frames that a page needs', async () => {
    const app = plain;
    const events = Array.from({ length: 300 }, (_, at) =>
      sampleEvent(at, {
        urn: `urn:${Math.floor(at / 10)}`,
        type: at < 150 ? 'resourcePreEvent' : 'resOutputsEvent',
        chars: 100,
      }),
    );
    const id = await insertEndedUpdate(app, await stackOf(app), events);
    expect(await pack(app, id, { limits: { ...smallLimits, events: 1_000, bytes: 2 ** 30 } })).toBe(true);
    const [stored] = await query<{ frames: string }>(app, 'select frames from event_segments where update_id = $1', [
      id,
    ]);
    const frames = JSON.parse(stored?.frames as string).frames as { stored: number }[];
    expect(frames.length).toBeGreaterThan(15);
    const reads: number[] = [];
    const { documents } = app.context;
    const readRange = jest.spyOn(documents, 'readRange').mockImplementation(async function (
      this: typeof documents,
      location,
      start,
      end,
    ) {
      reads.push(end - start);
      return Object.getPrototypeOf(documents).readRange.call(documents, location, start, end);
    });
    const largest = Math.max(...frames.map((frame) => frame.stored));
    const bytesRead = async (selection: object, count: number, pageEvents = 5) => {
      reads.length = 0;
      const page = { beyond: -1, newestFirst: false, urn: null, types: null, ...selection };
      let read = 0;
      for await (const events of app.context.eventReader.read({ id, mayHaveRows: true }, page, {
        events: pageEvents,
        bytes: 2 ** 20,
      })) {
        read += events.length;
        if (read >= count) break;
      }
      expect(read).toBeGreaterThanOrEqual(count);
      return reads.reduce((sum, bytes) => sum + bytes, 0);
    };
    try {
      expect(await bytesRead({}, 5)).toBeLessThanOrEqual(largest);
      expect(await bytesRead({ beyond: 149 }, 5)).toBeLessThanOrEqual(2 * largest);
      expect(await bytesRead({ beyond: 1_000, newestFirst: true }, 5)).toBeLessThanOrEqual(2 * largest);
      expect(await bytesRead({ urn: 'urn:17' }, 10, 500)).toBeLessThanOrEqual(2 * largest);
      expect(await bytesRead({ urn: 'urn:17', newestFirst: true, beyond: 1_000 }, 10, 500)).toBeLessThanOrEqual(
        2 * largest,
      );
      expect(await bytesRead({ types: ['resOutputsEvent'] }, 5)).toBeLessThanOrEqual(2 * largest);
      expect(await bytesRead({ urn: 'urn:none' }, 0)).toBe(0);
    } finally {
      readRange.mockRestore();
    }
  });
});
