import { describe, expect, test } from '@jest/globals';
import { loadRefusedMigrations } from '../../../../../../test/fixtures/journal/journal-cases.ts';
import { replayJournal } from '../../../../../../test/support/replay-journal.ts';
import type { JournalEntryText } from '../../journal-batch.ts';
import { JournalReplay } from './apply-entries.ts';
import { JournalReplayError } from './replay-error.ts';
import { ReplaySnapshotError } from './replay-snapshot.ts';

const manifest = { time: '2026-01-01T00:00:00Z', version: '' };
const base = Buffer.from('{"version":3,"deployment":{"resources":[{"urn":"a"},{"urn":"b"}]}}');

function entry(sequenceId: number, fields: string): JournalEntryText {
  return { sequenceId, text: Buffer.from(`{${fields}}`) };
}

function urnsAfter(...entries: JournalEntryText[]): string[] {
  const { document } = replayJournal(base, entries, manifest);
  const { resources } = JSON.parse(document.toString('utf8')).deployment;
  return (resources ?? []).map(({ urn }: { urn: string }) => urn);
}

describe('an invalid entry', () => {
  test.each([
    ['position-out-of-range', '"kind":1,"operationID":1,"removeOld":2'],
    ['position-out-of-range', '"kind":1,"operationID":1,"deleteOld":2'],
    ['position-out-of-range', '"kind":1,"operationID":1,"state":{"urn":"c"},"pendingReplacementOld":9007199254740991'],
    ['position-out-of-range', '"kind":3,"operationID":1,"removeOld":2'],
    ['position-out-of-range', '"kind":4,"operationID":1,"removeOld":2,"state":{}'],
    ['malformed-entry', '"kind":1,"operationID":1,"removeOld":-1'],
    ['malformed-entry', '"kind":1,"operationID":1,"removeOld":0.5'],
    ['malformed-entry', '"kind":1,"operationID":1,"removeNew":"1"'],
    ['malformed-entry', '"kind":1,"operationID":1,"removeNew":9007199254740993'],
    ['malformed-entry', '"kind":1,"operationID":1,"state":[]'],
    ['malformed-entry', '"kind":1,"state":{}'],
    ['malformed-entry', '"kind":0,"operation":{}'],
    ['malformed-entry', '"kind":0,"operationID":1,"operation":"creating"'],
    ['malformed-entry', '"kind":2'],
    ['malformed-entry', '"kind":5'],
    ['malformed-entry', '"kind":5,"newSnapshot":[]'],
    ['malformed-entry', '"kind":5,"newSnapshot":{"resources":{}}'],
    ['malformed-entry', '"kind":5,"newSnapshot":{"resources":[null]}'],
    ['malformed-entry', '"kind":5,"newSnapshot":{"pending_operations":[1]}'],
    ['malformed-entry', '"kind":6,"secretsProvider":"b64"'],
    ['malformed-entry', '"kind":8,"extensionRef":"x"'],
    ['malformed-entry', '"kind":8,"extensionRef":1,"extension":{}'],
    ['malformed-entry', '"kind":10'],
    ['malformed-entry', '"kind":10,"version":1'],
    ['malformed-entry', '"kind":10,"version":2,"states":{}'],
    ['malformed-entry', '"kind":10,"version":2,"states":[1]'],
    ['malformed-entry', '"kind":10,"version":2,"layout":{}'],
    ['malformed-entry', '"kind":10,"version":2,"layout":[null]'],
    ['malformed-entry', '"kind":10,"version":2,"layout":[{"baseIndex":0.5}]'],
    ['malformed-entry', '"kind":10,"version":2,"layout":[{"baseIndex":0,"stateIndex":0}]'],
    ['malformed-entry', '"kind":10,"version":2,"baseStatePatches":[{"index":0}]'],
    ['malformed-entry', '"kind":10,"version":2,"newStatePatches":[{"operationID":"1","state":{}}]'],
    ['invalid-migration', '"kind":10,"version":2,"states":[{"urn":"urn:pulumi:s::p::t::c","type":"t","custom":true}]'],
    ['unknown-version', '"kind":9,"version":3,"snippets":[]'],
    ['malformed-entry', '"kind":9,"version":"2","snippets":[]'],
    ['malformed-entry', '"kind":"begin"'],
    ['malformed-entry', '"operationID":1'],
    ['malformed-entry', '"kind":1,'],
  ])('is rejected as %s and changes nothing: %s', (code, fields) => {
    const replay = new JournalReplay(base);
    replay.apply(entry(1, '"kind":0,"operationID":1,"operation":{"type":"creating","resource":{"urn":"x"}}'));
    const before = replay.snapshot();
    let thrown: unknown;
    try {
      replay.apply(entry(2, fields));
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(JournalReplayError);
    expect(thrown).toMatchObject({ code, sequenceId: 2 });
    expect(replay.snapshot().equals(before)).toBe(true);
  });

  test.each(loadRefusedMigrations().map((refused) => [refused.name, refused] as const))(
    'a migration of the state is rejected and changes nothing: %s',
    (_, { base: before, entries }) => {
      const replay = new JournalReplay(before);
      const [last, ...earlier] = [...entries].reverse();
      for (const each of earlier.reverse()) replay.apply(each);
      const snapshot = replay.snapshot();
      const error = { name: 'JournalReplayError', sequenceId: last?.sequenceId };
      expect(() => replay.apply(last as JournalEntryText)).toThrow(expect.objectContaining(error));
      expect(replay.snapshot().equals(snapshot)).toBe(true);
    },
  );

  test('a layout of a migration that is far longer than its items is not parsed', () => {
    const urn = 'urn:pulumi:s::p::t::c';
    const items = '{"baseIndex":0},{"stateIndex":0},{"baseIndex":1}]';
    const migrate = (bytes: number) =>
      entry(1, `"kind":10,"version":2,"states":[{"urn":"${urn}","type":"t"}],"layout":[${items.padStart(bytes - 1)}`);
    // 64 bytes for each resource of the base and of the entry, and for the list itself.
    expect(urnsAfter(migrate(4 * 64))).toEqual(['a', urn, 'b']);
    expect(() => urnsAfter(migrate(4 * 64 + 1))).toThrow(expect.objectContaining({ code: 'invalid-migration' }));
  });

  test('a new base after changes to the old one is rejected', () => {
    const write = entry(3, '"kind":5,"newSnapshot":{"resources":[{"urn":"z"}]}');
    const change = entry(1, '"kind":1,"operationID":1,"removeOld":0');
    expect(() => urnsAfter(change, write)).toThrow(expect.objectContaining({ code: 'write-after-changes' }));
    expect(urnsAfter(change, entry(2, '"kind":7'), write)).toEqual(['z']);
  });

  test('an alias with two owners is rejected, whether by generate or by a rebuilt base', () => {
    const claimAlias = (sequenceId: number, urn: string): JournalEntryText =>
      entry(sequenceId, `"kind":1,"operationID":${sequenceId},"state":{"urn":"${urn}","aliases":["old"]}`);
    const replay = new JournalReplay(null);
    for (const each of [claimAlias(1, 'x'), claimAlias(2, 'x'), claimAlias(3, 'y')]) replay.apply(each);
    const conflict = { name: 'JournalReplayError', code: 'alias-conflict' };
    expect(() => replay.generate(manifest)).toThrow(expect.objectContaining({ ...conflict, sequenceId: null }));
    expect(() => replay.apply(entry(4, '"kind":7'))).toThrow(expect.objectContaining({ ...conflict, sequenceId: 4 }));
    replay.apply(entry(4, '"kind":1,"operationID":4,"removeNew":3'));
    expect(replay.generate(manifest).resourceCount).toBe(2);
  });
});

describe('an entry that can be passed over', () => {
  test('a reference to an operation that added nothing is ignored, the rest of the entry counts', () => {
    const entries = [
      entry(1, '"kind":1,"operationID":1,"state":{"urn":"c"},"removeNew":7,"deleteNew":8,"pendingReplacementNew":9'),
      entry(2, '"kind":3,"operationID":2,"removeNew":7,"state":{"urn":"d"}'),
      entry(3, '"kind":4,"operationID":3,"removeNew":7,"state":{"urn":"d"}'),
    ];
    expect(urnsAfter(...entries)).toEqual(['c', 'a', 'b']);
  });

  test('operations from before a rebuilt base are unknown', () => {
    const entries = [
      entry(1, '"kind":1,"operationID":1,"state":{"urn":"c"}'),
      entry(2, '"kind":7'),
      entry(3, '"kind":1,"operationID":2,"removeNew":1'),
    ];
    expect(urnsAfter(...entries)).toEqual(['c', 'a', 'b']);
  });

  test('an unknown kind is counted, its other fields are ignored', () => {
    const unknown = entry(1, '"kind":11,"operationID":"x","removeOld":99,"state":7,"newField":{}');
    expect(urnsAfter(unknown)).toEqual(['a', 'b']);
    const replay = new JournalReplay(base);
    replay.apply(unknown);
    expect(replay.unknownKinds).toEqual({ count: 1, sequenceId: 1, kind: 11 });
  });

  test('fields that a kind does not use are not validated', () => {
    expect(urnsAfter(entry(1, '"kind":2,"operationID":1,"removeOld":99,"state":7'))).toEqual(['a', 'b']);
  });

  test('a secrets manager entry without a provider keeps the existing one', () => {
    const { document } = replayJournal(
      Buffer.from('{"deployment":{"secrets_providers":{"type":"x"}}}'),
      [entry(1, '"kind":6')],
      manifest,
    );
    expect(document.toString('utf8')).toContain('"secrets_providers":{"type":"x"}');
  });

  test('an empty alias renames nothing', () => {
    const other = '{"urn":"urn:pulumi:s::p::t::b","parent":"","provider":""}';
    const { document } = replayJournal(
      Buffer.from(`{"deployment":{"resources":[{"urn":"urn:pulumi:s::p::t::a","aliases":[""]},${other}]}}`),
      [],
      manifest,
    );
    expect(document.toString('utf8')).toContain(`[{"urn":"urn:pulumi:s::p::t::a"},${other}]`);
  });

  test.each([
    '{"dependencies":{"y":1},"propertyDependencies":[["z"]],"replaceWith":"w"}',
    '{"urn":7,"parent":[],"provider":{},"deletedWith":1,"viewOf":null}',
    '{"aliases":{"x":1}}',
  ])('ill-typed references of a resource: %s', (state) => {
    const entries = [entry(1, `"kind":1,"operationID":1,"isRefresh":true,"state":${state}`)];
    const kept = state.replace('{"aliases":{"x":1}}', '{}');
    expect(replayJournal(base, entries, manifest).document.toString('utf8')).toContain(`"resources":[${kept},`);
  });

  test.each(['null', '[ ]', '["x"]', '{ }'])('extensions of the base that are %s', (extensions) => {
    const { document } = replayJournal(
      Buffer.from(`{"deployment":{"extensions":${extensions}}}`),
      [entry(1, '"kind":8,"extensionRef":"a","extension":{}')],
      manifest,
    );
    expect(JSON.parse(document.toString('utf8')).deployment.extensions).toEqual({ a: {} });
  });
});

describe('a base that is not a deployment', () => {
  test.each([
    '',
    'null',
    '[]',
    '{"deployment":[]}',
    '{"deployment":{"resources":{}}}',
    '{"deployment":{"resources":["a"]}}',
    '{"deployment":{"pending_operations":[null]}}',
    '{"deployment":{}',
  ])('is rejected: %s', (text) => {
    const error = { name: 'JournalReplayError', code: 'malformed-base', sequenceId: null };
    expect(() => new JournalReplay(Buffer.from(text))).toThrow(expect.objectContaining(error));
  });

  test.each(['{}', '{"deployment":null}', '{"version":3,"deployment":{"resources":null,"pending_operations":null}}'])(
    'is valid when it is empty: %s',
    (text) => {
      expect(new JournalReplay(Buffer.from(text)).generate(manifest).resourceCount).toBe(0);
    },
  );
});

describe('snapshot', () => {
  const snapshot = new JournalReplay(base).snapshot();

  test('is rejected over another base', () => {
    expect(() => JournalReplay.restore(null, snapshot)).toThrow(ReplaySnapshotError);
    const other = Buffer.from(base.toString('utf8').replace('"a"', '"c"'));
    expect(() => JournalReplay.restore(other, snapshot)).toThrow(ReplaySnapshotError);
  });

  test('is rejected when any byte is changed or missing', () => {
    for (let i = 0; i < snapshot.length; i++) {
      const damaged = Buffer.from(snapshot);
      damaged[i] = (damaged[i] as number) ^ 1;
      expect(() => JournalReplay.restore(base, damaged)).toThrow(ReplaySnapshotError);
      expect(() => JournalReplay.restore(base, snapshot.subarray(0, i))).toThrow(ReplaySnapshotError);
    }
  });
});
