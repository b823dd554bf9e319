import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

import { preparePostgres, prepareStandby } from './cluster-postgres.ts';
import { ClusterProcess } from './cluster-process.ts';
import { findFixedPorts } from './fixed-ports.ts';
import { until } from './until.ts';

/** The second is a streaming replica of the first. */
export interface PostgresPair extends AsyncDisposable {
  [Symbol.asyncDispose](): Promise<void>;
  readonly primary: ClusterProcess;
  readonly standby: ClusterProcess;
  readonly primaryUrl: string;
  readonly standbyUrl: string;
  /** The standby receives no further changes, even once it is promoted. */
  cutOff(): Promise<void>;
  /** Resolves when the standby accepts writes. */
  promote(): Promise<void>;
}

/** Starts both servers with throw-away data. Unless `isSynchronous` is false, every commit waits for the second one. */
export async function startPostgresPair({ isSynchronous = true } = {}): Promise<PostgresPair> {
  const home = await mkdtemp(join(tmpdir(), 'holdfast-pair-'));
  const removeHome = (): void => rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  process.once('exit', removeHome);
  const started: ClusterProcess[] = [];
  const dispose = async (): Promise<void> => {
    await Promise.all(started.map((each) => each.kill()));
    process.off('exit', removeHome);
    await rm(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  };
  try {
    const [primaryPort, standbyPort] = (await findFixedPorts(2)) as [number, number];
    const primarySpec = await preparePostgres(home, primaryPort);
    const primary = new ClusterProcess(primarySpec, () => {});
    started.push(primary);
    await primary.start();
    const standbySpec = await prepareStandby(primarySpec, home, standbyPort);
    const standby = new ClusterProcess(standbySpec, () => {});
    started.push(standby);
    await standby.start();
    if (isSynchronous) await standbySpec.attach();
    return {
      primary,
      standby,
      primaryUrl: primarySpec.url,
      standbyUrl: standbySpec.url,
      cutOff: () => cutOff(standbySpec.url),
      promote: () => promote(standbySpec.url),
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

async function promote(url: string): Promise<void> {
  const isDone = await withClient(url, async (client) => {
    const { rows } = await client.query<{ done: boolean }>('select pg_promote(true, 300) as done');
    return rows[0]?.done;
  });
  if (!isDone) throw new Error('the standby was not promoted');
}

async function cutOff(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query("alter system set primary_conninfo = ''");
    await client.query('select pg_reload_conf()');
    const receivers = 'select 1 from pg_stat_wal_receiver';
    await until(async () => (await client.query(receivers)).rows.length === 0, 'the standby is cut off');
  });
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Returns one URL with both servers, in this order. They have the same users. */
export function joinUrls(first: string, second: string, query = ''): string {
  const url = new URL(first);
  return first.replace(`@${url.host}/`, `@${url.host},${new URL(second).host}/`) + query;
}
