import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  comparable,
  type JournalCase,
  type JournalDocument,
  type LargeCaseName,
  loadLargeCase,
  loadSmallCases,
} from '../../../../../../test/fixtures/journal/journal-cases.ts';
import { replayJournal } from '../../../../../../test/support/replay-journal.ts';
import type { JournalEntryText } from '../../journal-batch.ts';
import { JournalReplay } from './apply-entries.ts';

const manifest = { time: '2026-01-01T00:00:00Z', version: '' };
const smallCases = loadSmallCases().map(withoutByteString);
const largeNames: LargeCaseName[] = ['10000-create', '2500-create-cut', '2500-refresh-and-change'];

function replayed({ base }: JournalCase, entries: readonly JournalEntryText[]): Buffer {
  return replayJournal(base, entries, manifest).document;
}

/** Ours keeps byteString, which Pulumi's own replay, and so the recorded results, lose. */
function withoutByteString(recorded: JournalCase): JournalCase {
  if (!recorded.base?.includes('"byteString"')) return recorded;
  const base = recorded.base
    .toString('utf8')
    .replace(/(?<="features":)\[.*?\]/, (features) =>
      JSON.stringify(JSON.parse(features).filter((feature: string) => feature !== 'byteString')),
    );
  return { ...recorded, base: Buffer.from(base) };
}

function replayedParsed(recorded: JournalCase, entries: readonly JournalEntryText[]): JournalDocument {
  return JSON.parse(replayed(recorded, entries).toString('utf8'));
}

function inOrder(entries: readonly JournalEntryText[]): JournalEntryText[] {
  return [...entries].sort((a, b) => a.sequenceId - b.sequenceId);
}

const anyCase = fc.constantFrom(...smallCases);

describe('recorded journals', () => {
  test.each(smallCases.map((recorded) => [recorded.name, recorded] as const))('%s', (_, recorded) => {
    const { entries, expected, expectedBySequence, expectedPrefixes, arrivalOutOfOrder } = recorded;
    expect(comparable(replayedParsed(recorded, entries))).toEqual(comparable(expectedBySequence ?? expected));
    for (const { upTo, deployment } of expectedPrefixes) {
      const options = { ignoresResourceOrder: arrivalOutOfOrder };
      const actual = replayedParsed(recorded, entries.slice(0, upTo));
      expect({ upTo, ...comparable(actual, options) }).toEqual({ upTo, ...comparable(deployment, options) });
    }
  });

  // A matcher that prints the difference takes seconds on journals of this size.
  test.each(largeNames)('%s', (name) => {
    const recorded = loadLargeCase(name);
    const { entries, expected, expectedBySequence, expectedPrefixes } = recorded;
    const actual = replayedParsed(recorded, entries);
    expect(isDeepStrictEqual(comparable(actual), comparable(expectedBySequence ?? expected))).toBe(true);
    for (const { upTo, deployment } of expectedPrefixes) {
      const options = { ignoresResourceOrder: true };
      const prefix = comparable(replayedParsed(recorded, entries.slice(0, upTo)), options);
      expect(isDeepStrictEqual(prefix, comparable(deployment, options))).toBe(true);
    }
  });
});

