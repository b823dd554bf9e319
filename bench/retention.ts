import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { type Database, openDatabase } from '../src/shared/platform/db/database.ts';
import { startEmbeddedPostgres } from '../src/shared/platform/db/embedded-postgres.ts';
import { migrate } from '../src/shared/platform/db/migrate.ts';
import { createLogger } from '../src/shared/platform/logger/logger.ts';
import { createMetrics } from '../src/shared/platform/telemetry/metrics.ts';
import { createChunkRepository } from '../src/shared/state/checkpoints/chunks/chunk-repository.ts';
import { sweepRetention } from '../src/workers/state/retention/sweep-retention.ts';
import { loadAverage, percentile, printTable } from './support/measures.ts';

/**
 * The statements of the sweep of retention over many updates.
 * Half of them are previews; each version has a state in its row, and each update archived events. The rules keep a tenth. Prints the
 * duration of each statement as the worker sees it.
 * Usage: npm run bench retention -- [--updates 1000000] [--stacks 100] [--seconds 300]
 */
const { values } = parseArgs({
  options: {
    updates: { type: 'string', default: '1000000' },
    stacks: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '300' },
  },
});
const stacks = Number(values.stacks);
const versions = Math.round(Number(values.updates) / stacks / 2);

async function seed(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const keeps = {
    'keep-versions': { newest: Math.ceil(versions / 10) },
    'keep-events': { days: 30 },
    'keep-previews': { days: 30 },
  };
  for (const statement of [
    'set session_replication_role = replica',
    `insert into organizations (name) values ('acme')`,
    `insert into projects (organization_id, name) select id, 'web' from organizations`,
    `insert into stacks (project_id, name) select id, 's' || n from projects, generate_series(1, ${stacks}) n`,
    `insert into stack_listings (organization_id, tag_name, project_name, stack_name, tag_value, stack_id)
     select p.organization_id, '', p.name, s.name, '', s.id from stacks s join projects p on p.id = s.project_id`,
    `insert into checkpoints (id, stack_id, update_id, sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes, encode_at)
     select md5(s.name || '-' || n)::uuid, s.id, md5(s.name || 'u' || n)::uuid, sha256((s.name || '-' || n)::bytea), 100, 100, 'zstd', 1, '\\x00', null
     from stacks s, generate_series(1, ${versions}) n`,
    `insert into updates (id, stack_id, organization_id, kind, dry_run, exclusive, status, stack_version, base_stack_version, expires_at,
       started_at, ended_at, checkpoint_id, base_checkpoint_id, events_archived)
     select md5(s.name || k.letter || n)::uuid, s.id, p.organization_id, k.kind, k.preview, not k.preview, 'succeeded',
       case when not k.preview then n end, n - 1, now(), now(), now() - make_interval(mins => (${versions} - n) * 300000 / ${versions} + 120),
       md5(s.name || '-' || n)::uuid, md5(s.name || '-' || case when k.preview then n else n - 1 end)::uuid, true
     from generate_series(1, ${versions}) n, stacks s join projects p on p.id = s.project_id,
       (values ('u', 'update', false), ('p', 'preview', true)) k (letter, kind, preview)`,
    `update updates set base_checkpoint_id = null where base_stack_version = 0 and not dry_run`,
    `update stacks set stack_version = ${versions}, checkpoint_id = md5(name || '-' || ${versions})::uuid`,
    `insert into event_segments (update_id, first_sequence, last_sequence, event_count, frames, sha256, size_bytes, stored_bytes, codec,
       inline_bytes)
     select id, 1, 9, 9, '[]', '', 1, 1, 'zstd', '\\x00' from updates`,
    ...Object.entries(keeps).map(
      ([kind, settings]) =>
        `insert into update_rules (organization_id, kind, settings)
         select id, '${kind}', '${JSON.stringify(settings)}' from organizations`,
    ),
    'set session_replication_role = origin',
    'vacuum analyze',
  ])
    await client.query(statement);
  await client.end();
}

const methods = new Set<PropertyKey>(['any', 'exists', 'maybeOne', 'one', 'query']);

/** Notes how long each statement takes, by the name in its comment. */
function timed<T extends object>(db: T, note: (name: string, ms: number) => void): T {
  return new Proxy(db, {
    get(target, property) {
      const found = Reflect.get(target, property) as unknown;
      if (typeof found !== 'function') return found;
      if (property === 'inTransaction')
        return (work: (tx: object) => Promise<unknown>) => found.call(target, (tx: object) => work(timed(tx, note)));
      if (!methods.has(property)) return found.bind(target);
      return async (statement: { readonly sql: string }) => {
        const began = performance.now();
        try {
          return await found.call(target, statement);
        } finally {
          note(/\/\* (\S+) \*\//.exec(statement.sql)?.[1] ?? 'other', performance.now() - began);
        }
      };
    },
  });
}

const home = await mkdtemp(join(tmpdir(), 'holdfast-bench-retention-'));
const logger = createLogger({ level: 'warn' });
const postgres = await startEmbeddedPostgres(join(home, 'postgres'), logger);
try {
  await migrate({ url: postgres.url, connectMs: 30_000, waitMs: 0, logger });
  console.log(`Seeding ${2 * versions * stacks} updates of ${stacks} stacks`);
  await seed(postgres.url);
  const limits = { poolSize: 4, statementTimeoutMs: 60_000, connectTimeoutMs: 30_000, acquireTimeoutMs: 30_000 };
  const db = await openDatabase({ url: postgres.url, ...limits });
  const times = new Map<string, number[]>();
  const timedDb = timed<Database>(db, (name, ms) => {
    const found = times.get(name);
    if (found) found.push(ms);
    else times.set(name, [ms]);
  });
  const load = await loadAverage();
  const began = performance.now();
  const deleted = await sweepRetention(
    { chunks: createChunkRepository(timedDb), db: timedDb, logger, metrics: createMetrics() },
    AbortSignal.timeout(Number(values.seconds) * 1000),
  );
  const seconds = (performance.now() - began) / 1000;
  await db.close();
  const all = [...times.values()].flat();
  const rowOf = (name: string, found: readonly number[]) => [
    ...[name, String(found.length)],
    ...[percentile(found, 0.5), percentile(found, 0.99), percentile(found, 1)],
  ];
  console.log(`\n${deleted} versions, logs and previews deleted in ${seconds.toFixed(0)} s; load before: ${load}\n`);
  printTable(
    ['statement', 'times', 'p50 ms', 'p99 ms', 'max ms'],
    [...[...times].toSorted().map(([name, found]) => rowOf(name, found)), rowOf('all', all)],
  );
} finally {
  await postgres.stop();
  await rm(home, { recursive: true, force: true });
}
