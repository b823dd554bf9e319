import { expect, test } from '@jest/globals';
import { Scrubber } from './scrub.ts';

const mib = 1024 * 1024;

/** A scrubber of documents of `mebibytes`, all of which are due, at 1 MiB/s and at most 10 s at once. */
function scrubberOf(mebibytes: number) {
  let read = 0;
  const none = { claimChecks: async () => [] };
  const counter = { labels: () => ({ inc: () => {} }) };
  const parts = {
    blobs: {},
    documentChecks: { claim: async () => [{ id: 'document', bytes: mebibytes * mib }] },
    ...{ eventSegments: none, policyArchives: none, journalSnapshots: none },
    documentReader: { check: async () => void read++ },
    logger: {},
    metrics: { documentsChecked: counter },
  } as unknown as ConstructorParameters<typeof Scrubber>[0];
  const scrubber = new Scrubber(parts, { bytesPerSecond: mib, periodSeconds: 3_600, burstMs: 10_000 });
  return { run: (seconds: number) => scrubber.run(seconds * 1_000), read: () => read };
}

test('a process that was stopped for days does not read all that is due at once', async () => {
  const { read, run } = scrubberOf(1);
  await run(48 * 3600);
  expect(read()).toBe(10);
  await run(5);
  expect(read()).toBe(15);
});

test('the time that a large document has taken counts whole', async () => {
  const { read, run } = scrubberOf(100);
  await run(5);
  expect(read()).toBe(1);
  await run(60);
  expect(read()).toBe(1);
  await run(40);
  expect(read()).toBe(2);
});