describe('order and repetition', () => {
  test('out-of-order and repeated entries do not change the result', () => {
    const withArrival = anyCase.chain((recorded) => {
      const arrivals = fc.subarray([...recorded.entries]).chain((repeated) => {
        const all = [...recorded.entries, ...repeated];
        return fc.shuffledSubarray(all, { minLength: all.length });
      });
      return fc.tuple(fc.constant(recorded), arrivals);
    });
    fc.assert(
      fc.property(withArrival, ([recorded, arrivals]) => {
        expect(replayed(recorded, arrivals).equals(replayed(recorded, recorded.entries))).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test('the first of two entries with the same sequence id wins', () => {
    const entries = [snippetsEntry(2, '["first"]'), snippetsEntry(1, '[]'), snippetsEntry(2, '["second"]')];
    const { document } = replayJournal(null, entries, manifest);
    expect(JSON.parse(document.toString('utf8')).deployment.snippets).toEqual(['first']);
  });
});

/** After how many entries a replay is looked at: every one, but fewer over a large base, where each look takes as long as hundreds. */
function stepOf({ base }: JournalCase): number {
  return (base?.length ?? 0) > 100_000 ? 8 : 1;
}

describe('an incremental replay', () => {
  test('generates after every entry the same document as a full replay of the entries so far', () => {
    for (const recorded of smallCases) {
      const entries = inOrder(recorded.entries);
      const replay = new JournalReplay(recorded.base);
      entries.forEach((entry, i) => {
        expect(replay.apply(entry)).toBe(true);
        if ((i + 1) % stepOf(recorded) !== 0) return;
        const expected = replayed(recorded, entries.slice(0, i + 1));
        expect(replay.generate(manifest).document.equals(expected)).toBe(true);
      });
    }
  });

  test('resumes from a snapshot taken after any entry with the same result', () => {
    for (const recorded of smallCases) {
      const entries = inOrder(recorded.entries);
      const expected = replayed(recorded, entries);
      const stopped = new JournalReplay(recorded.base);
      for (let applied = 0; applied <= entries.length; applied += stepOf(recorded)) {
        const restored = JournalReplay.restore(recorded.base, stopped.snapshot());
        for (const entry of entries.slice(applied)) restored.apply(entry);
        expect(restored.generate(manifest).document.equals(expected)).toBe(true);
        for (const next of entries.slice(applied, applied + stepOf(recorded))) stopped.apply(next);
      }
    }
  });

  test('can be stored and restored every 1,000 entries of a large journal', () => {
    const recorded = loadLargeCase('2500-refresh-and-change');
    const entries = inOrder(recorded.entries);
    let replay = new JournalReplay(recorded.base);
    entries.forEach((entry, i) => {
      replay.apply(entry);
      if (i % 1000 === 0) replay = JournalReplay.restore(recorded.base, replay.snapshot());
    });
    expect(replay.generate(manifest).document.equals(replayed(recorded, entries))).toBe(true);
  });

  test('applies an entry once and returns whether it did', () => {
    const replay = new JournalReplay(null);
    expect(replay.apply(snippetsEntry(1, '[1]'))).toBe(true);
    expect(replay.apply(snippetsEntry(1, '[2]'))).toBe(false);
    expect(JournalReplay.restore(null, replay.snapshot()).apply(snippetsEntry(1, '[3]'))).toBe(false);
  });

  test('rejects an entry that arrives after a later one, also when restored', () => {
    const replay = new JournalReplay(null);
    for (const sequenceId of [1, 2, 5, 6]) replay.apply(snippetsEntry(sequenceId, '[]'));
    expect([replay.lastSequenceId, replay.hasGap]).toEqual([6, true]);
    for (const each of [replay, JournalReplay.restore(null, replay.snapshot())]) {
      expect(() => each.apply(snippetsEntry(4, '[]'))).toThrow(expect.objectContaining({ code: 'late-entry' }));
      expect(each.apply(snippetsEntry(5, '[]'))).toBe(false);
      expect(each.apply(snippetsEntry(7, '[]'))).toBe(true);
    }
  });
});

test('neither the base nor the entries are modified', () => {
  for (const recorded of smallCases) {
    const base = recorded.base && Buffer.from(recorded.base);
    const texts = recorded.entries.map(({ text }) => Buffer.from(text));
    replayed(recorded, recorded.entries);
    expect(recorded.base === base || recorded.base?.equals(base as Buffer)).toBe(true);
    expect(recorded.entries.every(({ text }, i) => text.equals(texts[i] as Buffer))).toBe(true);
  }
});

describe('manifest', () => {
  test('carries the digest of the version as its magic', () => {
    const { document } = replayJournal(null, [], { time: '2026-02-03T04:05:06Z', version: '3.255.0' });
    expect(JSON.parse(document.toString('utf8')).deployment.manifest).toEqual({
      time: '2026-02-03T04:05:06Z',
      magic: '798fce3dbbb75ace6d0a8260c75626cdd2c66e2cfc0fd9ea79579d19dc19f7c1',
      version: '3.255.0',
    });
  });

  test('has no magic without a version', () => {
    const { document } = replayJournal(null, [], manifest);
    expect(JSON.parse(document.toString('utf8')).deployment.manifest).toEqual({ ...manifest, magic: '' });
  });
});

describe('byteString of the base', () => {
  const base = Buffer.from(
    '{"version":4,"features":["byteString"],"deployment":{"resources":[{"urn":"a","type":"t"}]}}',
  );
  test('stays', () => {
    expect(replayJournal(base, [], manifest).features).toEqual(['byteString']);
  });

  test('is dropped with the last resource', () => {
    const remove = { sequenceId: 1, text: Buffer.from('{"kind":1,"operationID":1,"removeOld":0}') };
    expect(replayJournal(base, [remove], manifest).features).toEqual([]);
  });

  test('is kept in a snapshot', () => {
    const restored = JournalReplay.restore(base, new JournalReplay(base).snapshot());
    expect(restored.generate(manifest).features).toEqual(['byteString']);
  });
});

function snippetsEntry(sequenceId: number, snippets: string): JournalEntryText {
  return { sequenceId, text: Buffer.from(`{"kind":9,"sequenceID":${sequenceId},"snippets":${snippets}}`) };
}
