import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JobDispatcher } from '../../src/shared/jobs/dispatcher.ts';
import type { Job } from '../../src/shared/jobs/job-list.ts';
import {
  ConflictError,
  ForbiddenError,
  PayloadTooLargeError,
  UnavailableError,
} from '../../src/shared/platform/errors/errors.ts';
import { JobPendingError } from '../../src/shared/platform/errors/outcome.ts';
import { PayloadMissingError } from '../../src/shared/platform/payloads/payload-store.ts';
import type { JobHandlers } from '../../src/workers/platform/job-handlers.ts';
import { until } from '../support/until.ts';

/** A dispatcher with workers, all of which run `work` for every job. */
export interface DispatcherUnderTest {
  readonly dispatcher: JobDispatcher;
  /** Refreshes the statistics of `state`. */
  look(): Promise<void>;
  close(): Promise<void>;
}

export interface DispatcherUnderTestOptions {
  readonly work: (job: Job) => Promise<void>;
  readonly onEnded?: (job: Job) => Promise<void>;
  readonly waitMs?: number;
  readonly concurrency?: number;
}

/** How long a call waits for its job: longer than a busy machine needs. */
export const longWaitMs = 120_000;

/** Bodies from this size on go to the large queue. */
export const largeBytes = 1_000_000;

class LeaseGoneError extends ForbiddenError {
  override readonly code = 'lease-gone';
}

/** The smallest possible job; the id is the test's. */
export function compactionJob(updateId: string = randomUUID()): Job {
  return { name: 'compact-journal', schema: 1, updateId };
}

export function idOf(job: Job): string {
  return 'updateId' in job ? job.updateId : '';
}

export function handlersFor(work: (job: Job) => Promise<void>): JobHandlers {
  return {
    'apply-checkpoint': work,
    'import-deployment': work,
    'rename-stack': work,
    'append-journal': work,
    'append-events': work,
    'compact-journal': work,
    'snapshot-journal': work,
  };
}

const gates = new Set<() => void>();

/** Releases what a failed test left waiting, so that it can be closed. */
export function openGates(): void {
  for (const open of gates) open();
  gates.clear();
}

/** A gate that work waits at. */
export function gate(): { readonly arrived: () => number; pass(): Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let arrived = 0;
  gates.add(resolve);
  return {
    arrived: () => arrived,
    pass: () => {
      arrived++;
      return promise;
    },
    open: resolve,
  };
}

