import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { query } from '../support/database.ts';
import {
  countStored,
  insertEndedUpdate,
  insertEvents,
  pack,
  readPages,
  type SampleEvent,
  sampleEvent,
} from '../support/packed-events.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { cliAccept, contractAccept, type TestApp, testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';

const settings = { HOLDFAST_INLINE_BYTES: '600', HOLDFAST_EVENT_PACK_DELAY_SECONDS: '0' };
const plain = testApp({ settings });
const sealed = testApp({ settings: { ...settings, HOLDFAST_SEAL_DOCUMENTS: 'true' } });

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

describe('packed events', () => {
  test.each([
    ['plain', plain],
    ['sealed', sealed],
  ])('are what clients read as before, byte by byte, %s', async (_name, app) => {
    const update = await endedUpdate(app, someEvents(700));
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
        'type=stdoutEvent&type=7&order=desc',
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
    expect(codecs).toEqual([{ codec: app === sealed ? 'zstd+sealed' : 'zstd' }]);
    expect(await all()).toEqual(before);
  });

  test('any page size, filter, direction and place of packing', async () => {
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
      [sealed, await stackOf(sealed)],
    ]);
    const property = fc.asyncProperty(
      fc.array(event, { minLength: 1, maxLength: 60 }),
      fc.record({
        /** Which events arrive late, as rows between packed ones. */
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
      async (described, { late, limits, segments }, selections, isSealed) => {
        const app = isSealed ? sealed : plain;
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
        const packing = segments === 0 ? Promise.resolve() : pack(app, id, { limits, onSegment });
        await packing.catch((error: unknown) => expect(error).toBe(stop));
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
    await fc.assert(property, { numRuns: 25 });
  });
});
