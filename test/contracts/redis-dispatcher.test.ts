import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { Type } from 'typebox';
import {
  createJobAdmissionRepository,
  type JobAdmissionRepository,
} from '../../src/shared/jobs/job-admission-repository.ts';
import type { Job } from '../../src/shared/jobs/job-list.ts';
import { JobQueueView } from '../../src/shared/jobs/job-queue-view.ts';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { type Database, openDatabase } from '../../src/shared/platform/db/database.ts';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { ConflictError, UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { JobPendingError, JobWithdrawnError } from '../../src/shared/platform/errors/outcome.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import {
  createOutcomeRepository,
  type OutcomeRepository,
} from '../../src/shared/platform/outcomes/outcome-repository.ts';
import { PayloadMissingError } from '../../src/shared/platform/payloads/payload-store.ts';
import { QueueUnavailableError } from '../../src/shared/platform/redis/queue-unavailable.ts';
import { assertNoEviction, RedisPolicyError, untilReady } from '../../src/shared/platform/redis/redis.ts';
import { JournalClaimedError } from '../../src/shared/state/journal/journal-compactor.ts';
import { startStopwatch } from '../support/running-time.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import {
  compactionJob,
  describeDispatcher,
  gate,
  idOf,
  largeBytes,
  longWaitMs,
  openGates,
} from './dispatcher-suite.ts';
import { type ApiSide, openApiSide, openWorkerSide, type WorkerSide } from './redis-queue.ts';
import { describeOnRedis } from './redis-under-test.ts';

const silent = createLogger({ level: 'silent' });
/** A call that ends within this did not use up its wait. */
const soonMs = longWaitMs / 3;
/** A wait that ends during a test: longer than a busy machine needs to begin its job. */
const shortWaitMs = 15_000;
/** A worker's lock in tests of workers that die. A busy machine may run no timer for seconds. */
const lockMs = 5_000;

