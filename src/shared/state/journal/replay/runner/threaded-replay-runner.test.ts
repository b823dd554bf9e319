import { afterAll, describe, expect, test } from '@jest/globals';
import {
  type JournalCase,
  loadLargeCase,
  loadSmallCases,
} from '../../../../../../test/fixtures/journal/journal-cases.ts';
import { encodeDocument } from '../../../checkpoints/document-codec.ts';
import { InvalidJournalError, type ReplayRunner, replayHere } from './replay-runner.ts';
import type { JournalPage } from './replay-work.ts';
import { ThreadedReplayRunner } from './threaded-replay-runner.ts';

const manifest = { time: '2026-01-01T00:00:00Z', version: '' };

const threaded = new ThreadedReplayRunner();
afterAll(() => threaded.close());

function pageOf(entries: JournalCase['entries']): JournalPage {
  const text = Buffer.allocUnsafeSlow(entries.reduce((sum, entry) => sum + entry.text.length, 0));
  Buffer.concat(entries.map((entry) => entry.text)).copy(text);
  return {
    sequenceIds: entries.map(({ sequenceId }) => sequenceId),
    lengths: entries.map((entry) => entry.text.length),
    text,
  };
}

/** Replays half of the journal, takes a snapshot, and replays the rest from that snapshot. */
async function resultsOf(runner: ReplayRunner, recorded: JournalCase): Promise<unknown> {
  const entries = [...recorded.entries].sort((a, b) => a.sequenceId - b.sequenceId);
  const half = Math.floor(entries.length / 2);
  const base = recorded.base && encodeDocument(recorded.base);
  const first = await runner.open({ base: base && { ...base, bytes: Buffer.from(base.bytes) }, snapshot: null });
  const atHalf = await first.apply(pageOf(entries.slice(0, half)));
  const snapshot = await first.snapshot();
  first.close();
  const second = await runner.open({ base, snapshot: { document: snapshot, entries: half } });
  const atEnd = await second.apply(pageOf(entries.slice(half)));
  const written = await second.write(manifest);
  const encoded = await second.encode(manifest);
  second.close();
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
  return [
    [first.initialProgress, atHalf, second.initialProgress, atEnd],
    [written.resourceCount, Buffer.from(written.document).toString()],
    [encoded.resourceCount, encoded.document.sizeBytes, hex(encoded.document.sha256), hex(encoded.document.bytes)],
    [snapshot.sizeBytes, hex(snapshot.sha256), hex(snapshot.bytes)],
  ];
}

describe('a replay in a thread has the same results as one in this thread', () => {
  test('recorded journals', async () => {
    for (const recorded of loadSmallCases())
      expect([recorded.name, await resultsOf(threaded, recorded)]).toEqual([
        recorded.name,
        await resultsOf(replayHere, recorded),
      ]);
  });

  // A matcher that prints the difference takes seconds on a journal of this size.
  test('a large journal', async () => {
    const recorded = loadLargeCase('2500-create-cut');
    const [expected, actual] = [await resultsOf(replayHere, recorded), await resultsOf(threaded, recorded)];
    expect(JSON.stringify(actual) === JSON.stringify(expected)).toBe(true);
  });

  test.each(Object.entries({ threaded, replayHere }))('%s rejects invalid input and continues', async (_, runner) => {
    const replay = await runner.open({ base: null, snapshot: null });
    const outOfRange = { sequenceId: 1, text: Buffer.from('{"kind":1,"operationID":1,"removeOld":7}') };
    const rejected = replay.apply(pageOf([outOfRange]));
    await expect(rejected).rejects.toThrow(InvalidJournalError);
    await expect(rejected).rejects.toThrow('Journal entry 1: "removeOld" is 7, but the base has 0 resources');
    expect(await replay.apply(pageOf([]))).toEqual({
      entries: 0,
      lastSequenceId: 0,
      hasGap: false,
      unknownKinds: null,
    });
    const noJson = encodeDocument(Buffer.from('{'));
    await expect(runner.open({ base: noJson, snapshot: null })).rejects.toThrow(InvalidJournalError);
    replay.close();
  });

  test.each(Object.entries({ threaded, replayHere }))(
    '%s starts from the base if the snapshot does not match',
    async (_, runner) => {
      const snapshot = { document: encodeDocument(Buffer.from('from another release')), entries: 5 };
      const replay = await runner.open({ base: null, snapshot });
      expect(replay.initialProgress).toEqual({ entries: 0, lastSequenceId: 0, hasGap: false, unknownKinds: null });
      replay.close();
    },
  );
});

describe('a thread that dies', () => {
  /** A thread that responds to nothing but `open`, and runs `onApply` at the first page. */
  const dyingRunner = (onApply: string): ThreadedReplayRunner => {
    const source = `
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ call, step }) => {
        const result = { entries: 0, lastSequenceId: 0, hasGap: false, unknownKinds: null };
        if (step.name === 'open') parentPort.postMessage({ call, result });
        if (step.name === 'apply') { ${onApply} }
      });`;
    return new ThreadedReplayRunner(new URL(`data:text/javascript,${encodeURIComponent(source)}`));
  };
  const deaths = { exits: 'process.exit(0)', throws: 'throw new Error("out of everything")' };

  test.each(Object.entries(deaths))(
    'and %s has its pending calls rejected; the next replay gets a new one',
    async (_, death) => {
      const runner = dyingRunner(death);
      for (let round = 1; round <= 2; round++) {
        const replay = await runner.open({ base: null, snapshot: null });
        const pending = [replay.snapshot(), replay.apply(pageOf([])), replay.write(manifest)];
        for (const result of await Promise.allSettled(pending))
          expect(result).toMatchObject({ status: 'rejected', reason: { code: 'unavailable', status: 503 } });
        await expect(replay.encode(manifest)).rejects.toThrow('has ended');
      }
      await runner.close();
    },
  );

  test('because it is closed has its pending calls rejected', async () => {
    const runner = dyingRunner('');
    const replay = await runner.open({ base: null, snapshot: null });
    const pending = expect(replay.snapshot()).rejects.toThrow('has ended');
    await runner.close();
    await pending;
  });
});
