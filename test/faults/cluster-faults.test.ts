import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RawClient, ResponseError, verbatimBody } from '../../bench/support/raw-client.ts';
import { holdfastOutput } from '../../testkit/admin-command.ts';
import type { ClusterProcess } from '../../testkit/cluster-process.ts';
import { readRequestCounts } from '../../testkit/request-counts.ts';
import { tuned } from '../../testkit/tuned.ts';
import { until } from '../../testkit/until.ts';
import { countArchivedEvents, findLostWrites, inspectBlobs, query, reconcileBlobs } from './support/audit.ts';
import { documentOf, sha256 } from './support/documents.ts';
import { GuardedPipeline } from './support/guarded-pipeline.ts';
import { NextRelease } from './support/next-release.ts';
import { PatientClient } from './support/patient-client.ts';
import { readState } from './support/pipelines.ts';
import { documentWrites, lockStack, runAgain, stackIdOf, writeJournal } from './support/points.ts';
import { QueuedPipeline } from './support/queued-pipelines.ts';
import type { Held, S3Gate } from './support/s3-gate.ts';
import { calm, longLimits, type Storm, startStorm, withLongLimits } from './support/storm.ts';

// A cluster under the load of many pipelines, whose parts are broken at random and at chosen points.
// HOLDFAST_TEST_FAULT_SECONDS makes the storm longer, HOLDFAST_TEST_FAULT_SEED repeats its choices,
// HOLDFAST_TEST_S3=minio selects the other S3 server, HOLDFAST_TEST_FAULT_LOGS keeps the logs in a folder.

const stormSeconds = Number(process.env['HOLDFAST_TEST_FAULT_SECONDS'] ?? 6);
const seed = Number(process.env['HOLDFAST_TEST_FAULT_SEED'] ?? Date.now() % 1_000_000);
/** Large enough for the blob store, and for a worker with the first replica. */
const documentBytes = 60_000;

/** The cluster, its pipelines and two CLIs start at the same time; two busy cores take minutes for that. */
const startMs = 600_000;

/** Every process is restarted once, one after another and under load. */
const rolloutMs = 1_200_000;

let starting: Promise<Storm> | undefined;
let storm: Storm;
/** Acknowledged while processes of two releases ran. */
let mixedWrites = 0;
beforeAll(async () => {
  starting = startStorm(seed);
  storm = await starting;
}, startMs);
afterAll(async () => {
  // Also after a start that took too long: nothing else would stop its processes.
  await (await starting?.catch(() => undefined))?.[Symbol.asyncDispose]();
}, startMs);

/** A client of the replica that passes nearly everything to the workers. */
const queueing = (): RawClient => new PatientClient(storm.cluster.apiUrls[0] as string, storm.cluster.token);

const newStack = (client: RawClient): Promise<string> =>
  client.createStack(storm.cluster.organization, 'points', `s-${randomUUID().slice(0, 8)}`);

const stateOf = async (path: string): Promise<string> => sha256(await readState(storm.cluster, `${path}/export`));

/** Holds the upload of a document at whichever worker has it. */
async function holdUpload(
  document: Buffer,
  when: 'before' | 'after',
): Promise<{ held: Promise<Held & { worker: number }> }> {
  const holds = storm.workerGates.map((gate: S3Gate) => gate.holdPut(sha256(document), when));
  const first = Promise.race(holds.map(({ held }, worker) => held.then((each) => ({ ...each, worker }))));
  const held = first.then((found) => {
    for (const hold of holds) hold.giveUp();
    return found;
  });
  return { held };
}

test('every process runs beside the services of its chart, and logs once that their variables are no settings', () => {
  const { apis, workers } = storm.cluster;
  for (const { log, name } of [...apis, ...workers])
    expect({ name, times: log.split('ignored: variables that Kubernetes sets').length - 1 }).toEqual({
      name,
      times: 1,
    });
});

