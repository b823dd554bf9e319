import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import type { StackRef } from '../stacks/names.ts';

const WaitingRow = Type.Object({
  updateId: Type.String(),
  number: Type.Integer(),
  stackId: Type.String(),
  organizationId: Type.String(),
  kind: Type.String(),
  resourceChanges: Type.String(),
  hasResources: Type.Boolean(),
  /** The run compared only some of the resources. */
  isPartial: Type.Boolean(),
  /** An update was changing the stack at the same time. */
  isBesideUpdate: Type.Boolean(),
});
export type WaitingDriftRun = Row<typeof WaitingRow>;

const RunRow = Type.Object({
  updateId: Type.String(),
  state: Type.String(),
  isDetected: Type.Boolean(),
  changes: Type.String(),
  createdAt: Timestamp,
  endedAt: Nullable(Timestamp),
  status: Type.String(),
  /** Restored what the stack's program describes. */
  remedyId: Nullable(Type.String()),
  remedyEndedAt: Nullable(Timestamp),
});
export type DriftRunRow = Row<typeof RunRow>;

const StatusRow = Type.Object({
  isDetected: Type.Boolean(),
  latestUpdateId: Nullable(Type.String()),
  isRunning: Type.Boolean(),
});
const NewsRow = Type.Object({ isNews: Type.Boolean() });
const CountRow = Type.Object({ count: Type.Integer() });

/** Triggers add a run when its update ends. */
export function createDriftRepository(db: Queryable) {
  // The update that made the comparison may be its own remedy.
  const remedy = sql.fragment`
    select u.id, u.ended_at from updates u
    where u.stack_id = r.stack_id and u.number >= r.number and u.kind in ('update', 'destroy') and not u.dry_run and u.status = 'succeeded'`;
  const named = (ref: StackRef) => sql.fragment`
    select s.id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
    where o.name = ${ref.organization} and p.name = ${ref.project} and s.name = ${ref.stack} and s.deleted_at is null`;
  const changesStack = sql.fragment`b.stack_id = r.stack_id and b.exclusive and not b.dry_run and b.kind in ('update', 'destroy', 'refresh', 'import')`;
  // Of the updates before the run, only the last one can have been active when it started.
  const besideUpdate = sql.fragment`
    exists (
      select 1 from (select b.started_at, b.ended_at from updates b where ${changesStack} and b.number < r.number order by b.number desc limit 1) b
      where b.started_at is not null and (b.ended_at is null or b.ended_at > u.started_at))
    or exists (select 1 from updates b where ${changesStack} and b.number > r.number and b.started_at < u.ended_at)`;
  return {
    /** Runs whose events must be read, oldest first. */
    listWaiting: (after: WaitingDriftRun | null, limit: number) =>
      db.any(sql.rows(WaitingRow)`
        /* drift.listWaiting */
        select r.update_id as "updateId", r.number, r.stack_id as "stackId", p.organization_id as "organizationId", u.kind,
          case when octet_length(u.resource_changes) <= 65536 then u.resource_changes else '{}' end as "resourceChanges",
          coalesce(s.resource_count, 0) > 0 as "hasResources",
          coalesce(u.environment ~ '"pulumi\\.flag\\.((target|target-replace|exclude)":"|exclude-protected":"true")', false) as "isPartial",
          ${besideUpdate} as "isBesideUpdate"
        from drift_runs r join updates u on u.id = r.update_id join stacks s on s.id = r.stack_id join projects p on p.id = s.project_id
        where r.state = 'waiting' and ${after === null ? sql.fragment`true` : sql.fragment`(r.number, r.update_id) > (${after.number}, ${after.updateId}::uuid)`}
        order by r.number, r.update_id limit ${limit}`),

    /** For a run that contains no information about the stack. */
    forget: (updateId: string) =>
      db.query(
        sql.nothing`/* drift.forget */ delete from drift_runs where update_id = ${updateId} and state = 'waiting'`,
      ),

    /**
     * Returns whether the drift is new: the previous run found none or different drift, or the state has changed since. Returns null if the
     * drift was already recorded.
     */
    finish: async (updateId: string, isDetected: boolean, changes: string): Promise<boolean | null> => {
      const row = await db.maybeOne(sql.rows(NewsRow)`
        /* drift.finish */
        with finished as (
          update drift_runs set state = 'done', is_detected = ${isDetected}, changes = ${changes}
          where update_id = ${updateId} and state = 'waiting' returning stack_id, number
        )
        select not exists (
          select 1 from (
            select b.* from drift_runs b where b.stack_id = f.stack_id and b.number < f.number and b.state = 'done'
            order by b.number desc limit 1
          ) before
          where before.is_detected and before.changes = ${changes} and not exists (
            select 1 from updates u where u.stack_id = f.stack_id and u.number >= before.number and u.number < f.number
              and u.kind in ('update', 'destroy', 'refresh', 'import') and not u.dry_run and u.status = 'succeeded')
        ) as "isNews" from finished f`);
      return row === null ? null : isDetected && row.isNews;
    },

    list: (ref: StackRef, { limit, offset }: { readonly limit: number; readonly offset: number }) =>
      db.any(sql.rows(RunRow)`
        /* drift.list */
        select r.update_id as "updateId", r.state, r.is_detected as "isDetected", r.changes, u.created_at as "createdAt",
          u.ended_at as "endedAt", u.status, m.id as "remedyId", m.ended_at as "remedyEndedAt"
        from drift_runs r join updates u on u.id = r.update_id
          left join lateral (${remedy} order by u.number limit 1) m on r.is_detected
        where r.stack_id = (${named(ref)}) order by r.number desc limit ${limit} offset ${offset}`),

    count: async (ref: StackRef): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* drift.count */ select count(*)::integer as count from drift_runs where stack_id = (${named(ref)})`);
      return row.count;
    },

    readStatus: (ref: StackRef) =>
      db.maybeOne(sql.rows(StatusRow)`
        /* drift.readStatus */
        select coalesce(r.is_detected and not exists (${remedy}), false) as "isDetected", r.update_id as "latestUpdateId",
          exists (
            select 1 from updates u where u.stack_id = s.id and u.kind = 'refresh' and u.status = 'running'
              and u.expires_at > clock_timestamp()
          ) as "isRunning"
        from (${named(ref)}) s left join lateral (
          select * from drift_runs r where r.stack_id = s.id and r.state = 'done' order by r.number desc limit 1) r on true`),

    /** Stacks whose last run found drift that nothing has repaired since. */
    countDrifted: async (): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* drift.countDrifted */
        select count(*)::integer as count
        from organizations o join stack_changes c on c.organization_id = o.id and c.is_drifted
        where stack_is_drifted(c.stack_id)`);
      return row.count;
    },
  };
}
