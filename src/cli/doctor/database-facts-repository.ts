import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';

const FactsRow = Type.Object({
  version: Type.String(),
  versionNumber: Type.Integer(),
  fsync: Type.String(),
  fullPageWrites: Type.String(),
  synchronousCommit: Type.String(),
  /** The sessions that this user may open, and those that are open. */
  slots: Type.Integer(),
  sessions: Type.Integer(),
});
export type DatabaseFacts = Row<typeof FactsRow>;

const ClockRow = Type.Object({ ms: Type.Number() });
const MigratedRow = Type.Object({ isMigrated: Type.Boolean() });
const NameRow = Type.Object({ name: Type.String() });
const SessionRow = Type.Object({
  pid: Type.Integer(),
  application: Nullable(Type.String()),
  state: Nullable(Type.String()),
  seconds: Nullable(Type.Number()),
  /** The name at the beginning of each of our statements. */
  statement: Nullable(Type.String()),
  waitsFor: Nullable(Type.String()),
  blockedBy: Type.Array(Type.Integer()),
});
const SlowRow = Type.Object({
  statement: Type.String(),
  calls: Type.Integer(),
  meanMs: Type.Number(),
  maxMs: Type.Number(),
});
const ThereRow = Type.Object({ isThere: Type.Boolean() });
const CountRow = Type.Object({ name: Type.String(), rows: Type.Integer() });

export function createDatabaseFactsRepository(db: Queryable) {
  return {
    read: (): Promise<DatabaseFacts> =>
      db.one(sql.rows(FactsRow)`
        /* databaseFacts.read */
        select current_setting('server_version') as version,
          current_setting('server_version_num')::integer as "versionNumber",
          current_setting('fsync') as fsync, current_setting('full_page_writes') as "fullPageWrites",
          -- Our sessions set another value.
          (select reset_val from pg_settings where name = 'synchronous_commit') as "synchronousCommit",
          least(
            current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
              - coalesce(current_setting('reserved_connections', true)::integer, 0),
            nullif(d.datconnlimit, -1), nullif(r.rolconnlimit, -1)) as slots,
          (select count(*)::integer from pg_stat_activity where backend_type = 'client backend') as sessions
        from pg_database d, pg_roles r where d.datname = current_database() and r.rolname = current_user`),

    /** The clock of Postgres, in ms since 1970. */
    readClock: async (): Promise<number> => {
      const { ms } = await db.one(sql.rows(ClockRow)`
        /* databaseFacts.readClock */ select extract(epoch from clock_timestamp())::float8 * 1000 as ms`);
      return ms;
    },

    listMigrations: async (): Promise<string[]> => {
      const { isMigrated } = await db.one(sql.rows(MigratedRow)`
        /* databaseFacts.isMigrated */ select to_regclass('holdfast_migrations') is not null as "isMigrated"`);
      if (!isMigrated) return [];
      const rows = await db.any(sql.rows(NameRow)`
        /* databaseFacts.listMigrations */ select name from holdfast_migrations order by id`);
      return rows.map(({ name }) => name);
    },

    /** Sessions that work or wait, longest first. Without the text of statements, which may contain values. */
    listSessions: (limit: number) =>
      db.any(sql.rows(SessionRow)`
        /* databaseFacts.listSessions */
        select pid, application_name as application, state,
          extract(epoch from clock_timestamp() - coalesce(xact_start, query_start))::float8 as seconds,
          substring(query from '^[[:space:]]*/[*] *([A-Za-z.]+) *[*]/') as statement,
          wait_event_type || '/' || wait_event as "waitsFor", pg_blocking_pids(pid) as "blockedBy"
        from pg_stat_activity
        where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()
        order by coalesce(xact_start, query_start) limit ${limit}`),

    /** The statements that took the most time, from pg_stat_statements, which replaces constants; null if the extension is missing. */
    listSlowStatements: async (limit: number) => {
      const { isThere } = await db.one(sql.rows(ThereRow)`
        /* databaseFacts.findStatements */ select to_regclass('pg_stat_statements') is not null as "isThere"`);
      if (!isThere) return null;
      return db.any(sql.rows(SlowRow)`
        /* databaseFacts.listSlowStatements */
        select coalesce(substring(query from '/[*] *([A-Za-z.]+) *[*]/'), 'another') as statement, calls::integer,
          mean_exec_time as "meanMs", max_exec_time as "maxMs"
        from pg_stat_statements order by total_exec_time desc limit ${limit}`);
    },

    /** Accepted jobs that have not ended, by kind. */
    countJobs: () =>
      db.any(sql.rows(CountRow)`
        /* databaseFacts.countJobs */
        select coalesce(a.job->>'name', 'unknown') as name, count(*)::integer as rows
        from job_admissions a where not exists (select 1 from job_results r where r.job_id = a.id) group by 1 order by 1`),

    /** The numbers are estimates. */
    listTables: (limit: number) =>
      db.any(sql.rows(CountRow)`
        /* databaseFacts.listTables */
        select relname as name, n_live_tup::bigint as rows from pg_stat_user_tables order by 2 desc, 1 limit ${limit}`),
  };
}
