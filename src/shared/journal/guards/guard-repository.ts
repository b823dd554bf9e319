import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Nullable } from '../../platform/schema/standard-schema.ts';
import type { LeaseFence } from '../../updates/lease.ts';
import { refusedPrefix } from './begin-entry.ts';

const IdRow = Type.Object({ id: Type.String() });

/** Why an update may begin nothing more. */
export interface Stop {
  /** `drain`, or the rule that stopped it: for metrics and the audit log. */
  readonly reason: string;
  readonly message: string;
}

const EntryRow = Type.Object({ sequenceId: Type.Integer(), isRefused: Type.Boolean() });

const GuardRow = Type.Object({
  stopReason: Nullable(Type.String()),
  stopMessage: Nullable(Type.String()),
});
export type GuardRow = Row<typeof GuardRow>;

export type GuardRepository = ReturnType<typeof createGuardRepository>;

/** What stops updates from beginning operations: table `update_guards`. */
export function createGuardRepository(db: Queryable) {
  return {
    /**
     * Locks what batches of a guarded update lock, in the same order: the update's row (shared), then its journal. Read what is guarded
     * in later statements only: this one returns what there was before it waited. Returns false if the lease is invalid.
     */
    lockJournal: async (fence: LeaseFence): Promise<boolean> => {
      const row = await db.maybeOne(sql.prepared('guards_lock_journal', IdRow)`
        /* guards.lockJournal */
        with fenced as (
          select id from updates where id = ${fence.updateId} and status = 'running' and epoch = ${fence.epoch}
            and expires_at > clock_timestamp() and journal_version = 1 for share
        )
        select j.update_id as id from fenced f join journals j on j.update_id = f.id for update of j`);
      return row !== null;
    },

    /** Null if the update has no guard. */
    find: (updateId: string) =>
      db.maybeOne(sql.prepared('guards_find', GuardRow)`
        /* guards.find */
        select stop_reason as "stopReason", stop_message as "stopMessage" from update_guards where update_id = ${updateId}`),

    /** Those of these entries that are stored already. */
    findStored: (updateId: string, sequenceIds: readonly number[]) =>
      db.any(sql.prepared('guards_find_stored', EntryRow)`
        /* guards.findStored */
        select sequence_id as "sequenceId", starts_with(entry, ${refusedPrefix}) as "isRefused" from journal_entries
        where update_id = ${updateId} and sequence_id = any (${sql.array([...sequenceIds], 'int8')})`),

    /**
     * Lets the update begin nothing more. The first reason stays. The caller has locked the update's row, or its journal while the
     * update is guarded.
     */
    stop: async (updateId: string, { reason, message }: Stop): Promise<void> => {
      await db.query(sql.nothing`
        /* guards.stop */
        insert into update_guards as g (update_id, stopped_at, stop_reason, stop_message)
        values (${updateId}, clock_timestamp(), ${reason}, ${message})
        on conflict (update_id) do update
          set stopped_at = excluded.stopped_at, stop_reason = excluded.stop_reason, stop_message = excluded.stop_message
          where g.stopped_at is null`);
    },

    /** Lets every batch of the update ask its guard, from the commit on. The caller has locked the update's row. */
    guard: (updateId: string) =>
      db.query(sql.nothing`/* guards.guard */ update updates set is_guarded = true where id = ${updateId}`),
  };
}
