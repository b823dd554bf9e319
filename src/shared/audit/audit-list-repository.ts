import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import type { SignIn } from './audit-event.ts';

export const ListedRow = Type.Object({
  number: Type.Integer(),
  occurredAt: Timestamp,
  /** Microseconds since the epoch. A `Date` is too coarse for the continuation of a list. */
  micros: Type.Integer(),
  action: Type.String(),
  outcome: Type.String(),
  actor: Type.String(),
  login: Type.String(),
  tokenId: Nullable(Type.String()),
  tokenName: Type.String(),
  signIn: Type.Unsafe<SignIn>(Type.String()),
  role: Type.String(),
  grantedBy: Type.String(),
  address: Type.String(),
  userAgent: Type.String(),
  ciRun: Type.String(),
  object: Type.String(),
  updateId: Nullable(Type.String()),
  requestId: Type.String(),
  details: Type.String(),
});
export type ListedEventRow = Row<typeof ListedRow>;

/** The order is by time, newest first. */
export interface AuditPosition {
  readonly micros: number;
  readonly number: number;
}

export interface AuditSelection {
  readonly action: string | null;
  readonly login: string | null;
  /** Null for any actor. */
  readonly actor: string | null;
  readonly from: Date | null;
  readonly until: Date | null;
  readonly after: AuditPosition | null;
}

/** For a row of a table or alias named `event`. */
export const auditColumns = sql.fragment`
  event.number, event.occurred_at as "occurredAt", (extract(epoch from event.occurred_at) * 1000000)::bigint as micros, event.action,
  event.outcome, event.actor, event.login, event.token_id as "tokenId", event.token_name as "tokenName", event.sign_in as "signIn",
  event.role, event.granted_by as "grantedBy", event.address, event.user_agent as "userAgent", event.ci_run as "ciRun", event.object,
  event.update_id as "updateId", event.request_id as "requestId", event.details`;

/** Action or login, together with the times, are a range of an index. */
export function isInSelection({ action, actor, after, from, login, until }: AuditSelection) {
  const everything = sql.fragment`true`;
  return sql.fragment`${action === null ? everything : sql.fragment`action = ${action}`}
    and ${login === null ? everything : sql.fragment`login = ${login}`}
    and ${actor === null ? everything : sql.fragment`actor = ${actor}`}
    and ${from === null ? everything : sql.fragment`occurred_at >= ${from.toISOString()}::timestamptz`}
    and ${until === null ? everything : sql.fragment`occurred_at <= ${until.toISOString()}::timestamptz`}
    and ${
      after === null
        ? everything
        : sql.fragment`(occurred_at, number) <
            (timestamptz 'epoch' + ${after.micros}::bigint * interval '1 microsecond', ${after.number}::bigint)`
    }`;
}

export function createAuditListRepository(db: Queryable) {
  return {
    /** Newest first. Reads a range of one index, unless the selection has both an action and a login, or an actor other than a user. */
    list: (organizationId: string, selection: AuditSelection, limit: number) =>
      db.any(sql.rows(ListedRow)`
        /* audit.list */
        select ${auditColumns}
        from audit_events event
        where organization_id = ${organizationId} and ${isInSelection(selection)}
        order by occurred_at desc, number desc limit ${limit}`),

    /** Events of a chained batch that still exist, by number. `month` is its first day. */
    listBatch: (batch: {
      readonly organizationId: string;
      readonly month: string;
      readonly numbers: readonly number[];
    }) =>
      db.any(sql.rows(ListedRow)`
        /* audit.listBatch */
        select ${auditColumns}
        from audit_events event
        where number = any (${sql.array([...batch.numbers], 'int8')}) and organization_id = ${batch.organizationId}
          and occurred_at >= ${batch.month}::date::timestamp at time zone 'UTC'
          and occurred_at < (${batch.month}::date + interval '1 month') at time zone 'UTC'
        order by number`),
  };
}
