import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../shared/platform/schema/standard-schema.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import type { UpdateKind, UpdateStatus } from '../../shared/updates/update-state.ts';

const TrendRow = Type.Object({
  version: Nullable(Type.Integer()),
  kind: Type.Unsafe<UpdateKind>(Type.String()),
  status: Type.Unsafe<UpdateStatus>(Type.String()),
  endedAt: Timestamp,
  /** Time from the start to the end of the update. */
  seconds: Type.Number(),
  /** Time in the queue, before the update was created. */
  waitedSeconds: Type.Number(),
  /** Resources in the state; null: retention has deleted the state, or there is none. */
  resources: Nullable(Type.Integer()),
});
export type TrendRow = Row<typeof TrendRow>;

export function createTrendRepository(db: Queryable) {
  return {
    /** Without previews, the oldest first: the newest `limit` at most. */
    list: ({ organization, project, stack }: StackRef, days: number, limit: number) =>
      db.any(sql.rows(TrendRow)`
        /* trends.list */
        select u.stack_version as version, u.kind, u.status, u.ended_at as "endedAt",
          greatest(0, extract(epoch from u.ended_at - u.started_at))::float8 as seconds,
          coalesce(u.waited_ms, 0) / 1000.0::float8 as "waitedSeconds", c.resource_count as resources
        from organizations o join projects p on p.organization_id = o.id join stacks s on s.project_id = p.id and s.deleted_at is null
        cross join lateral (
          select u.* from updates u where u.stack_id = s.id and not u.dry_run and u.kind <> 'preview'
            and u.ended_at > statement_timestamp() - make_interval(days => ${days}) and u.started_at is not null
          order by u.number desc limit ${limit}) u
        left join checkpoints c on c.id = u.checkpoint_id
        where o.name = ${organization} and p.name = ${project} and s.name = ${stack}
        order by u.number`),
  };
}
