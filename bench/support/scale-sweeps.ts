import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createQuotaRepository } from '../../src/shared/access/quotas/quota-repository.ts';
import { createJobAdmissionRepository } from '../../src/shared/jobs/job-admission-repository.ts';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import { createOutcomeRepository } from '../../src/shared/platform/outcomes/outcome-repository.ts';
import { createBlobRepository } from '../../src/shared/state/checkpoints/blob-repository.ts';
import { createDocumentCheckRepository } from '../../src/shared/state/checkpoints/document-check-repository.ts';
import { createCompactionRepository } from '../../src/shared/state/journal/compaction-repository.ts';
import { createUpdateRepository } from '../../src/shared/updates/update-repository.ts';
import { createDeletedStackRepository } from '../../src/workers/stacks/deleted-stack-repository.ts';
import type { OwnHoldfastServer } from '../../testkit/holdfast-server.ts';
import { busiestScan, explainingPool } from '../../testkit/query-plan.ts';
import { tuned } from '../../testkit/tuned.ts';
import { memoryOf, printTable, resetPeak } from './measures.ts';
import { RawClient } from './raw-client.ts';
import { seeded } from './scale-seed.ts';

/** Runs each statement of the sweeps three times and keeps the last. */
async function explainSweeps(url: string): Promise<ReturnType<typeof explainingPool>['statements']> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ organization: string; stack: string }>(
      `select o.id as organization, s.id as stack from stacks s join projects p on p.id = s.project_id
       join organizations o on o.id = p.organization_id where s.name = $1`,
      [seeded.deep],
    );
    const [ids] = rows;
    if (!ids) throw new Error('The deep stack is missing');
    const { pool, statements } = explainingPool(client);
    const db = pool as Queryable;
    const updates = createUpdateRepository(db);
    const compactions = createCompactionRepository(db);
    const checks = createDocumentCheckRepository(db);
    const blobs = createBlobRepository(db);
    const quotas = createQuotaRepository(db);
    const stacks = createDeletedStackRepository(db);
    for (let run = 0; run < 3; run++) {
      statements.length = 0;
      await updates.clipLeases(7200);
      await updates.listExpired(100, []);
      await updates.listLost(100);
      await updates.isLease(Buffer.alloc(32));
      await client.query('begin');
      await compactions.claimUncompacted(10);
      await client.query('rollback');
      await compactions.listKeptLongerThan(3600, 100);
      await compactions.countFaultyStacks();
      await stacks.list(100);
      await stacks.count();
      await blobs.clipWaits(3600);
      await blobs.lockUnreferenced(86_400, 200);
      await blobs.listDeletions(200);
      await createJobAdmissionRepository(db).deleteExpired(3600);
      await createOutcomeRepository(db).deleteOlderThan(86_400);
      await checks.claim({ periodSeconds: 30 * 86_400, bytes: 1e6, limit: 50, claimSeconds: 600 });
      await checks.listUpdates(ids.stack, 0, 100);
      await checks.readStatistics();
      await quotas.countStacks(ids.organization);
      await quotas.countUpdates(ids.organization);
    }
    return [...statements];
  } finally {
    await client.end();
  }
}

/** What statements of sweeps and quotas cost where they find little or nothing. */
export async function sweepStatements(smallUrl: string, largeUrl: string): Promise<(string | number)[][]> {
  const [small, large] = [await explainSweeps(smallUrl), await explainSweeps(largeUrl)];
  return large.map((statement, at) => {
    const before = small[at];
    return [
      statement.name,
      before?.ms ?? Number.NaN,
      statement.ms,
      `${before?.pages} → ${statement.pages}`,
      `${before?.read} → ${statement.read} (${statement.returned} returned)`,
      busiestScan(statement.plan),
    ];
  });
}

/** A server and its database. */
export interface ServedDatabase {
  readonly url: string;
  readonly server: OwnHoldfastServer;
  /** Starts another server on it. */
  readonly serve: (settings: Record<string, string>) => Promise<OwnHoldfastServer>;
}

/** Waits until a sweep has deleted the rows of the stack with the many updates. */
export async function measureDeletion({ url, serve }: ServedDatabase, updates: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string; project: string }>(
      `select s.id, p.name as project from stacks s join projects p on p.id = s.project_id where s.name = $1`,
      [seeded.doomed],
    );
    const [stack] = rows;
    if (!stack) throw new Error('The stack to delete is missing');
    await client.query(`update updates set expires_at = now() + interval '5 minutes' where status = 'running'`);
    await using server = await serve({ ...tuned({ sweepSeconds: 1 }), HOLDFAST_DELETED_STACK_DAYS: '0' });
    const begun = performance.now();
    await new RawClient(server.url, server.token).once(
      'DELETE',
      `/api/stacks/${seeded.organization}/${stack.project}/${seeded.doomed}?force=true`,
    );
    const called = performance.now() - begun;
    for (;;) {
      const { rowCount } = await client.query('select 1 from stacks where id = $1', [stack.id]);
      if (rowCount === 0) break;
      await sleep(100);
    }
    const gone = (performance.now() - begun) / 1000;
    printTable(['updates of the stack', 'call ms', 'rows gone after s'], [[String(updates), called, gone]]);
  } finally {
    await client.end();
  }
}

/** Reads the history of the stack with the many updates without pages, and measures the memory that this takes. */
export async function measureWholeHistory({ server }: ServedDatabase, updates: number): Promise<void> {
  const pid = server.pid();
  const { now } = await memoryOf(pid);
  await resetPeak(pid);
  const begun = performance.now();
  const response = await fetch(`${server.url}/api/stacks/${seeded.organization}/project-00000/${seeded.deep}/updates`, {
    headers: { accept: 'application/vnd.pulumi+9', authorization: `token ${server.token}` },
  });
  let bytes = 0;
  for await (const chunk of response.body ?? []) bytes += (chunk as Uint8Array).length;
  const seconds = (performance.now() - begun) / 1000;
  const { peak } = await memoryOf(pid);
  printTable(
    ['updates of the stack', 'MB', 's', 'RSS MB before', 'peak'],
    [[String(updates), bytes / 1e6, seconds, now, peak]],
  );
}
