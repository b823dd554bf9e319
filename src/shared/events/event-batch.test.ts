import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { InvalidRequestError } from '../platform/errors/errors.ts';
import { splitEventBatch as splitBatch } from './event-batch.ts';

const splitEventBatch = (body: Buffer, maxEventBytes = 1024 * 1024) => splitBatch(body, maxEventBytes);

const space = fc.stringMatching(/^[ \t\r\n]{0,2}$/);
const payload = fc.oneof(
  fc.constantFrom(
    '{}',
    '{"message":"\\ud800 \\u0000"}',
    '{"n":1e400,"n":2}',
    'null',
    '"text"',
    '[1,{}]',
    '{"events":[{"sequence":9}]}',
  ),
  fc.json({ maxDepth: 3 }),
);
const member = fc
  .tuple(fc.constantFrom('stdoutEvent', 'Timestamp', '__proto__', 'type', 'summaryEvent', 'sequences'), payload)
  .filter(([name, text]) => name !== 'type' || text.trim() !== 'null')
  .map(([name, text]) => `"${name}":${text}`);
const timestamp = fc.constantFrom('1', '0', '-1', '999999999999999').map((text) => `"timestamp":${text}`);
const anyMember = fc.oneof({ arbitrary: member, weight: 4 }, timestamp);
/** `sequence` is among the members. */
const event = fc
  .tuple(fc.nat({ max: 999_999 }), fc.array(anyMember, { maxLength: 3 }), fc.array(anyMember, { maxLength: 2 }), space)
  .map(([sequence, before, after, blank]) => ({
    sequence,
    text: `{${[...before, `${blank}"sequence"${blank}:${blank}${sequence}`, ...after].join(`,${blank}`)}${blank}}`,
  }));

