import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';
import { mayBeSent } from '../platform/outgoing/held-outgoing-repository.ts';

const PauseRow = Type.Object({ failures: Type.Integer(), isDue: Type.Boolean() });
const AgeRow = Type.Object({ seconds: Type.Number() });

/** After a failure, all workers wait until `next_at`, by the database's clock. */
export function createAuditSendingRepository(db: Queryable) {
  const inSeconds = (seconds: number) => sql.fragment`clock_timestamp() + make_interval(secs => ${seconds})`;
  return {
    /** A time later than the longest pause means that the clock was set back. */
    readPause: (maxPauseSeconds: number) =>
      db.one(sql.rows(PauseRow)`
        /* auditSending.readPause */
        select failures, (next_at <= clock_timestamp() or next_at > ${inSeconds(maxPauseSeconds)}) and ${mayBeSent} as "isDue"
        from audit_sending`),

    noteFailure: (failures: number, pauseSeconds: number) =>
      db.query(sql.nothing`
        /* auditSending.noteFailure */
        update audit_sending set failures = ${failures}, next_at = ${inSeconds(pauseSeconds)}`),

    noteSuccess: () =>
      db.query(sql.nothing`
        /* auditSending.noteSuccess */ update audit_sending set failures = 0, next_at = clock_timestamp() where failures > 0`),

    /** Age of the oldest chained batch that is not sent to the receiver, or not exported to the blob store; 0 for none. */
    readWaitingSeconds: async (target: 'sent' | 'exported'): Promise<number> => {
      const through = target === 'sent' ? sql.fragment`c.sent_batch` : sql.fragment`c.exported_batch`;
      const row = await db.one(sql.rows(AgeRow)`
        /* auditSending.readWaitingSeconds */
        select coalesce(extract(epoch from clock_timestamp() - min(b.chained_at)), 0)::float8 as seconds
        from audit_chains c
          cross join lateral (
            select chained_at from audit_batches
            where organization_id = c.organization_id and batch > greatest(${through}, c.base_batch) order by batch limit 1) b
        where ${through} < c.batch`);
      return row.seconds;
    },
  };
}