describe('at chosen points', () => {
  test('a worker that stalls between upload and commit is rejected once the update was cancelled', async () => {
    const client = queueing();
    const path = await newStack(client);
    const update = await client.startUpdate(path);
    const [kept, late] = [documentOf(documentBytes, `kept ${path}`), documentOf(documentBytes, `late ${path}`)];
    await client.verbatim(update, kept, 1);
    const { held } = await holdUpload(late, 'after');
    const write = client.verbatim(update, late, 2).catch((error: unknown) => error);
    const { worker, release } = await held;
    storm.cluster.workers[worker]?.pause();
    await client.call('POST', `${update.path}/cancel`);
    release();
    await sleep(100);
    storm.cluster.workers[worker]?.resume();
    expect(await write).toMatchObject({ name: 'ResponseError', status: 403 });
    expect(await stateOf(path)).toBe(sha256(kept));
  });

  test('a job that two workers run at once is committed once', async () => {
    const outcomes = Object.entries(documentWrites).map(async ([name, begin]) => {
      const client = queueing();
      const path = await newStack(client);
      const document = documentOf(documentBytes, `twice ${path}`);
      const { held } = await holdUpload(document, 'after');
      const prepared = await begin(client, path, document);
      const write = prepared.write();
      const { release } = await held;
      await runAgain(storm.cluster, path, write);
      release();
      await write;
      await prepared.end();
      expect({ [name]: await stateOf(path) }).toEqual({ [name]: sha256(document) });
      const rows = await query<{ checkpoints: number; updates: number }>(
        storm.cluster,
        `select count(distinct c.id)::integer as checkpoints, count(distinct u.id)::integer as updates
         from updates u left join checkpoints c on c.update_id = u.id where u.stack_id = $1`,
        [await stackIdOf(storm.cluster, path)],
      );
      expect({ [name]: rows }).toEqual({ [name]: [{ checkpoints: 1, updates: 1 }] });
    });
    await Promise.all(outcomes);
  });

  test('no write is acknowledged before it is committed', async () => {
    // The first replica passes all of these to the workers, the last one commits them itself.
    const replicas = { queued: 0, direct: 2 };
    const checks = Object.entries(replicas).flatMap(([way, replica]) =>
      Object.entries({ ...documentWrites, journal: writeJournal }).map(async ([name, begin]) => {
        const client = new PatientClient(storm.cluster.apiUrls[replica] as string, storm.cluster.token);
        const path = await newStack(client);
        const prepared = await begin(client, path, documentOf(documentBytes, `waits ${way} ${path}`));
        await using lock = await lockStack(storm.cluster, path);
        let answer = 'none yet';
        const write = prepared.write();
        write.then(
          () => {
            answer = 'acknowledged';
          },
          (error: unknown) => {
            answer = String(error);
          },
        );
        await lock.untilSomeoneWaits();
        await sleep(300);
        expect({ [`${name}, ${way}`]: answer }).toEqual({ [`${name}, ${way}`]: 'none yet' });
        await lock.release();
        await write;
        await prepared.end();
      }),
    );
    await Promise.all(checks);
  });

  test('a frozen replica does not overwrite what was repeated elsewhere', async () => {
    const elsewhere = new PatientClient(storm.cluster.apiUrls[1] as string, storm.cluster.token);
    const checks = Object.entries({ queued: 0, direct: 2 }).map(async ([way, replica]) => {
      const [url, api] = [storm.cluster.apiUrls[replica] as string, storm.cluster.apis[replica]];
      const impatient = new RawClient(url, storm.cluster.token, { timeoutMs: 700 });
      const begun = await Promise.all(
        (['checkpoint', 'checkpointverbatim'] as const).map(async (kind) => {
          const path = await newStack(elsewhere);
          const update = await elsewhere.startUpdate(path);
          // Some of it is still in the socket when the head is read.
          const [old, newer] = [1, 2].map((at) => documentOf(150_000, `frozen ${way} ${kind} ${at} ${path}`));
          const send = (how: 'once' | 'call', client: RawClient, document: Buffer, at: number): Promise<string> => {
            const body = kind === 'checkpointverbatim' ? verbatimBody(document, at) : document;
            return client[how]('PATCH', `${update.path}/${kind}`, body, { auth: update.lease });
          };
          return { path, update, old: old as Buffer, newer: newer as Buffer, send };
        }),
      );
      api?.pause();
      try {
        const givenUp = begun.map(({ old, send }) =>
          send('once', impatient, old, 1).then(
            () => 'answered',
            () => 'given up',
          ),
        );
        expect(await Promise.all(givenUp)).toEqual(['given up', 'given up']);
        for (const { old, newer, send } of begun) {
          await send('call', elsewhere, old, 1);
          await send('call', elsewhere, newer, 2);
        }
      } finally {
        api?.resume();
      }
      // It responds again, so the data in its sockets is being processed.
      await until(async () => (await fetch(`${url}/healthz`)).ok, 'the replica answers');
      await sleep(1_500);
      for (const { path, newer, update } of begun) {
        expect({ way, state: await stateOf(path) }).toEqual({ way, state: sha256(newer) });
        await elsewhere.complete(update);
      }
    });
    await Promise.all(checks);
  });

  test('while the disk of the blob store is full, writes are rejected and nothing is stored partially', async () => {
    const { disk } = storm;
    if (!disk) return;
    const client = new PatientClient(storm.cluster.apiUrls[2] as string, storm.cluster.token);
    const path = await newStack(client);
    const update = await client.startUpdate(path);
    let [kept, next, sequence] = [
      documentOf(documentBytes, `kept ${path}`),
      documentOf(documentBytes, `full ${path}`),
      1,
    ];
    await client.verbatim(update, kept, sequence);
    try {
      for (;;) {
        disk.fill();
        const body = verbatimBody(next, sequence + 1);
        const write = client.once('PATCH', `${update.path}/checkpointverbatim`, body, { auth: update.lease });
        const error: unknown = await write.then(
          () => null,
          (thrown: unknown) => thrown,
        );
        if (error !== null) {
          expect(error).toMatchObject({ name: 'ResponseError', status: 503 });
          break;
        }
        // A sweep has freed space after the disk was full.
        sequence++;
        expect(sequence).toBeLessThan(20);
        expect(await stateOf(path)).toBe(sha256(next));
        [kept, next] = [next, documentOf(documentBytes, `full ${sequence} ${path}`)];
      }
      expect(await stateOf(path)).toBe(sha256(kept));
    } finally {
      disk.freeCapacity();
    }
    await client.verbatim(update, next, sequence + 1);
    expect(await stateOf(path)).toBe(sha256(next));
    await client.complete(update);
  });

  test('a clock that jumps ahead ends leases; setting it back does not extend them', async () => {
    const { chaos, cluster, postgresClock } = storm;
    if (!postgresClock) return;
    const client = queueing();
    const path = await newStack(client);
    const documents = ['kept', 'late', 'ahead', 'back'].map((mark) => documentOf(documentBytes, `${mark} ${path}`));
    const [kept, late, ahead, back] = documents as [Buffer, Buffer, Buffer, Buffer];
    const first = await client.startUpdate(path);
    await client.verbatim(first, kept, 1);
    chaos.set(postgresClock, 3_600);
    try {
      await expect(client.verbatim(first, late, 2)).rejects.toMatchObject({ name: 'ResponseError', status: 403 });
      expect(await stateOf(path)).toBe(sha256(kept));
      const second = await client.startUpdate(path);
      await client.verbatim(second, ahead, 1);
      chaos.set(postgresClock, 0);
      const secondsLeft = async (): Promise<number> => {
        const left =
          'select extract(epoch from expires_at - clock_timestamp())::float8 as left from updates where id = $1';
        return (await query<{ left: number }>(cluster, left, [second.id]))[0]?.left ?? 0;
      };
      await until(async () => (await secondsLeft()) <= 300, 'the lease is cut');
      expect(await secondsLeft()).toBeGreaterThan(200);
      await client.verbatim(second, back, 2);
      await client.complete(second);
      expect(await stateOf(path)).toBe(sha256(back));
    } finally {
      chaos.set(postgresClock, 0);
    }
  });

  // Takes almost a minute, so only the long form includes it.
  const longForm = stormSeconds >= 60 ? test : null;
  longForm?.(
    'a job whose worker says nothing goes to another one, and is committed once when the first wakes',
    async () => {
      const client = queueing();
      const path = await newStack(client);
      const update = await client.startUpdate(path);
      const documents = [1, 2].map((at) => documentOf(documentBytes, `stalled ${at} ${path}`)) as [Buffer, Buffer];
      const { held } = await holdUpload(documents[0], 'after');
      const write = client.verbatim(update, documents[0], 1);
      const { worker, release } = await held;
      storm.cluster.workers[worker]?.pause();
      release();
      // After its lock of 15 s has expired, at the next check for stalled jobs.
      await write;
      await client.verbatim(update, documents[1], 2);
      storm.cluster.workers[worker]?.resume();
      await sleep(2_000);
      expect(await stateOf(path)).toBe(sha256(documents[1]));
      await client.complete(update);
    },
    120_000,
  );
});

