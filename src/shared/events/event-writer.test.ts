import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { InvalidRequestError } from '../platform/errors/errors.ts';
import { splitEventBatch } from './event-writer.ts';

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
  .tuple(fc.constantFrom('stdoutEvent', 'timestamp', '__proto__', 'type', 'summaryEvent', 'sequences'), payload)
  .map(([name, text]) => `"${name}":${text}`);
/** An event's own text, with its sequence among the members. */
const event = fc
  .tuple(fc.nat({ max: 999_999 }), fc.array(member, { maxLength: 3 }), fc.array(member, { maxLength: 2 }), space)
  .map(([sequence, before, after, blank]) => ({
    sequence,
    text: `{${[...before, `${blank}"sequence"${blank}:${blank}${sequence}`, ...after].join(`,${blank}`)}${blank}}`,
  }));

describe('splitting a batch of events', () => {
  test('gives each event its own bytes and its sequence, in their order', () => {
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 6 }),
        fc.array(member, { maxLength: 2 }),
        space,
        (events, others, blank) => {
          const list = `"events":${blank}[${blank}${events.map(({ text }) => text).join(`${blank},${blank}`)}${blank}]`;
          const body = Buffer.from(`${blank}{${[...others, list, ...others].join(',')}}${blank}`);
          expect(splitEventBatch(body).events).toEqual(events.map(({ sequence, text }) => ({ sequence, text })));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('refuses a batch with one event that has no usable sequence', () => {
    const bad = fc.constantFrom(
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
    fc.assert(
      fc.property(fc.array(event, { maxLength: 4 }), bad, fc.array(event, { maxLength: 4 }), (before, wrong, after) => {
        const texts = [...before.map(({ text }) => text), wrong, ...after.map(({ text }) => text)];
        expect(() => splitEventBatch(Buffer.from(`{"events":[${texts.join(',')}]}`))).toThrow(InvalidRequestError);
      }),
    );
  });

  test('of a sequence that repeats within an event the last counts, and is that event’s alone', () => {
    const body = Buffer.from('{"events":[{"sequence":1,"sequence":2},{"a":{"sequence":5},"sequence":3}]}');
    expect(splitEventBatch(body).events.map(({ sequence }) => sequence)).toEqual([2, 3]);
    expect(() => splitEventBatch(Buffer.from('{"events":[{"sequence":1},{"a":1}]}'))).toThrow(InvalidRequestError);
  });

  test('takes whole numbers from the changes of a summary, under any name', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.oneof(fc.maxSafeInteger(), fc.double(), fc.string(), fc.constant(null))),
        (changes) => {
          const text = JSON.stringify({ events: [{ sequence: 0, summaryEvent: { resourceChanges: changes } }] });
          const { resourceChanges } = splitEventBatch(Buffer.from(text));
          const sent = (JSON.parse(text) as { events: [{ summaryEvent: { resourceChanges: object } }] }).events[0]
            .summaryEvent.resourceChanges;
          const whole = Object.entries(sent).filter(([, count]) => Number.isSafeInteger(count));
          expect(Object.entries(JSON.parse(resourceChanges ?? 'null') as object)).toEqual(
            JSON.parse(JSON.stringify(whole)),
          );
        },
      ),
    );
    expect(splitEventBatch(Buffer.from('{"events":[]}'))).toEqual({ events: [], resourceChanges: null });
  });
});
