import { describe, expect, test } from '@jest/globals';
import { driftOfEvent, driftOfSummary } from './drift-counts.ts';

describe('drift found by a run', () => {
  test('the summary of a refresh counts differences', () => {
    expect(driftOfSummary('{"same":3,"update":1,"delete":2}')).toEqual({ update: 1, delete: 2 });
    expect(driftOfSummary('{"same":3,"refresh":1}')).toEqual({});
  });

  test.each(['', 'null', '[]', '{}', '{"update":"2"}', '{"update":-1}', '{"update":1.5}', '{"U P":1}', '{'])(
    'what a client sends instead of counts (%s) says nothing',
    (text) => expect(driftOfSummary(text)).toBeNull(),
  );

  const event = (metadata: object) => JSON.stringify({ resOutputsEvent: { metadata } });
  test.each([
    ['a resource that is gone', { op: 'refresh', old: {}, new: null }, 'delete'],
    ['one with other properties', { op: 'refresh', old: {}, new: {}, diffs: ['size'] }, 'update'],
    ['the same, in detail', { op: 'refresh', new: {}, detailedDiff: { size: { diffKind: 'update' } } }, 'update'],
    ['one that is as the state has it', { op: 'refresh', old: {}, new: {}, diffs: null, detailedDiff: null }, 'same'],
    ['a step that is no refresh', { op: 'update', old: {}, new: {}, diffs: ['size'] }, null],
  ])('an event about %s', (_, metadata, expected) => expect(driftOfEvent(event(metadata))).toBe(expected));

  test('other events are about none', () => {
    for (const text of [
      '{}',
      'null',
      '{',
      '{"resOutputsEvent":null}',
      '{"resourcePreEvent":{"metadata":{"op":"refresh"}}}',
    ])
      expect(driftOfEvent(text)).toBeNull();
  });
});
