import { expect, test } from '@jest/globals';
import type { AppContext } from '../../shared/context.ts';
import type { DispatchOptions, JobDispatcher } from '../../shared/jobs/dispatcher.ts';
import type { Job } from '../../shared/jobs/job-list.ts';
import { ConflictError } from '../../shared/platform/errors/errors.ts';
import { JobPendingError } from '../../shared/platform/errors/outcome.ts';
import { CompactionCalls } from './compaction-calls.ts';

function open({ waitSeconds = 60 } = {}) {
  const jobs: { updateId: string; fairnessKey: string | undefined; end: () => void; fail: (error: Error) => void }[] =
    [];
  const run = (job: Job, { fairnessKey }: DispatchOptions = {}): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    jobs.push({ updateId: 'updateId' in job ? job.updateId : '', fairnessKey, end: resolve, fail: reject });
    return promise;
  };
  const context = { readOnly: { assertNotFenced: () => {} }, config: { jobs: { waitSeconds } } };
  const dispatcher: Pick<JobDispatcher, 'run'> = { run };
  const compactions = new CompactionCalls(context as unknown as AppContext, dispatcher as JobDispatcher);
  return { compactions, jobs };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('calls that come while a job runs share the next one, which sees their entries', async () => {
  const { compactions, jobs } = open();
  const first = compactions.compact('a');
  let ended = 0;
  const others = Array.from({ length: 50 }, () => compactions.compact('a').then(() => void ended++));
  void compactions.compact('b');
  await turn();
  expect(jobs.map(({ updateId }) => updateId)).toEqual(['a', 'b']);
  jobs[0]?.end();
  await first;
  await turn();
  expect([jobs.length, ended]).toEqual([3, 0]);
  const last = compactions.compact('a');
  jobs[2]?.end();
  await Promise.all(others);
  await turn();
  jobs[3]?.end();
  await last;
  void compactions.compact('a');
  await turn();
  expect(jobs).toHaveLength(5);
});

test('a job counts for the organization of its caller', async () => {
  const { compactions, jobs } = open();
  void compactions.compact('a', 'acme');
  const next = compactions.compact('a', 'acme');
  void compactions.compact('b');
  jobs[0]?.end();
  await turn();
  jobs[2]?.end();
  await next;
  expect(jobs.map(({ fairnessKey }) => fairnessKey)).toEqual(['acme', 'b', 'acme']);
});

test('an error reaches only those whose job it is', async () => {
  const { compactions, jobs } = open();
  const first = compactions.compact('a');
  const second = compactions.compact('a');
  jobs[0]?.fail(new ConflictError('no'));
  await expect(first).rejects.toThrow(ConflictError);
  await turn();
  jobs[1]?.end();
  await second;
});

test('a call does not wait longer for two jobs than for one', async () => {
  const { compactions, jobs } = open({ waitSeconds: 0.05 });
  const first = compactions.compact('a');
  await expect(compactions.compact('a')).rejects.toThrow(JobPendingError);
  const second = compactions.compact('a');
  jobs[0]?.end();
  await first;
  await turn();
  expect(jobs).toHaveLength(2);
  await expect(second).rejects.toThrow(JobPendingError);
  jobs[1]?.end();
});