await describeOnRedis((server) => {
  let database: TestDatabase;
  let db: Database;
  let admissions: JobAdmissionRepository;
  let jobResults: OutcomeRepository;
  let redis: Redis;
  const open: { close(): Promise<void> }[] = [];
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);

  beforeAll(async () => {
    database = await createTestDatabase();
    db = await openDatabase({ ...parseConfig({}).database, url: database.url, poolSize: 20 });
    admissions = createJobAdmissionRepository(db);
    jobResults = createOutcomeRepository(db);
  });
  afterAll(async () => {
    await db.close();
    await database[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    redis = new Redis(server().url);
    await redis.flushall();
    process.on('unhandledRejection', note);
  });
  afterEach(async () => {
    openGates();
    for (const part of open.splice(0).reverse()) await part.close();
    redis.disconnect();
    process.off('unhandledRejection', note);
    expect(unhandled.splice(0)).toEqual([]);
  });

  const track = <T extends { close(): Promise<void> }>(part: T): T => {
    open.push(part);
    return part;
  };
  const api = async (options: Partial<Parameters<typeof openApiSide>[0]> = {}): Promise<ApiSide> =>
    track(await openApiSide({ url: server().url, admissions, jobResults, ...options }));
  const worker = (
    work: (job: Job) => Promise<void>,
    options: Partial<Parameters<typeof openWorkerSide>[0]> = {},
  ): WorkerSide => track(openWorkerSide({ url: server().url, admissions, jobResults, work, ...options }));

  describeDispatcher(
    'worker processes',
    async ({ work, onEnded, waitMs = longWaitMs, concurrency = 4 }) => {
      const side = await openApiSide({ url: server().url, admissions, jobResults, waitMs });
      const workers = openWorkerSide({
        url: server().url,
        admissions,
        jobResults,
        work,
        concurrency,
        ...(onEnded === undefined ? {} : { onEnded }),
      });
      const close = async (): Promise<void> => {
        await side.close();
        await workers.close();
      };
      return { dispatcher: side.dispatcher, look: () => side.monitor.poll(), close };
    },
    shortWaitMs,
  );

  describe('a call whose notification is lost', () => {
    it('finds the job result when the worker cannot publish', async () => {
      const { dispatcher } = await api();
      const { publisher } = worker(async () => {});
      await untilReady(publisher, longWaitMs);
      publisher.disconnect();
      expect(await timed(() => dispatcher.run(compactionJob()))).toMatchObject({ outcome: 'resolved', soon: true });
    });

    it('finds an error result in the same way', async () => {
      const { dispatcher, subscriber } = await api();
      await until(() => subscriber.status === 'ready', 'subscribed');
      subscriber.disconnect();
      worker(async () => {
        throw new ConflictError('no');
      });
      await expect(dispatcher.run(compactionJob())).rejects.toThrow(ConflictError);
    });

    it('is notified again after the subscription was cut', async () => {
      await using proxy = await openTcpProxy(server().url);
      const { dispatcher, producer, subscriber } = await api({ url: proxy.url.replace(/\/$/, '') });
      worker(async () => {});
      await dispatcher.run(compactionJob());
      // A call while the producer is away fails at once.
      const connections = [producer, subscriber];
      const isCut = Promise.all(connections.map((each) => new Promise<void>((resolve) => each.once('close', resolve))));
      proxy.cut();
      await isCut;
      await until(() => connections.every(({ status }) => status === 'ready'), 'both are there again');
      // A call without a notification asks for its job result after a second.
      await until(async () => (await timed(() => dispatcher.run(compactionJob()))).ms < 900, 'notified by a message');
    });

    it('ignores what others publish on the channel', async () => {
      const held = gate();
      const { dispatcher } = await api();
      worker(held.pass);
      let resolved = false;
      const run = dispatcher.run(compactionJob()).then(() => {
        resolved = true;
      });
      await until(() => held.arrived() === 1, 'it runs');
      const [channel] = (await redis.pubsub('CHANNELS', 'holdfast:done:*')) as [string];
      const [jobId] = await jobIds(redis);
      for (const message of [
        '',
        '{',
        'null',
        '{"jobId":5}',
        JSON.stringify({ jobId: randomUUID(), result: 'settled' }),
      ])
        await redis.publish(channel, message);
      for (const result of ['settled', 'failed']) await redis.publish(channel, JSON.stringify({ jobId, result }));
      await sleep(200);
      expect(resolved).toBe(false);
      held.open();
      await run;
    });
  });

  describe('a job that Redis loses', () => {
    it('while it waits for a worker is reported soon', async () => {
      const { dispatcher } = await api();
      const run = timed(() => dispatcher.run(compactionJob()));
      await until(async () => (await jobIds(redis)).length === 1, 'it waits');
      await redis.flushall();
      expect(await run).toMatchObject({ outcome: 'UnavailableError', soon: true });
    });

    it('while it runs is reported soon, too, and the worker continues with others', async () => {
      const held = gate();
      const { dispatcher } = await api();
      worker(held.pass);
      const run = timed(() => dispatcher.run(compactionJob()));
      await until(() => held.arrived() === 1, 'it runs');
      await redis.flushall();
      expect(await run).toMatchObject({ outcome: 'UnavailableError', soon: true });
      held.open();
      await dispatcher.run(compactionJob());
    });

    it('by a restart of Redis is reported soon, and new jobs are done', async () => {
      const { dispatcher, producer } = await api();
      const done: string[] = [];
      const held = gate();
      worker(
        async (job) => {
          if (idOf(job) === 'held') await held.pass();
          done.push(idOf(job));
        },
        { concurrency: 1 },
      );
      const first = timed(() => dispatcher.run(compactionJob('held')));
      await until(() => held.arrived() === 1, 'one runs');
      const second = timed(() => dispatcher.run(compactionJob('waits')));
      await until(async () => (await jobIds(redis)).length === 2, 'one waits');
      await server().kill();
      await server().restart();
      // The running one is committed, whatever Redis knows about it.
      held.open();
      await untilReady(producer, longWaitMs);
      await until(() => done.length === 1, 'committed');
      expect((await first).outcome).toMatch(/^(resolved|UnavailableError)$/);
      expect(await second).toMatchObject({ outcome: 'UnavailableError', soon: true });
      expect(await timed(() => dispatcher.run(compactionJob('after')))).toMatchObject({
        outcome: 'resolved',
        soon: true,
      });
      expect(done).toEqual(['held', 'after']);
    });
  });

  it('a call keeps waiting while Postgres is away, and gets its result when it is back', async () => {
    let away = true;
    const faulty: OutcomeRepository = {
      ...jobResults,
      find: async (jobId) => {
        if (away) throw new Error('connection refused');
        return jobResults.find(jobId);
      },
    };
    const { dispatcher } = await api({ jobResults: faulty });
    worker(async () => {});
    setTimeout(() => {
      away = false;
    }, 1_500);
    await dispatcher.run(compactionJob());
  });

  it('a job waits for a worker that starts later', async () => {
    const { dispatcher } = await api();
    const run = dispatcher.run(compactionJob());
    await until(async () => (await jobIds(redis)).length === 1, 'it waits');
    worker(async () => {});
    await run;
  });

  it('a job whose journal another process compacts leaves its slot to others, and runs later', async () => {
    const { dispatcher } = await api();
    let isClaimed = true;
    let runs = 0;
    const work = async (job: Job): Promise<void> => {
      if (!('updateId' in job) || job.updateId !== 'claimed') return;
      runs++;
      if (isClaimed) throw new JournalClaimedError();
    };
    worker(work, { concurrency: 1 });
    let isDone = false;
    const claimed = dispatcher.run(compactionJob('claimed'), { fairnessKey: 'org' }).then(() => {
      isDone = true;
    });
    // More often than a job may fail.
    await until(() => runs > 4, 'it is offered again');
    await dispatcher.run(compactionJob('other'));
    expect(isDone).toBe(false);
    isClaimed = false;
    await claimed;
  });

  it('a job that was queued although its call got an error is refused, and not reported as given up', async () => {
    const { dispatcher, queues } = await api();
    const queue = await queues.get('small');
    const add = queue.add.bind(queue);
    queue.add = async (...job) => {
      await add(...job);
      throw new Error('Command timed out');
    };
    await expect(dispatcher.run(compactionJob())).rejects.toThrow(QueueUnavailableError);
    queue.add = add;
    const [id] = (await jobIds(redis)) as [string];
    await until(async () => (await admissions.find(id))?.expired === true, 'it may not run');
    const work = async (): Promise<void> => {
      throw new PayloadMissingError();
    };
    const side = openWorkerSide({ url: server().url, admissions, jobResults, work });
    await until(async () => (await queue.getJobState(id)) === 'failed', 'refused');
    await side.close();
    const failed = (await side.metrics.jobsEnded.get()).values.filter(({ labels }) => labels.outcome === 'failed');
    expect(failed.reduce((sum, { value }) => sum + value, 0)).toBe(0);
  });

  describe('a job whose call gives up', () => {
    it('is withdrawn before a worker has taken it, and never runs even if Redis restores it', async () => {
      const { dispatcher, monitor, queues } = await api({ waitMs: shortWaitMs });
      const calls = [0, largeBytes, 0].map((bytes) => dispatcher.run(compactionJob(), { bytes, fairnessKey: 'org' }));
      await until(async () => (await jobIds(redis)).length === 3, 'they wait');
      const [id] = (await jobIds(redis)) as [string];
      for (const call of calls) call.catch(() => {});
      for (const call of calls) await expect(call).rejects.toThrow(JobWithdrawnError);
      await monitor.poll();
      expect(Object.values(monitor.queueStates).map(({ waiting }) => waiting)).toEqual([0, 0]);
      expect(await jobIds(redis)).toEqual([]);
      await until(async () => (await admissions.find(id))?.expired === true, 'it may not run');
      const queue = await queues.get('small');
      await queue.add('compact-journal', { replyTo: `holdfast:done:${randomUUID()}` }, { jobId: id });
      worker(async () => {
        throw new Error('it runs');
      });
      await until(async () => (await queue.getJobState(id)) === 'failed', 'refused');
      expect((await queue.getJob(id))?.failedReason).toMatch(/^not admitted/);
    });

    it('goes on if a worker took it and stalled: that worker may still be running it', async () => {
      const held = gate();
      await using proxy = await openTcpProxy(server().url);
      const { dispatcher, queues } = await api({ waitMs: shortWaitMs });
      worker(held.pass, { url: proxy.url, lockMs });
      const run = dispatcher.run(compactionJob());
      run.catch(() => {});
      await until(() => held.arrived() === 1, 'it runs');
      const [id] = (await jobIds(redis)) as [string];
      proxy.hang();
      // As the check for stalled jobs of another worker does.
      await redis.del(`holdfast:writes-small:${id}:lock`);
      await redis.lrem('holdfast:writes-small:active', 1, id);
      await redis.rpush('holdfast:writes-small:wait', id);
      await expect(run).rejects.toThrow(JobPendingError);
      expect(await (await queues.get('small')).getJobState(id)).toBe('waiting');
      proxy.resume();
      held.open();
    });
  });

  describe('a job delivered twice', () => {
    it('is taken over when its worker hangs, and reported once', async () => {
      const held = gate();
      const runs: string[] = [];
      const resultsBefore = await countJobResults(db);
      await using proxy = await openTcpProxy(server().url);
      const { dispatcher } = await api();
      worker(
        async () => {
          runs.push('stalled');
          await held.pass();
        },
        { url: proxy.url, lockMs },
      );
      const run = timed(() => dispatcher.run(compactionJob()));
      await until(() => held.arrived() === 1, 'it runs');
      proxy.hang();
      const second = worker(async () => void runs.push('second'), { lockMs });
      expect(await run).toMatchObject({ outcome: 'resolved', soon: true });
      expect(runs).toEqual(['stalled', 'second']);
      proxy.resume();
      held.open();
      expect(await countJobResults(db)).toBe(resultsBefore + 1);
      // It lost its lock but can still work.
      await second.close();
      await dispatcher.run(compactionJob());
      expect(runs).toEqual(['stalled', 'second', 'stalled']);
    });

    it('is not run again when the first worker stored the result before it died', async () => {
      let runs = 0;
      const ended: string[] = [];
      const written = Promise.withResolvers<void>();
      const gone = Promise.withResolvers<void>();
      const dying: OutcomeRepository = {
        ...jobResults,
        insert: async (jobId, outcome) => {
          const result = await jobResults.insert(jobId, outcome);
          written.resolve();
          await gone.promise;
          return result;
        },
      };
      await using proxy = await openTcpProxy(server().url);
      const { dispatcher, monitor } = await api();
      const died = openWorkerSide({
        url: proxy.url,
        admissions,
        jobResults: dying,
        lockMs,
        work: async () => void runs++,
      });
      const run = dispatcher.run(compactionJob());
      await written.promise;
      proxy.hang();
      const { metrics } = worker(async () => void runs++, {
        lockMs,
        onEnded: async (job) => void ended.push(idOf(job)),
      });
      await run;
      await until(() => ended.length === 1, 'tidied up');
      expect(runs).toBe(1);
      // That is no tampering with Redis.
      expect((await metrics.queueRejected.get()).values).toEqual([]);
      await until(async () => {
        await monitor.poll();
        return monitor.queueStates.small.active === 0;
      }, 'none is left');
      proxy.resume();
      gone.resolve();
      await died.close();
    });

    it('that crashes its workers repeatedly fails permanently', async () => {
      const held = gate();
      const ended: string[] = [];
      await using proxy = await openTcpProxy(server().url);
      const { dispatcher, monitor } = await api();
      worker(held.pass, { url: proxy.url, lockMs });
      const run = timed(() => dispatcher.run(compactionJob('killer')));
      await until(() => held.arrived() === 1, 'it runs');
      const [jobId] = (await jobIds(redis)) as [string];
      // As if it had stalled three times before.
      await redis.hset(`holdfast:writes-small:${jobId}`, 'stc', 3);
      proxy.hang();
      worker(async () => {}, { lockMs, onEnded: async (job) => void ended.push(idOf(job)) });
      expect(await run).toMatchObject({ outcome: 'UnavailableError', soon: true });
      // The caller may have found out by itself a moment before.
      await until(() => ended.length > 0, 'the end is reported');
      expect(ended).toEqual(['killer']);
      await monitor.poll();
      expect(monitor.queueStates.small).toMatchObject({ failed: 1, active: 0, waiting: 0 });
      proxy.resume();
      held.open();
    });
  });

  describe('a job that cannot be run', () => {
    it('fails, is reported to the caller at once, and stays visible', async () => {
      const { dispatcher, monitor, queues } = await api();
      const { metrics } = worker(async () => {
        throw Object.assign(new Error('row (42, topsecret) violates'), { code: '23514' });
      });
      const job = compactionJob();
      expect(await timed(() => dispatcher.run(job))).toMatchObject({ outcome: 'UnavailableError', soon: true });
      const { queues: shown } = await new JobQueueView(queues, monitor, admissions).overview(10);
      expect(shown[0]).toMatchObject({ name: 'small', failed: 1, workers: 1 });
      expect(shown[0]?.jobs).toMatchObject([
        { name: 'compact-journal', state: 'failed', updateId: idOf(job), attempts: 3, endedAt: expect.any(Date) },
      ]);
      expect(shown[0]?.jobs[0]?.fault).toMatch(/^Error \(23514\)/);
      const readMetrics = () => metrics.registry.metrics();
      const counted = 'holdfast_jobs_ended_total{name="compact-journal",outcome="failed"} 1';
      await until(async () => (await readMetrics()).includes(counted), 'it is counted');
      expect(await readMetrics()).toContain('holdfast_job_errors_total{name="compact-journal"} 3');
      // It delays nobody.
      await expect(dispatcher.run(compactionJob())).rejects.toThrow(UnavailableError);
    });

    it('with a payload of another release is left to that release, not dropped', async () => {
      const { dispatcher, queues, monitor } = await api({ attempts: 8 });
      const seen: Job[] = [];
      worker(async (job) => void seen.push(job));
      const queue = await queues.get('small');
      const id = randomUUID();
      const newer = { ...compactionJob('newer'), schema: 2, more: true };
      await admissions.insert(id, newer as unknown as Job, null, 60);
      await queue.add('compact-journal', { replyTo: `holdfast:done:${randomUUID()}` }, { jobId: id });
      // More often than a fault is retried, without counting as a retry.
      const look = () => queue.getJob(id);
      await until(async () => ((await look())?.attemptsStarted ?? 0) >= 5, 'offered five times');
      expect((await look())?.attemptsMade).toBe(0);
      expect(seen).toEqual([]);
      await monitor.poll();
      expect(monitor.queueStates.small).toMatchObject({ failed: 0 });
      // Here comes the release that knows it.
      await db.query(
        sql.nothing`update job_admissions set job = ${JSON.stringify(compactionJob('newer'))} where id = ${id}`,
      );
      await until(() => seen.length === 1, 'done');
      await dispatcher.run(compactionJob());
    });

    it('with a payload that no release knows is offered until its time is over, then dropped', async () => {
      const { queues } = await api();
      const { metrics } = worker(async () => {});
      const id = randomUUID();
      await admissions.insert(id, { ...compactionJob(), schema: 3 } as unknown as Job, null, 1);
      const queue = await queues.get('small');
      await queue.add('compact-journal', { replyTo: `holdfast:done:${randomUUID()}` }, { jobId: id });
      await until(async () => (await queue.getJobState(id)) === 'failed', 'dropped');
      expect((await queue.getJob(id))?.failedReason).toMatch(/^not admitted \(expired\)/);
      expect(await metrics.registry.metrics()).toContain('holdfast_queue_rejected_total{reason="expired"} 1');
    });

    it('with an unreadable payload fails, and the worker keeps running', async () => {
      const { dispatcher, monitor, queues } = await api();
      const queue = await queues.get('small');
      for (const data of [null, {}, { job: null, replyTo: 7 }, 'text', [1]])
        await queue.add('compact-journal', data as never);
      worker(async () => {});
      await until(async () => {
        await monitor.poll();
        return monitor.queueStates.small.failed === 5;
      }, 'all failed');
      await dispatcher.run(compactionJob());
      const { queues: shown } = await new JobQueueView(queues, monitor, admissions).overview(10);
      expect(shown[0]?.jobs).toHaveLength(5);
      expect(shown[0]?.jobs[0]).toMatchObject({ updateId: null, stackId: null });
    });

    it('whose record is broken in Redis does not stop the worker', async () => {
      const { dispatcher } = await api();
      const run = timed(() => dispatcher.run(compactionJob('broken')));
      await until(async () => (await jobIds(redis)).length === 1, 'it waits');
      const [jobId] = (await jobIds(redis)) as [string];
      await redis.hset(`holdfast:writes-small:${jobId}`, 'data', '{"job":');
      const seen: string[] = [];
      worker(async (job) => void seen.push(idOf(job)), { concurrency: 1, lockMs });
      await dispatcher.run(compactionJob('well'));
      expect(seen).toEqual(['well']);
      void run.catch(() => {});
      await redis.flushall();
      expect(await run).toMatchObject({ outcome: 'UnavailableError' });
    });
  });

  it('Redis never holds a payload, a token, a secret or an error message about them', async () => {
    const { dispatcher } = await api();
    worker(async (job) => {
      if (idOf(job) === 'refused') throw new ConflictError('the body says topsecret');
      if (idOf(job) === 'fails') throw new SyntaxError('Unexpected token in "topsecret"');
    });
    const fence = { updateId: 'the-update', stackId: 'the-stack', epoch: 1 };
    const payloadKey = randomUUID();
    await dispatcher.run(
      { name: 'append-journal', schema: 1, fence, payloadKey, encoding: 'gzip' },
      { fairnessKey: 'org', encryption: { key: Buffer.alloc(32, 'chunk-key'), chunks: 1, bytes: 1 } },
    );
    await dispatcher.run(compactionJob('refused')).catch(() => {});
    await dispatcher.run(compactionJob('fails')).catch(() => {});
    const everything = await dump(redis);
    expect(everything).toContain('SyntaxError');
    expect(everything).not.toMatch(/topsecret|token|worker.*\.ts|chunk-key|the-update|the-stack/i);
    expect(everything).not.toContain(payloadKey);
    for (const id of await jobIds(redis)) {
      const { data } = (await redis.hgetall(`holdfast:writes-small:${id}`)) as { data: string };
      expect(JSON.parse(data)).toEqual({ replyTo: expect.stringMatching(/^holdfast:done:[0-9a-f-]{36}$/) });
    }
  });

  it('keeps the result of a job that may still be run, whatever its age', async () => {
    const [kept, over] = [randomUUID(), randomUUID()];
    await admissions.insert(kept, compactionJob(), null, 3600);
    await admissions.insert(over, compactionJob(), null, -7200);
    for (const id of [kept, over]) await jobResults.insert(id, { result: 'committed' });
    await admissions.deleteExpired(3600);
    await jobResults.deleteOlderThan(-60);
    expect([await jobResults.find(kept), await jobResults.find(over)]).toEqual([{ result: 'committed' }, null]);
    expect([...(await admissions.findJobs([kept, over])).keys()]).toEqual([kept]);
  });

  describe('fairness keys', () => {
    it('end with their calls', async () => {
      const { dispatcher } = await api();
      worker(async () => {});
      await Promise.all([1, 2, 3].map(() => dispatcher.run(compactionJob(), { fairnessKey: 'org' })));
      await until(async () => (await redis.exists('holdfast:share:org')) === 0, 'no key is left');
    });

    it('of dead processes expire', async () => {
      const died = await openApiSide({ url: server().url, admissions, jobResults, waitMs: 30_000 });
      const abandoned = [1, 2, 3, 4].map(() =>
        died.dispatcher.run(compactionJob(), { fairnessKey: 'org' }).catch(() => {}),
      );
      await until(async () => (await jobIds(redis)).length === 4, 'they wait');
      died.producer.disconnect();
      expect(await redis.zcard('holdfast:share:org')).toBe(4);
      expect(await redis.pttl('holdfast:share:org')).toBeLessThanOrEqual(40_000);
      for (const member of await redis.zrange('holdfast:share:org', 0, -1))
        await redis.zadd('holdfast:share:org', Date.now() - 1, member);
      const { dispatcher, queues } = await api();
      const run = dispatcher.run(compactionJob('next'), { fairnessKey: 'org' });
      await until(async () => (await jobIds(redis)).length === 5, 'it waits');
      const queue = await queues.get('small');
      const waiting = await queue.getJobs(['wait', 'prioritized']);
      const jobs = await admissions.findJobs(waiting.map(({ id }) => id as string));
      const next = waiting.find(({ id }) => idOf(jobs.get(id as string) as Job) === 'next');
      expect(next?.priority).toBe(0);
      worker(async () => {});
      await run;
      await Promise.all(abandoned);
      died.subscriber.disconnect();
      await died.close();
    });
  });

  describe('while Redis is away', () => {
    it('a call fails at once, and works when Redis is back', async () => {
      const { dispatcher, producer } = await api();
      worker(async () => {});
      await dispatcher.run(compactionJob());
      await server().kill();
      try {
        for (const call of [
          () => dispatcher.run(compactionJob(), { fairnessKey: 'org' }),
          () => dispatcher.enqueue(compactionJob()),
        ]) {
          const { outcome, ms } = await timed(call);
          expect(outcome).toBe('QueueUnavailableError');
          expect(ms).toBeLessThan(soonMs);
        }
      } finally {
        await server().restart();
      }
      await untilReady(producer, longWaitMs);
      expect(await timed(() => dispatcher.run(compactionJob()))).toMatchObject({ outcome: 'resolved', soon: true });
    });

    it('a dispatcher can be opened, and works when Redis is back', async () => {
      await server().kill();
      let opened: ApiSide;
      try {
        opened = await api({ evenIfAway: true });
        expect(await timed(() => opened.dispatcher.run(compactionJob()))).toMatchObject({
          outcome: 'QueueUnavailableError',
        });
      } finally {
        await server().restart();
      }
      await untilReady(opened.producer, longWaitMs);
      worker(async () => {});
      expect(await timed(() => opened.dispatcher.run(compactionJob()))).toMatchObject({
        outcome: 'resolved',
        soon: true,
      });
    });

    it('a call ends within seconds when Redis hangs', async () => {
      const { dispatcher } = await api();
      await dispatcher.enqueue(compactionJob());
      server().pause();
      try {
        const { outcome, ms } = await timed(() => dispatcher.run(compactionJob(), { fairnessKey: 'org' }));
        expect(outcome).toBe('QueueUnavailableError');
        expect(ms).toBeLessThan(15_000);
      } finally {
        server().resume();
      }
    });

    it('a call with an alternative does not wait for the running job', async () => {
      const held = gate();
      await using proxy = await openTcpProxy(server().url);
      const { dispatcher } = await api({ url: proxy.url });
      worker(held.pass);
      const run = timed(() => dispatcher.run(compactionJob(), { onlyWhileReachable: true }));
      await until(() => held.arrived() === 1, 'it runs');
      proxy.refuse();
      expect(await run).toMatchObject({ outcome: 'QueueUnavailableError' });
      held.open();
      proxy.accept();
    });

    it('the running job is committed, and its caller gets the stored result', async () => {
      const held = gate();
      await using proxy = await openTcpProxy(server().url);
      const { dispatcher } = await api({ url: proxy.url });
      worker(held.pass);
      const run = timed(() => dispatcher.run(compactionJob()));
      await until(() => held.arrived() === 1, 'it runs');
      proxy.refuse();
      held.open();
      expect(await run).toMatchObject({ outcome: 'resolved', soon: true });
      proxy.accept();
    });

    it('the metrics report it', async () => {
      const { monitor } = await api();
      await monitor.poll();
      expect(monitor.redis).toMatchObject({ up: true, memoryLimitBytes: 0 });
      expect(monitor.redis.memoryBytes).toBeGreaterThan(100_000);
      await server().kill();
      try {
        await monitor.poll();
        expect(monitor.redis.up).toBe(false);
      } finally {
        await server().restart();
      }
      await until(async () => {
        await monitor.poll();
        return monitor.redis.up;
      }, 'up again');
    });
  });

  describe('closing', () => {
    it('a worker waits for the running jobs and leaves the others', async () => {
      const held = gate();
      const done: string[] = [];
      const { dispatcher } = await api();
      const first = openWorkerSide({
        url: server().url,
        admissions,
        jobResults,
        concurrency: 1,
        work: async (job) => {
          await held.pass();
          done.push(idOf(job));
        },
      });
      const runs = [dispatcher.run(compactionJob('running'))];
      await until(() => held.arrived() === 1, 'one runs');
      runs.push(dispatcher.run(compactionJob('waits')));
      await until(async () => (await jobIds(redis)).length === 2, 'one waits');
      const closing = first.close();
      await sleep(100);
      held.open();
      await closing;
      await runs[0];
      expect(done).toEqual(['running']);
      worker(async () => {});
      await runs[1];
    });

    it('a paused worker ends its jobs and leaves new ones to others, even one that was waiting for a job', async () => {
      const held = gate();
      const taken: string[] = [];
      const { dispatcher } = await api();
      const first = worker(async (job) => {
        taken.push(idOf(job));
        await held.pass();
      });
      const runs = [dispatcher.run(compactionJob('running'))];
      await until(() => held.arrived() === 1, 'one runs');
      first.workers.pause();
      // Small jobs and large ones.
      for (const bytes of [0, 0, largeBytes, largeBytes]) runs.push(dispatcher.run(compactionJob(), { bytes }));
      await until(async () => (await jobIds(redis)).length === 5, 'they are queued');
      await sleep(500);
      expect(taken).toEqual(['running']);
      let others = 0;
      worker(async () => void others++);
      await Promise.all(runs.slice(1));
      expect(others).toBe(4);
      held.open();
      await runs[0];
    });

    it('a paused worker runs the job that it takes if nobody would learn that it is back', async () => {
      const held = gate();
      const taken: string[] = [];
      const { dispatcher } = await api();
      const side = worker(async (job) => {
        taken.push(idOf(job));
        if (taken.length === 1) await held.pass();
      });
      const runs = [dispatcher.run(compactionJob('running'), { fairnessKey: 'org' })];
      await until(() => held.arrived() === 1, 'one runs');
      const waiting = async () => ((await redis.client('LIST')) as string).match(/cmd=bzpopmin/g)?.length;
      await until(async () => (await waiting()) === 2, 'the workers of small and large jobs wait for one');
      side.workers.pause();
      runs.push(dispatcher.run(compactionJob('second'), { fairnessKey: 'org' }));
      await until(() => taken.length === 2, 'the second runs');
      held.open();
      await Promise.all(runs);
    });

    it('a worker takes only seconds when Redis is away', async () => {
      const { dispatcher } = await api();
      const side = openWorkerSide({ url: server().url, admissions, jobResults, work: async () => {} });
      await dispatcher.run(compactionJob());
      await server().kill();
      try {
        const { ms } = await timed(() => side.close());
        expect(ms).toBeLessThan(soonMs);
      } finally {
        await server().restart();
      }
    });

    it('leaves no connection, no listener and no subscription', async () => {
      const clients = async (): Promise<string[]> =>
        ((await redis.client('LIST')) as string)
          .trim()
          .split('\n')
          .map((line) => line.split(' ', 1)[0] as string);
      const before = new Set(await clients());
      for (let round = 0; round < 3; round++) {
        const side = await openApiSide({ url: server().url, admissions, jobResults });
        const { producer, subscriber } = side;
        const listeners = () =>
          [producer, subscriber].map((one) => one.eventNames().map((name) => one.listenerCount(name)));
        const workers = openWorkerSide({ url: server().url, admissions, jobResults, work: async () => {} });
        await side.dispatcher.run(compactionJob());
        await side.dispatcher.run(compactionJob(), { bytes: 2_000_000 });
        const first = listeners();
        await Promise.all([...Array(100)].map(() => side.dispatcher.run(compactionJob(), { fairnessKey: 'org' })));
        expect(listeners()).toEqual(first);
        await side.close();
        await workers.close();
        expect(subscriber.listenerCount('message')).toBe(0);
      }
      // By id: connections of earlier tests may still be closing.
      await until(async () => (await clients()).every((id) => before.has(id)), 'all connections are gone');
    });

    it('the wait leaves the job to the worker, and its caller to the next call', async () => {
      const held = gate();
      const before = await countJobResults(db);
      const { dispatcher } = await api({ waitMs: shortWaitMs });
      worker(held.pass);
      const run = dispatcher.run(compactionJob());
      run.catch(() => {});
      await until(() => held.arrived() === 1, 'it runs');
      await expect(run).rejects.toThrow(JobPendingError);
      held.open();
      await until(async () => (await countJobResults(db)) === before + 1, 'committed');
    });
  });

  describe('a Redis that may evict keys', () => {
    afterEach(() => redis.config('SET', 'maxmemory-policy', 'noeviction'));

    it.each(['allkeys-lru', 'volatile-ttl'])('is rejected: %s', async (policy) => {
      await redis.config('SET', 'maxmemory-policy', policy);
      await expect(assertNoEviction(redis, silent)).rejects.toThrow(RedisPolicyError);
      await expect(assertNoEviction(redis, silent)).rejects.toThrow(policy);
    });

    it('is accepted with noeviction', async () => {
      await assertNoEviction(redis, silent);
    });

    it('is rejected for a user without INFO, who could queue nothing', async () => {
      await redis.call('ACL', 'SETUSER', 'limited', 'on', 'nopass', '+@all', '-config', '-info', '~*', '&*');
      const limited = new Redis(server().url, { username: 'limited', password: 'any' });
      try {
        await expect(assertNoEviction(limited, silent)).rejects.toThrow(/refuses INFO.*deploy\/redis\/start\.sh/);
        const queue = new Queue('refused', { connection: limited as never, prefix: 'holdfast' });
        queue.on('error', () => {});
        await expect(queue.add('any', {})).rejects.toThrow('NOPERM');
        await queue.close();
      } finally {
        limited.disconnect();
      }
    });
  });
});

