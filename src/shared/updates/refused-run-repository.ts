import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';
import { stoppingKinds } from './rules/rule-kinds.ts';

const callReasons = ['busy', 'frozen', 'limit', 'preview-needed', 'has-consumers'] as const;

/** Triggers record how a run left the queue, and the kind of the rule that stopped a running one. */
export const refusalReasons = [...callReasons, 'superseded', 'evicted', ...stoppingKinds] as const;
export type RefusalReason = (typeof refusalReasons)[number];
export type CallRefusalReason = (typeof callReasons)[number];

interface RefusedRun {
  readonly organizationId: string;
  readonly stackId: string;
  readonly reason: CallRefusalReason;
  readonly kind: string;
  readonly message: string;
  readonly tokenId: string;
  readonly requestedBy: string;
  readonly commit: string | null;
  readonly branch: string | null;
  readonly url: string | null;
  /** Time in the queue, in ms. */
  readonly waitedMs: number;
}

const CountRow = Type.Object({ count: Type.Integer() });
const maxMessage = 1_000;

/** Runs and counts are kept as long as pages show them. */
export function createRefusedRunRepository(db: Queryable) {
  return {
    /** Counts a repetition within a minute instead of adding it. */
    insert: (run: RefusedRun) =>
      db.query(sql.nothing`
        /* refusedRuns.insert */
        insert into refused_runs as r (organization_id, stack_id, reason, kind, message, requested_by, commit_id, branch, ci_url, waited_ms,
          repeat_key)
        values (${run.organizationId}, ${run.stackId}, ${run.reason}, ${run.kind}, ${run.message.slice(0, maxMessage)}, ${run.requestedBy},
          ${run.commit}, ${run.branch}, ${run.url}, ${Math.round(run.waitedMs)}::bigint,
          md5(concat_ws(chr(10), ${run.stackId}::text, ${run.reason}::text, ${run.kind}::text, ${run.tokenId}::text, ${run.commit ?? ''}::text,
            ${run.url ?? ''}::text, extract(epoch from date_trunc('minute', clock_timestamp()))::bigint))::uuid)
        on conflict (repeat_key) where repeat_key is not null do update set times = r.times + 1, message = excluded.message,
          waited_ms = r.waited_ms + excluded.waited_ms, refused_at = excluded.refused_at`),

    deleteOld: async (days: number, limit: number): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* refusedRuns.deleteOld */
        with old as (
          delete from refused_runs where id in (
            select id from refused_runs where refused_at < statement_timestamp() - make_interval(days => ${days}) order by refused_at limit ${limit})
          returning 1)
        select count(*)::int as count from old`);
      return count;
    },

    deleteOldDays: async (days: number, limit: number): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* refusedRuns.deleteOldDays */
        with old as (
          delete from stack_days d using (
            select organization_id, day, stack_id from stack_days
            where day < (statement_timestamp() at time zone 'UTC')::date - ${days}::int order by day limit ${limit}) o
          where d.organization_id = o.organization_id and d.day = o.day and d.stack_id = o.stack_id returning 1)
        select count(*)::int as count from old`);
      return count;
    },
  };
}