describe('splitting a batch of events', () => {
  test('returns the bytes and the sequence of each event, in order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(event, { maxLength: 6 }),
        fc.array(member, { maxLength: 2 }),
        space,
        async (events, others, blank) => {
          const list = `"events":${blank}[${blank}${events.map(({ text }) => text).join(`${blank},${blank}`)}${blank}]`;
          const body = Buffer.from(`${blank}{${[...others, list, ...others].join(',')}}${blank}`);
          const split = await splitEventBatch(body);
          expect(split.events).toEqual(events.map(({ sequence, text }) => expect.objectContaining({ sequence, text })));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('rejects a batch if one event has no valid sequence', async () => {
    const invalid = fc.constantFrom(
      '{}',
      'null',
      '1',
      '[]',
      '{"sequence":-1}',
      '{"sequence":1.0}',
      '{"sequence":"1"}',
      '{"sequence":1e3}',
      '{"sequence":null}',
      '{"Sequence":1}',
      '{"nested":{"sequence":1}}',
      '{"sequence":9007199254740992}',
    );
    const some = fc.array(event, { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(some, invalid, some, async (before, invalidEvent, after) => {
        const texts = [...before.map(({ text }) => text), invalidEvent, ...after.map(({ text }) => text)];
        const body = Buffer.from(`{"events":[${texts.join(',')}]}`);
        await expect(splitEventBatch(body)).rejects.toThrow(InvalidRequestError);
      }),
    );
  });

  test.each(['"1"', 'null', 'true', '[1]', '{"a":1}'])('rejects a batch if a timestamp is %s', async (value) => {
    const body = Buffer.from(`{"events":[{"sequence":1,"timestamp":1},{"timestamp":${value},"sequence":2}]}`);
    await expect(splitEventBatch(body)).rejects.toThrow(new InvalidRequestError('events[1].timestamp is not a number'));
  });

  test.each(['1.5', '1.0', '1e3', '10000000000000000'])('rejects a batch if a timestamp is %s', async (value) => {
    const body = Buffer.from(`{"events":[{"sequence":1,"timestamp":1},{"timestamp":${value},"sequence":2}]}`);
    await expect(splitEventBatch(body)).rejects.toThrow(
      new InvalidRequestError('events[1].timestamp is not a whole number of seconds'),
    );
  });

  test('uses the last sequence that an event repeats, and does not carry it over to the next event', async () => {
    const body = Buffer.from('{"events":[{"sequence":1,"sequence":2},{"a":{"sequence":5},"sequence":3}]}');
    expect((await splitEventBatch(body)).events.map(({ sequence }) => sequence)).toEqual([2, 3]);
    const second = Buffer.from('{"events":[{"sequence":1},{"a":1}]}');
    await expect(splitEventBatch(second)).rejects.toThrow(InvalidRequestError);
  });

  test.each([
    ['"cancelEvent":null,"resourcePreEvent":{"a":1}', 'resourcePreEvent'],
    ['"traceId":"x","n":1,"list":[{}],"resourcePreEvent":{}', 'resourcePreEvent'],
    ['"traceId":"x"', 'traceId'],
    ['"cancelEvent":null', 'cancelEvent'],
    ['"stdoutEvent":{},"resourcePreEvent":{}', 'stdoutEvent'],
    ['"type":"other","resourcePreEvent":{}', ''],
    ['"type":{},"resourcePreEvent":{}', ''],
    ['"type":"resourcePreEvent","type":"other","resourcePreEvent":{}', ''],
  ])('of the members %s, the payload names the type "%s"', async (members, type) => {
    const text = `{"sequence":0,"timestamp":1,${members}}`;
    expect((await splitEventBatch(Buffer.from(`{"events":[${text}]}`))).events).toEqual([
      { sequence: 0, text, type, urn: null },
    ]);
  });

  test.each([
    ['"resourcePreEvent":{"metadata":{"old":{"urn":"o"},"urn":"a","new":{"urn":"n"}},"planning":true}', 'a'],
    ['"diagnosticEvent":{"details":{"urn":"d","metadata":{"urn":"e"}},"urn":"b"}', 'b'],
    ['"policyEvent":{"resourceUrn":"c","lines":[{"urn":"d"}]}', 'c'],
    ['"policyEvent":{"resourceUrn":"c","urn":"b"}', 'b'],
    ['"anyEvent":{"resourceUrn":"c","urn":"b","metadata":{"\\u0075rn":"a"}}', 'a'],
    ['"anyEvent":{"metadata":{"urn":"a"},"metadata":{"urn":"last","urn":null}}', 'last'],
    ['"summaryEvent":{"resourceChanges":{"urn":"d"}},"resOutputsEvent":{"metadata":{"urn":"a"}}', 'a'],
    ['"anyEvent":{"metadata":[{"urn":"d"}],"nested":{"metadata":{"urn":"e"}}},"metadata":{"old":{"urn":"f"}}', null],
  ])('of the members %s, the URN is %s', async (members, urn) => {
    const text = `{"sequence":0,${members}}`;
    expect((await splitEventBatch(Buffer.from(`{"events":[${text}]}`))).events).toMatchObject([{ text, urn }]);
  });

  test.each([
    ['{"type":"ü","sequence":0,"ü":{}}', '{"sequence":0,"ü":{}}'],
    ['{ "type" : null , "sequence":0,"ü":{"type":"b"} }', '{  "sequence":0,"ü":{"type":"b"} }'],
    ['{"sequence":0,\n"type":"\\u00fc",\n"ü":{}}', '{"sequence":0,\n"ü":{}}'],
    ['{"sequence":0,"ü":{},"type":"ü"}', '{"sequence":0,"ü":{}}'],
  ])('a type that says nothing else is cut out of %s', async (sent, text) => {
    const body = Buffer.from(`{"events":[{"sequence":9},${sent}, {"sequence":1,"a":{}}]}`);
    expect((await splitEventBatch(body)).events).toEqual([
      expect.anything(),
      { sequence: 0, text, type: 'ü', urn: null },
      { sequence: 1, text: '{"sequence":1,"a":{}}', type: 'a', urn: null },
    ]);
  });

  test('reads integers from the resource changes of a summary, under any name', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.string(), fc.oneof(fc.maxSafeInteger(), fc.double(), fc.string(), fc.constant(null))),
        async (changes) => {
          const text = JSON.stringify({ events: [{ sequence: 0, summaryEvent: { resourceChanges: changes } }] });
          const { resourceChanges } = await splitEventBatch(Buffer.from(text));
          const sent = (JSON.parse(text) as { events: [{ summaryEvent: { resourceChanges: object } }] }).events[0]
            .summaryEvent.resourceChanges;
          const integers = Object.entries(sent).filter(([, count]) => Number.isSafeInteger(count));
          expect(Object.entries(JSON.parse(resourceChanges ?? 'null') as object)).toEqual(
            JSON.parse(JSON.stringify(integers)),
          );
        },
      ),
    );
    expect(await splitEventBatch(Buffer.from('{"events":[]}'))).toEqual({ events: [], resourceChanges: null });
  });

  test('keeps none of a summary with more than 64 KiB of counts, distinct or repeated', async () => {
    for (const name of [(at: number) => `kind-${at}`, () => 'kind']) {
      const counts = Array.from({ length: 10_000 }, (_, at) => `"${name(at)}":1`).join(',');
      const body = Buffer.from(`{"events":[{"sequence":0,"summaryEvent":{"resourceChanges":{${counts}}}}]}`);
      const { events, resourceChanges } = await splitEventBatch(body);
      expect({ events: events.length, resourceChanges }).toEqual({ events: 1, resourceChanges: null });
    }
  });
});
