import { describe, expect, test } from '@jest/globals';
import {
  comparable,
  type JournalCase,
  type JournalDocument,
  loadLargeCase,
  loadSmallCases,
} from '../../../test/fixtures/journal/journal-cases.ts';
import type { JournalEntryText } from './journal-entry.ts';
import { JournalReplay, replayJournal } from './replay.ts';

const manifest = { time: '2026-01-01T00:00:00Z', version: '' };

/** As Pulumi computes it, which forgets byteString. */
function replay({ base }: JournalCase, entries: readonly JournalEntryText[]): JournalDocument {
  const { document } = replayJournal(base, entries, { manifest, keepByteString: false });
  return JSON.parse(document.toString('utf8'));
}

const smallCases = loadSmallCases();

describe('recorded journals', () => {
  test.each(smallCases.map((recorded) => [recorded.name, recorded] as const))('%s', (_, recorded) => {
    const { entries, expected, expectedBySequence, expectedPrefixes, arrivalOutOfOrder } = recorded;
    expect(comparable(replay(recorded, entries))).toEqual(comparable(expectedBySequence ?? expected));
    for (const { upTo, deployment } of expectedPrefixes) {
      const options = { ignoresResourceOrder: arrivalOutOfOrder };
      const actual = replay(recorded, entries.slice(0, upTo));
      expect({ upTo, ...comparable(actual, options) }).toEqual({ upTo, ...comparable(deployment, options) });
    }
  });
});