/** The behavior that every JobDispatcher shares. `shortWaitMs`: a wait that ends during a test, after its job was begun however busy the machine is. */
export function describeDispatcher(
  name: string,
  start: (options: DispatcherUnderTestOptions) => Promise<DispatcherUnderTest>,
  shortWaitMs: number,
): void {
  describe(`jobs by ${name}`, () => {
    const subjects: DispatcherUnderTest[] = [];
    const open = async (options: DispatcherUnderTestOptions): Promise<DispatcherUnderTest> => {
      const subject = await start(options);
      subjects.push(subject);
      return subject;
    };
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    beforeEach(() => {
      process.on('unhandledRejection', note);
    });
    afterEach(async () => {
      openGates();
      await Promise.all(subjects.splice(0).map((subject) => subject.close()));
      process.off('unhandledRejection', note);
      expect(unhandled.splice(0)).toEqual([]);
    });

    it('resolves only after the work is done', async () => {
      const held = gate();
      const { dispatcher } = await open({ work: held.pass });
      let resolved = false;
      const run = dispatcher.run(compactionJob()).then(() => {
        resolved = true;
      });
      await until(() => held.arrived() === 1, 'the job runs');
      expect(resolved).toBe(false);
      held.open();
      await run;
    });

    it('passes on each job unchanged and once', async () => {
      const seen: Job[] = [];
      const { dispatcher } = await open({ work: async (job) => void seen.push(job) });
      const fence = { updateId: randomUUID(), stackId: randomUUID(), epoch: 3 };
      const jobs: Job[] = [
        {
          name: 'apply-checkpoint',
          schema: 1,
          kind: 'full',
          dialect: 'pulumi',
          fence,
          arrivalSequence: 7,
          payloadKey: 'key',
          encoding: 'gzip',
        },
        { name: 'append-journal', schema: 1, fence, payloadKey: 'key', encoding: 'identity' },
        ...Array.from({ length: 20 }, () => compactionJob()),
      ];
      await Promise.all(jobs.map((job) => dispatcher.run(job)));
      const byText = (job: Job) => JSON.stringify(job);
      expect(seen.map(byText).sort()).toEqual(jobs.map(byText).sort());
    });

    it.each([
      ['its status', new ConflictError('Another update is in progress'), 409, 'conflict'],
      ['a code of its own', new LeaseGoneError('The lease is gone'), 403, 'lease-gone'],
      ['the status of a body too large', new PayloadTooLargeError('Too large'), 413, 'payload-too-large'],
    ])('an error comes back with %s and is final', async (_label, error, status, code) => {
      let runs = 0;
      const work = async (): Promise<void> => {
        runs++;
        throw error;
      };
      const { dispatcher } = await open({ work });
      await expect(dispatcher.run(compactionJob())).rejects.toMatchObject({ status, code, message: error.message });
      expect(runs).toBe(1);
    });

    it('a fault is retried after growing pauses', async () => {
      const at: number[] = [];
      const { dispatcher } = await open({
        work: async () => {
          at.push(performance.now());
          if (at.length < 3) throw new Error('the database is away');
        },
      });
      await dispatcher.run(compactionJob());
      expect(at).toHaveLength(3);
      const [first, second, third] = at as [number, number, number];
      expect(second - first).toBeGreaterThanOrEqual(40);
      expect(third - second).toBeGreaterThanOrEqual(90);
    });

    it('a persistent fault ends as an error that asks the client to retry', async () => {
      let runs = 0;
      const ended: string[] = [];
      const { dispatcher } = await open({
        work: async () => {
          runs++;
          throw new TypeError('the worker has a bug');
        },
        onEnded: async (job) => void ended.push(idOf(job)),
      });
      const job = compactionJob();
      const run = dispatcher.run(job);
      await expect(run).rejects.toThrow(UnavailableError);
      await expect(run).rejects.not.toThrow(JobPendingError);
      expect(runs).toBeGreaterThan(2);
      // The caller may have found out by itself a moment before.
      await until(() => ended.length > 0, 'the end is reported');
      expect(ended).toEqual([idOf(job)]);
    });

    it('a missing body is not retried', async () => {
      let runs = 0;
      const { dispatcher } = await open({
        work: async () => {
          runs++;
          throw new PayloadMissingError();
        },
      });
      await expect(dispatcher.run(compactionJob())).rejects.toThrow(UnavailableError);
      expect(runs).toBe(1);
    });

    it('a call does not wait longer than its limit, and its job is committed anyway', async () => {
      const held = gate();
      let done = false;
      const { dispatcher } = await open({
        waitMs: shortWaitMs,
        work: async () => {
          await held.pass();
          done = true;
        },
      });
      const run = dispatcher.run(compactionJob());
      run.catch(() => {});
      await until(() => held.arrived() === 1, 'it runs');
      await expect(run).rejects.toThrow(JobPendingError);
      await expect(run).rejects.toMatchObject({ status: 503, code: 'job-pending', retryAfterSeconds: 5 });
      expect(done).toBe(false);
      held.open();
      await until(() => done, 'the job continues');
    });

    it('a job that has not begun when its call ends never runs, and counts no more', async () => {
      const held = gate();
      const ran: string[] = [];
      const { dispatcher, look } = await open({
        waitMs: shortWaitMs,
        concurrency: 1,
        work: async (job) => {
          ran.push(idOf(job));
          await held.pass();
        },
      });
      const first = dispatcher.run(compactionJob('first'), { fairnessKey: 'one' });
      first.catch(() => {});
      await until(() => ran.length === 1, 'one runs');
      const withdrawn = ['one', 'two'].map((fairnessKey) => dispatcher.run(compactionJob('late'), { fairnessKey }));
      for (const run of withdrawn) run.catch(() => {});
      await expect(first).rejects.toThrow(JobPendingError);
      for (const run of withdrawn)
        await expect(run).rejects.toMatchObject({ status: 503, code: 'job-withdrawn', retryAfterSeconds: 5 });
      await look();
      expect(dispatcher.state()).toMatchObject({ waiting: 0, active: 1 });
      held.open();
      await dispatcher.run(compactionJob('last'));
      expect(ran).toEqual(['first', 'last']);
    });

    it('setting the clock back does not make a call wait longer', async () => {
      const held = gate();
      let begun = false;
      const work = async () => {
        begun = true;
        await held.pass();
      };
      const { dispatcher } = await open({ waitMs: shortWaitMs, work });
      const { now } = Date;
      const run = dispatcher.run(compactionJob());
      run.catch(() => {});
      await until(() => begun, 'the call waits for its job');
      Date.now = () => now() - 3_600_000;
      try {
        await expect(run).rejects.toThrow(JobPendingError);
      } finally {
        Date.now = now;
        held.open();
      }
    });

    it('enqueue resolves once the job is accepted, whatever its outcome', async () => {
      const held = gate();
      const done: string[] = [];
      const { dispatcher } = await open({
        work: async (job) => {
          await held.pass();
          if (done.length === 0) {
            done.push(idOf(job));
            throw new ConflictError('no');
          }
          done.push(idOf(job));
        },
      });
      await dispatcher.enqueue(compactionJob());
      await dispatcher.enqueue(compactionJob());
      expect(done).toEqual([]);
      held.open();
      await until(() => done.length === 2, 'both ran');
    });

    it.each([
      ['committed', async () => {}],
      [
        'refused',
        async () => {
          throw new ConflictError('no');
        },
      ],
    ])('reports the end of a job that was %s, once, after the work', async (_label, work) => {
      const events: string[] = [];
      const { dispatcher } = await open({
        work: async () => {
          events.push('worked');
          return work();
        },
        onEnded: async () => {
          events.push('ended');
          throw new Error('tidying up fails');
        },
      });
      await dispatcher.run(compactionJob()).catch(() => {});
      await until(() => events.length === 2, 'the end is reported');
      expect(events).toEqual(['worked', 'ended']);
    });

    it('close lets running calls end and accepts no more', async () => {
      const held = gate();
      const subject = await open({ work: held.pass, concurrency: 1 });
      const runs = [subject.dispatcher.run(compactionJob()), subject.dispatcher.run(compactionJob())];
      await until(() => held.arrived() === 1, 'one runs');
      let closed = false;
      const closing = subject.dispatcher.close().then(() => {
        closed = true;
      });
      await expect(subject.dispatcher.run(compactionJob())).rejects.toThrow(UnavailableError);
      await expect(subject.dispatcher.enqueue(compactionJob())).rejects.toThrow(UnavailableError);
      expect(closed).toBe(false);
      held.open();
      await Promise.all([...runs, closing]);
    });

    it('a flood of one organization delays the job of another by only a few', async () => {
      const order: string[] = [];
      const held = gate();
      const { dispatcher, look } = await open({
        concurrency: 1,
        work: async (job) => {
          await held.pass();
          order.push(idOf(job));
        },
      });
      const flood = [dispatcher.run(compactionJob('flood'), { fairnessKey: 'many' })];
      await until(() => held.arrived() === 1, 'the worker is busy');
      for (let index = 0; index < 40; index++)
        flood.push(dispatcher.run(compactionJob('flood'), { fairnessKey: 'many' }));
      // Sent, though not answered: later jobs are ordered after this.
      await dispatcher.enqueue(compactionJob('later'));
      await Promise.all([...Array(3)].map(() => dispatcher.enqueue(compactionJob('later'))));
      const others = ['a', 'b', 'c'].map((fairnessKey) => dispatcher.run(compactionJob(fairnessKey), { fairnessKey }));
      const areAllWaiting = async (): Promise<boolean> => {
        await look();
        return dispatcher.state().waiting === 40 + 4 + others.length;
      };
      await until(areAllWaiting, 'all wait');
      held.open();
      await Promise.all(others);
      const before = order.slice(0, Math.max(...['a', 'b', 'c'].map((fairnessKey) => order.indexOf(fairnessKey))));
      expect(before.filter((id) => id === 'flood').length).toBeLessThanOrEqual(3);
      await Promise.all(flood);
    });

    it('large jobs do not delay small ones', async () => {
      const held = gate();
      const { dispatcher } = await open({
        concurrency: 1,
        work: async (job) => {
          if (idOf(job) === 'large') await held.pass();
        },
      });
      const large = Array.from({ length: 5 }, () => dispatcher.run(compactionJob('large'), { bytes: largeBytes }));
      await until(() => held.arrived() === 1, 'a large one runs');
      await dispatcher.run(compactionJob('small'), { bytes: largeBytes - 1 });
      await dispatcher.run(compactionJob('small'));
      expect(held.arrived()).toBe(1);
      held.open();
      await Promise.all(large);
    });

    it('reports how many jobs wait, run and failed permanently in each queue, and since when', async () => {
      const held = gate();
      const { dispatcher, look } = await open({
        concurrency: 1,
        work: async (job) => {
          if (idOf(job) === 'bad') throw new PayloadMissingError();
          await held.pass();
        },
      });
      await expect(dispatcher.run(compactionJob('bad'))).rejects.toThrow(UnavailableError);
      const runs = [1, 2, 3].map(() => dispatcher.run(compactionJob()));
      runs.push(dispatcher.run(compactionJob(), { bytes: largeBytes }));
      const settled = async (): Promise<boolean> => {
        await look();
        const { queues } = dispatcher.state();
        return queues.small.active === 1 && queues.small.waiting === 2 && queues.large.active === 1;
      };
      await until(settled, 'all are there');
      const hasWaited = async (): Promise<boolean> => {
        await look();
        return dispatcher.state().queues.small.oldestWaitingMs >= 40;
      };
      await until(hasWaited, 'one has waited for 40 ms');
      const state = dispatcher.state();
      expect(state).toMatchObject({ waiting: 2, active: 2, queues: { small: { failed: 1 }, large: { failed: 0 } } });
      expect(state.queues.large.oldestWaitingMs).toBe(0);
      expect(state.oldestWaitingMs).toBe(state.queues.small.oldestWaitingMs);
      held.open();
      await Promise.all(runs);
      await until(async () => {
        await look();
        return dispatcher.state().active === 0;
      }, 'none is left');
      expect(dispatcher.state()).toMatchObject({ waiting: 0, active: 0, oldestWaitingMs: 0 });
    });
  });
}