describe('in a storm', () => {
  test(
    'every kind of fault occurs while the pipelines run',
    async () => {
      const { chaos, load, pipelines } = storm;
      load.pauses = 1;
      const before = pipelines.reduce((sum, { counts }) => sum + counts.acknowledged, 0);
      for (const fault of chaos.faults) {
        await until(() => chaos.inject(fault), `a part that ${fault} needs is whole again`, {
          ...{ timeoutMs: 300_000, everyMs: 100 },
        });
        await sleep(400);
      }
      await chaos.rage(Date.now() + stormSeconds * 1_000);
      await chaos.settle();
      load.pauses = calm;
      const after = pipelines.reduce((sum, { counts }) => sum + counts.acknowledged, 0);
      expect([...chaos.counts.keys()].sort()).toEqual([...chaos.faults].sort());
      expect(after).toBeGreaterThan(before);
    },
    (stormSeconds + 1_200) * 1_000,
  );
});

describe('processes that come and go under load', () => {
  const acknowledged = (): number => storm.pipelines.reduce((sum, { counts }) => sum + counts.acknowledged, 0);
  const failedCalls = (): string[] =>
    storm.pipelines.flatMap(({ counts }) => counts.failedCalls).filter((call) => !isOwnImpatience.test(call));
  let next: NextRelease;
  /** Names of the processes that warned of a migration that they do not know. */
  const warned = new Set<string>();

  /** Ends all processes, and what the storm has silenced with them. */
  const startAfresh = async (): Promise<void> => {
    const { apis, workers } = storm.cluster;
    // While there is no worker, a replica that stops waits for its jobs.
    for (const processes of [apis, workers]) await Promise.all(processes.map((each) => each.stop()));
    await Promise.all([...workers, ...apis].map((each) => each.start(withLongLimits)));
    await untilCalm();
  };

  /** No client waits before it repeats a call for longer than this. */
  const untilCalm = async (): Promise<void> => {
    let [seen, since] = [-1, 0];
    const isCalm = (): boolean => {
      const repeated = storm.pipelines.reduce((sum, { client }) => sum + client.retries, failedCalls().length);
      if (repeated !== seen) [seen, since] = [repeated, performance.now()];
      return performance.now() - since > 10_000;
    };
    await until(isCalm, 'no call is repeated any more', { timeoutMs: 600_000, everyMs: 100 });
  };
  beforeAll(async () => {
    const creating = NextRelease.create().then((created) => {
      next = created;
    });
    await Promise.all([creating, startAfresh()]);
  }, 1_200_000);
  afterAll(() => next?.[Symbol.dispose]());

  /** Restarts the parts cleanly, one after another, with this program or with this checkout's. */
  const become = async (program: string | null, parts: readonly ClusterProcess[]): Promise<void> => {
    for (const part of parts) {
      if (program === null) storm.programs.delete(part.name);
      else storm.programs.set(part.name, program);
      await part.restart(withLongLimits);
      // At once: a busy process soon pushes the lines of its start out of the kept end of its log.
      if (program === null && part.log.includes(next.migration)) warned.add(part.name);
      // The next one must not stop before the proxy has noticed that this one is back.
      const url = storm.cluster.apiManagementUrls[storm.cluster.apis.indexOf(part)];
      if (url !== undefined) await untilUsed(part, url);
    }
  };

  /** Waits until the proxy passes calls to the replica with this URL for metrics. */
  const untilUsed = async (api: ClusterProcess, url: string): Promise<void> => {
    const isUsed = async () => (await readRequestCounts(url)).count('/:project') > 0;
    await until(isUsed, `the proxy uses ${api.name}`, { everyMs: 100 });
  };

  /** Runs `work` under a stream of calls that the CLI does not repeat; no call may fail permanently. */
  const failingNoCall = async (work: () => Promise<void>): Promise<void> => {
    const before = failedCalls();
    const failed: string[] = [];
    const logged = (): string[] => storm.cluster.apis.flatMap(({ log }) => failedRequests(log));
    const loggedBefore = new Set(logged());
    let working = true;
    const hammers = Array.from({ length: 3 }, async () => {
      const client = new RawClient(storm.cluster.url, storm.cluster.token);
      while (working) {
        await newStack(client).catch((error: unknown) => failed.push(String(error)));
        // Without it the calls would take CPU time from the processes that start.
        await sleep(30);
      }
    });
    try {
      await work();
    } finally {
      working = false;
      await Promise.all(hammers);
    }
    const reasons = failed.length === 0 ? [] : logged().filter((line) => !loggedBefore.has(line));
    expect([failed, reasons]).toEqual([[], []]);
    expect(failedCalls().filter((call) => !before.includes(call))).toEqual([]);
  };

  test(
    'a rolling upgrade fails no call',
    async () => {
      await promisify(execFile)(process.execPath, [next.program, 'migrate'], {
        env: { PATH: process.env['PATH'], HOLDFAST_DATABASE_URL: storm.cluster.databaseUrl },
      });
      const [[worker, ...workers], [api, ...apis]] = [[...storm.cluster.workers], [...storm.cluster.apis]];
      await failingNoCall(async () => {
        // This replica passes nearly everything to the workers, from now on with the new schema.
        await Promise.all([
          become(next.program, [worker as ClusterProcess]),
          become(next.program, [api as ClusterProcess]),
        ]);
        const from = acknowledged();
        const isLeft = () => workers.some(({ log }) => log.includes('job left to a worker of another release'));
        await until(async () => isLeft(), 'an old worker has met a new job', { timeoutMs: 300_000 });
        await until(async () => acknowledged() > from + 100, 'the pipelines continue', { timeoutMs: 300_000 });
        mixedWrites = acknowledged() - from;
        await Promise.all([become(next.program, workers), become(next.program, apis)]);
      });
    },
    rolloutMs,
  );

  test(
    'a rolling downgrade on the new database schema fails no call',
    async () => {
      const { apis, workers } = storm.cluster;
      await failingNoCall(async () => {
        // First those that create jobs of the new schema.
        await become(null, apis);
        await become(null, workers);
      });
      expect([...warned].sort()).toEqual([...apis, ...workers].map(({ name }) => name).sort());
    },
    rolloutMs,
  );

  test(
    'three more replicas that start and stop at once fail no call, and no update of a real CLI',
    async () => {
      const failedUpdates = (): string[] => storm.cliPipelines.flatMap(({ failures }) => failures);
      const failedBefore = failedUpdates();
      const { spareApis } = storm.cluster;
      await failingNoCall(async () => {
        await Promise.all(spareApis.map(({ api }) => api.start(withLongLimits)));
        for (const { api, managementUrl } of spareApis) await untilUsed(api, managementUrl);
        const from = acknowledged();
        await until(async () => acknowledged() > from + 100, 'the pipelines continue', { timeoutMs: 300_000 });
        await Promise.all(spareApis.map(({ api }) => api.stop()));
        expect(spareApis.filter(({ api }) => api.isRunning)).toEqual([]);
      });
      expect(failedUpdates()).toEqual(failedBefore);
    },
    rolloutMs,
  );
});

