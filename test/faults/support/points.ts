import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import type { RawClient } from '../../../bench/support/raw-client.ts';
import type { Cluster } from '../../../testkit/cluster.ts';
import { until } from '../../../testkit/until.ts';
import { creation } from '../../support/journal-entries.ts';
import { query } from './audit.ts';

/** Prepares one write to a stack. */
export type Begin = (client: RawClient, path: string, document: Buffer) => Promise<PreparedWrite>;

export interface PreparedWrite {
  readonly write: () => Promise<string>;
  /** What is left to do after it. */
  readonly end: () => Promise<string>;
}

/** Writes of a whole document. */
export const documentWrites: Readonly<Record<string, Begin>> = {
  verbatim: async (client, path, document) => {
    const update = await client.startUpdate(path);
    return { write: () => client.verbatim(update, document, 1), end: () => client.complete(update) };
  },
  full: async (client, path, document) => {
    const update = await client.startUpdate(path);
    return { write: () => client.checkpoint(update, document), end: () => client.complete(update) };
  },
  import: async (client, path, document) => ({
    write: () => client.call('POST', `${path}/import`, document, { gzip: true }),
    end: async () => '',
  }),
};

export const writeJournal: Begin = async (client, path) => {
  const update = await client.startUpdate(path, { journal: true });
  const stack = path.split('/').at(-1) as string;
  const entries = Array.from({ length: 20 }, (_, at) => creation(at * 2 + 1, `r${at}`, { project: 'points', stack }));
  const body = { entries: entries.flat() };
  return {
    write: () => client.call('PATCH', `${update.path}/journalentries`, body, { auth: update.lease, gzip: true }),
    end: () => client.complete(update),
  };
};

/**
 * Runs the job of a call, which another run holds, a second time in parallel, and waits until that run has succeeded. On a busy machine the call may
 * give the job up before that, and have its next job committed: then that one is the second run.
 */
export async function runAgain(cluster: Cluster, path: string, call: Promise<unknown>): Promise<void> {
  let hasEnded = false;
  const end = (): void => {
    hasEnded = true;
  };
  call.then(end, end);
  const stackId = await stackIdOf(cluster, path);
  const connection = new Redis(cluster.redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue('writes-small', { connection, prefix: 'holdfast' });
  try {
    const isCommitted = () => runOnceMore(cluster, queue, stackId, () => hasEnded);
    await until(async () => hasEnded || (await isCommitted()), 'the second run has succeeded');
  } finally {
    await queue.close();
    connection.disconnect();
  }
}

async function runOnceMore(
  cluster: Cluster,
  queue: Queue,
  stackId: string | undefined,
  isOver: () => boolean,
): Promise<boolean> {
  // It may have completed by now: it is run again anyway.
  const inHand = await until(async () => {
    if (isOver()) return 'none';
    const jobs = await queue.getJobs(['active', 'delayed', 'completed']);
    const [row] = await query<{ id: string }>(
      cluster,
      `select id from job_admissions
       where id = any($1) and coalesce(job ->> 'stackId', job -> 'fence' ->> 'stackId') = $2 and expires_at > clock_timestamp()`,
      [jobs.map(({ id }) => id), stackId],
    );
    return jobs.find(({ id }) => id === row?.id) ?? false;
  }, 'the job is there');
  if (inHand === 'none') return true;
  const jobId = randomUUID();
  await query(
    cluster,
    `insert into job_admissions select $1, job, body_key, body_chunks, body_bytes, expires_at from job_admissions where id = $2`,
    [jobId, inHand.id],
  );
  // Like a job of the server: an attempt may fail because the machine is busy.
  const backoff = { type: 'fixed', delay: 500 };
  const again = await queue.add(inHand.name, inHand.data, { jobId, attempts: 5, backoff });
  const hasEnded = async () => isOver() || (await again.isCompleted()) || (await again.isFailed());
  await until(hasEnded, 'the second run has ended');
  return again.isCompleted();
}

/** Locked rows of a stack, so that nothing can be committed to it. */
export interface StackLock extends AsyncDisposable {
  [Symbol.asyncDispose](): Promise<void>;
  /** Resolves when a commit has reached the lock. */
  untilSomeoneWaits(): Promise<void>;
  release(): Promise<void>;
}

export async function lockStack(cluster: Cluster, path: string): Promise<StackLock> {
  const id = await stackIdOf(cluster, path);
  const client = new pg.Client({ connectionString: cluster.databaseUrl });
  // The server may be killed while the lock is held.
  client.on('error', () => {});
  await client.connect();
  await client.query('begin');
  await client.query('select 1 from stacks where id = $1 for update', [id]);
  await client.query('select 1 from updates where stack_id = $1 for update', [id]);
  const [own] = (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows;
  const waiters = 'select pid from pg_stat_activity where $1 = any(pg_blocking_pids(pid))';
  return {
    untilSomeoneWaits: async () => {
      const isAwaited = async () => (await query(cluster, waiters, [own?.pid])).length > 0;
      await until(isAwaited, `a commit waits for ${path}`, { everyMs: 50 });
    },
    release: async () => {
      await client.query('rollback');
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

/** The id of the stack at this path of the API; its name must be unique. */
export async function stackIdOf(cluster: Cluster, path: string): Promise<string | undefined> {
  const name = path.split('/').at(-1);
  const [row] = await query<{ id: string }>(cluster, 'select id from stacks where name = $1', [name]);
  return row?.id;
}