/** Ids of the jobs that BullMQ knows. */
async function jobIds(redis: Redis): Promise<string[]> {
  const keys = await redis.keys('holdfast:writes-*:*');
  return keys.flatMap((key) => /:([0-9a-f-]{36})$/.exec(key)?.[1] ?? []);
}

async function countJobResults(db: Database): Promise<number> {
  const { count } = await db.one(
    sql.rows(
      Type.Object({ count: Type.Integer() }),
    )`/* test.countJobResults */ select count(*) as count from job_results`,
  );
  return count;
}

/** Everything in Redis as text. */
async function dump(redis: Redis): Promise<string> {
  const texts: unknown[] = [];
  for (const key of await redis.keys('*')) {
    const type = await redis.type(key);
    texts.push(key);
    if (type === 'string') texts.push(await redis.get(key));
    else if (type === 'hash') texts.push(await redis.hgetall(key));
    else if (type === 'list') texts.push(await redis.lrange(key, 0, -1));
    else if (type === 'set') texts.push(await redis.smembers(key));
    else if (type === 'zset') texts.push(await redis.zrange(key, 0, -1));
    else if (type === 'stream') texts.push(await redis.xrange(key, '-', '+'));
  }
  return JSON.stringify(texts);
}

/** The outcome of the call, and whether it came within `soonMs`. */
async function timed(call: () => Promise<void>): Promise<{ outcome: string; ms: number; soon: boolean }> {
  const elapsedMs = startStopwatch();
  const outcome = await call().then(
    () => 'resolved',
    (error: Error) => error.name,
  );
  const ms = elapsedMs();
  return { outcome, ms, soon: ms < soonMs };
}
