import { expect, test } from '@jest/globals';
import type { DispatchOptions, JobDispatcher } from './dispatcher.ts';
import { compactJournal, type Job, snapshotJournal } from './job-list.ts';
import { StateSizingDispatcher } from './state-sizes.ts';

const updateId = crypto.randomUUID();

function open(findBytesOfUpdate: (updateId: string) => Promise<number>) {
  const sent: (number | undefined)[] = [];
  const send = async (_job: Job, options?: DispatchOptions): Promise<void> => void sent.push(options?.bytes);
  const dispatcher: Pick<JobDispatcher, 'run' | 'enqueue'> = { run: send, enqueue: send };
  return { sent, dispatcher: new StateSizingDispatcher(dispatcher as JobDispatcher, { findBytesOfUpdate }) };
}

test('jobs that read the state of a journal have its size, others do not', async () => {
  const { dispatcher, sent } = open(async (id) => (id === updateId ? 9 : 0));
  await dispatcher.run(compactJournal.create({ updateId }));
  await dispatcher.enqueue(compactJournal.create({ updateId }));
  await dispatcher.enqueue(snapshotJournal.create({ updateId }));
  await dispatcher.enqueue(snapshotJournal.create({ updateId, incremental: true }));
  expect(sent).toEqual([9, 9, 9, undefined]);
});

test('a job whose state cannot be measured is sent nevertheless', async () => {
  const { dispatcher, sent } = open(() => Promise.reject(new Error('no connection')));
  await dispatcher.run(compactJournal.create({ updateId }));
  expect(sent).toEqual([undefined]);
});

test('accepted jobs are sent before the dispatcher closes', async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  const { dispatcher, sent } = open(() => promise);
  const enqueued = dispatcher.enqueue(compactJournal.create({ updateId }));
  const settled = dispatcher.settle().then(() => sent.length);
  resolve(1);
  await enqueued;
  expect(await settled).toBe(1);
});