describe('afterwards', () => {
  test('the pipelines end, and no response was wrong', async () => {
    // On a busy machine they may not have got to all of it yet.
    const haveAllHadSlices = () => queuedPipelines().every(({ counts }) => counts.updates > 0);
    const haveAllBeenRefused = () => guardedPipelines().every(({ notified }) => isComplete(notified));
    await until(() => haveAllHadSlices() && haveAllBeenRefused(), 'everything has occurred', {
      timeoutMs: 600_000,
    });
    await Promise.all([...storm.pipelines, ...storm.cliPipelines].map((pipeline) => pipeline.stop()));
    expect(storm.pipelines.flatMap(({ counts }) => counts.wrongAnswers)).toEqual([]);
    expect(storm.crashes).toEqual([]);
    // A crash of a single session restarts the others without an end of the server.
    expect(storm.cluster.postgres?.log ?? '').not.toContain('was terminated by signal');
  }, 1_200_000);

  test('every acknowledged write is there', async () => {
    const lost = await findLostWrites(storm.cluster, storm.pipelines, storm.cliPipelines);
    report(lost.length);
    expect(lost).toEqual([]);
    await until(async () => (await countArchivedEvents(storm.cluster)) > 0, 'archived events', {
      timeoutMs: 300_000,
    });
  }, 900_000);

  test('waiting calls got the stack soon after it was free', async () => {
    await storm.queuedStack.stopWatching();
    expect(queuedPipelines().filter(({ counts }) => counts.updates === 0)).toEqual([]);
    // Two seconds, and what a busy machine adds.
    expect(storm.queuedStack.longestIdleMs).toBeLessThan(30_000);
  });

  test('rules, drains and approvals were enforced, and nothing except refused entries is lost', () => {
    const notified = guardedPipelines().map((pipeline) => pipeline.notified);
    expect(notified.filter((each) => !isComplete(each))).toEqual([]);
  });

  test('no stack is locked for longer than a lease', async () => {
    const client = new PatientClient(storm.cluster.url, storm.cluster.token);
    const stuck = await query(storm.cluster, 'select name from stacks where active_update_id is not null');
    const [free, ...others] = storm.pipelines.map(({ stackPath }) => stackPath);
    const abandoned = await client.startUpdate(free as string);
    const impatient = new RawClient(storm.cluster.url, storm.cluster.token);
    await expect(impatient.startUpdate(free as string)).rejects.toThrow(ResponseError);
    await query(
      storm.cluster,
      `update updates set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
      [abandoned.id],
    );
    for (const path of [free as string, ...others]) await client.complete(await client.startUpdate(path), 'failed');
    expect(stuck).toEqual([]);
  });

  test('every blob that a row needs is there, and after the sweep nothing else', async () => {
    const { cluster } = storm;
    const inspect = () => inspectBlobs(cluster);
    expect((await inspect()).missing).toEqual([]);
    await Promise.all(
      cluster.workers.map((worker) =>
        worker.restart({
          ...tuned({
            ...{ sweepSeconds: 1, eventArchiveDelaySeconds: 2 },
            ...longLimits,
          }),
          HOLDFAST_BLOB_RETENTION_SECONDS: '1',
        }),
      ),
    );
    // An upload that outlives the grace period: the sweep deletes an object that is not there yet.
    const client = queueing();
    const path = await newStack(client);
    const update = await client.startUpdate(path);
    const document = documentOf(documentBytes, `slow ${path}`);
    const { held } = await holdUpload(document, 'before');
    const write = client.verbatim(update, document, 1);
    const { release } = await held;
    const isLive = async () =>
      (await query(cluster, 'select 1 from blobs where key like $1 and deleted_at is null', [`%${sha256(document)}%`]))
        .length > 0;
    await until(async () => !(await isLive()), 'the sweep deletes the blob');
    release();
    await write;
    await client.complete(update);
    expect(await stateOf(path)).toBe(sha256(document));
    // Deletions that failed in the storm are retried after a minute.
    await query(cluster, 'update blobs set delete_at = now() where delete_at > now()');
    const deadline = Date.now() + 300_000;
    let adopted = (await reconcileBlobs(cluster)).adopted;
    let report = await inspect();
    while (
      report.orphans.length + report.released.length + report.idleRows + report.unfinishedUploads > 0 &&
      Date.now() < deadline
    ) {
      await sleep(500);
      // Uploads that were pending when their row was swept; no more can arrive once the parts are idle.
      adopted += (await reconcileBlobs(cluster)).adopted;
      report = await inspect();
    }
    process.stderr.write(`objects whose row was swept before they arrived: ${adopted}\n`);
    expect(report).toEqual({ missing: [], orphans: [], released: [], idleRows: 0, unfinishedUploads: 0 });
  }, 1_200_000);

  test('every document, journal and archive has its bytes and its hash', async () => {
    const { bucket, endpoint, region, accessKeyId, secretAccessKey } = storm.cluster.s3Access;
    const settings = {
      HOLDFAST_S3_BUCKET: bucket,
      HOLDFAST_S3_ENDPOINT: endpoint,
      HOLDFAST_S3_REGION: region,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
    };
    const printed = await holdfastOutput(storm.cluster, settings, 'admin', 'fsck', '--all', '--json');
    expect(JSON.parse(printed)).toMatchObject({ findings: [] });
  });
});

/** A hasty pipeline gives calls up by itself, which a busy machine makes slow. */
const isOwnImpatience = / hasty-\S+: .*aborted due to timeout/;

function guardedPipelines(): GuardedPipeline[] {
  return storm.pipelines.filter((pipeline) => pipeline instanceof GuardedPipeline);
}

function queuedPipelines(): QueuedPipeline[] {
  return storm.pipelines.filter((pipeline) => pipeline instanceof QueuedPipeline);
}

const isComplete = ({ approved, drained, stopped }: GuardedPipeline['notified']): boolean =>
  Math.min(approved, drained, stopped) > 0;

function report(lost: number): void {
  const { chaos, pipelines } = storm;
  const sum = (figure: (pipeline: (typeof pipelines)[number]) => number): number =>
    pipelines.reduce((total, pipeline) => total + figure(pipeline), 0);
  const cliRuns = (what: 'succeeded' | 'begun'): number =>
    storm.cliPipelines.reduce((total, cli) => total + cli.runs[what], 0);
  const faults = [...chaos.counts].map(([name, times]) => `${name} ${times}`).join(', ');
  process.stderr.write(
    [
      `faults (seed ${seed}): ${[...chaos.counts.values()].reduce((total, times) => total + times, 0)} (${faults})`,
      `pipelines: ${pipelines.length}, updates: ${sum(({ counts }) => counts.updates)}, repeated calls: ${sum(({ client, writer }) => client.retries + (writer === client ? 0 : writer.retries))}`,
      `runs of the CLI that succeeded: ${cliRuns('succeeded')} of ${cliRuns('begun')}`,
      `leases that ended: ${sum(({ counts }) => counts.lostLeases)}`,
      `a stack was free at most ${Math.round(storm.queuedStack.longestIdleMs)} ms while a call waited for it`,
      `rules: ${JSON.stringify(guardedPipelines().map(({ notified }) => notified))}`,
      `writes acknowledged with two releases side by side: ${mixedWrites}`,
      `calls that failed for good: ${sum(({ counts }) => counts.failedCalls.length)}`,
      `acknowledged writes: ${sum(({ counts }) => counts.acknowledged)}, lost: ${lost}`,
      '',
    ].join('\n'),
  );
}

/** The lines of a log that say why requests ended in 5xx. */
function failedRequests(log: string): string[] {
  return log.split('\n').filter((line) => line.includes('"msg":"request failed"'));
}
