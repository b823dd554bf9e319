import { Type } from 'typebox';
import { type Queryable, sql } from '../../../shared/platform/db/sql.ts';
import type { Limit } from './concurrency-limit.ts';

const StandingRow = Type.Object({ running: Type.Integer(), ahead: Type.Integer() });

/** Class of the advisory locks. */
const countingLock = 93;
/**
 * The limits of an organization share this number of locks. Postgres keeps locks in a table of fixed size, which tenants with many limits
 * must not fill.
 */
const places = 32;

export function createConcurrencyLimitRepository(db: Queryable) {
  return {
    /**
     * Lets one transaction at a time count the updates under each of these limits and add one. Take these locks in one call, before the
     * lock on a stack: every transaction takes them in the same order.
     */
    lock: (organizationId: string, keys: readonly string[]) =>
      db.query(sql.nothing`
        /* limits.lock */
        select pg_advisory_xact_lock(l.place) from (
          select distinct hashtextextended(
            ${organizationId}::text || ' ' || (hashtextextended(k.key, 0) & ${places - 1}::bigint), ${countingLock}::bigint) as place
          from unnest(${sql.array([...keys], 'text')}) k (key) order by 1 offset 0) l`),

    /**
     * How many running updates count for the limit, and how many calls that it delays go before a call for this project. `entryId`: the
     * entry of that call; null: it has just arrived.
     */
    standing: (limit: Limit, { entryId, projectId }: { readonly entryId: string | null; readonly projectId: string }) =>
      db.one(sql.rows(StandingRow)`
        /* limits.standing */
        with active as (
          select u.id, u.requested_by, u.token_id, s.id as stack_id, s.project_id, s.tags
          from updates u join stacks s on s.id = u.stack_id
          where u.organization_id = ${limit.organizationId} and u.status in ('not started', 'running') and u.exclusive and not u.dry_run
            and u.expires_at > clock_timestamp() and s.deleted_at is null)
        select
          (select count(*) from active a
           where (${limit.projectId}::uuid is null or a.project_id = ${limit.projectId}::uuid)
             and (${limit.stackId}::uuid is null or a.stack_id = ${limit.stackId}::uuid)
             and (${limit.userId}::uuid is null or a.requested_by = ${limit.userId}::uuid)
             and (${limit.tokenId}::uuid is null or a.token_id = ${limit.tokenId}::uuid)
             and (${limit.tag?.name ?? null}::text is null or a.tags::jsonb ->> ${limit.tag?.name ?? null}::text = ${limit.tag?.value ?? null}::text)
          )::int as running,
          (select count(*) from update_queue_waiters_held_by(${limit.organizationId}::uuid, ${limit.key}) h
           where h.id is distinct from ${entryId}::uuid and (h.running, h.number) < (
             (select count(*) from active a where a.project_id = ${projectId}::uuid),
             coalesce((select w.number from update_queue_waiters w where w.id = ${entryId}::uuid), 9223372036854775807))
          )::int as ahead`),
  };
}
