import { describe, expect, test } from '@jest/globals';
import { createLogger } from '../platform/logger/logger.ts';
import { createIncrementalRequest, createSnapshotRequest } from './journal-requests.ts';

const requests = [
  ['a snapshot', createSnapshotRequest, 'snapshot not taken'],
  ['incremental compaction', createIncrementalRequest, 'journal not compacted incrementally'],
] as const;

describe.each(requests)('a request for %s', (_what, createRequest, message) => {
  test('does not wait for a queue that hangs', async () => {
    const request = createRequest(() => new Promise(() => {}), createLogger({ level: 'debug' }));
    await request(crypto.randomUUID());
  });

  test('logs that the queue has refused it', async () => {
    const { promise: line, resolve } = Promise.withResolvers<string>();
    const request = createRequest(
      () => Promise.reject(new Error('no')),
      createLogger({ level: 'debug' }, { write: resolve }),
    );
    await request(crypto.randomUUID());
    expect(await line).toContain(message);
  });
});
