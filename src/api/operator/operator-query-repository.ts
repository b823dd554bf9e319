import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../shared/platform/schema/standard-schema.ts';

const Text = Nullable(Type.String());

const LockRow = Type.Object({
  updateId: Type.String(),
  /** Microseconds since the epoch, as text. */
  position: Type.String(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  kind: Type.String(),
  by: Text,
  ciUrl: Text,
  since: Timestamp,
  /** Expiry of the lease, or of the time to start. */
  expiresAt: Nullable(Timestamp),
  isExpired: Type.Boolean(),
  /** Calls that wait for the stack. */
  waiting: Type.Integer(),
});
export type LockRow = Row<typeof LockRow>;

const SlowRow = Type.Object({
  updateId: Type.String(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  kind: Type.String(),
  status: Type.String(),
  by: Text,
  lastedMs: Type.Number(),
  endedAt: Timestamp,
});
export type SlowRow = Row<typeof SlowRow>;

export function createOperatorQueryRepository(db: Queryable) {
  const by = sql.fragment`coalesce(a.login, t.kind || ':' || t.name)`;
  const owners = sql.fragment`
    left join users a on a.id = u.requested_by left join api_tokens t on t.id = u.token_id and u.requested_by is null`;
  const names = sql.fragment`o.name as organization, p.name as project, s.name as stack`;
  const stackNames = sql.fragment`
    join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id`;
  return {
    /** The oldest first. */
    listLocks: (after: readonly [string, string] | null, limit: number) =>
      db.any(sql.rows(LockRow)`
        /* operatorQueries.listLocks */
        select u.id as "updateId", (extract(epoch from u.created_at) * 1000000)::bigint::text as position, ${names}, u.kind, ${by} as by,
          u.ci_run::json ->> 'build.url' as "ciUrl", u.created_at as since, u.expires_at as "expiresAt",
          coalesce(u.expires_at <= clock_timestamp(), false) or u.end_reason is not null as "isExpired",
          (select count(*)::int from update_queue_waiters w where w.stack_id = u.stack_id and w.superseded_by is null) as waiting
        from updates u ${stackNames} ${owners}
        where u.status in ('not started', 'running') and u.exclusive and s.deleted_at is null
          and ${
            after === null
              ? sql.fragment`true`
              : sql.fragment`(u.created_at, u.id) > ('epoch'::timestamptz + ${after[0]}::bigint * interval '1 microsecond', ${after[1]}::uuid)`
          }
        order by u.created_at, u.id limit ${limit}`),

    /** The longest first, one per stack and day. */
    listSlow: (days: number, limit: number) =>
      db.any(sql.rows(SlowRow)`
        /* operatorQueries.listSlow */
        with slow as materialized (
          select l.* from generate_series(0, ${days - 1}::int) as ago cross join lateral (
            select longest_id, longest_ms from stack_days d
            where d.day = (statement_timestamp() at time zone 'UTC')::date - ago order by d.longest_ms desc limit ${limit}) l
          where l.longest_id is not null order by l.longest_ms desc limit ${limit})
        select u.id as "updateId", ${names}, u.kind, u.status, ${by} as by, l.longest_ms::float8 as "lastedMs", u.ended_at as "endedAt"
        from slow l join updates u on u.id = l.longest_id ${stackNames} ${owners}
        where s.deleted_at is null and u.ended_at is not null order by l.longest_ms desc`),
  };
}
