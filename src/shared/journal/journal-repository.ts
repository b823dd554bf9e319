import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';
import type { LeaseFence } from '../updates/lease.ts';

const EntryRow = Type.Object({ sequenceId: Type.Integer(), entry: Type.String() });

export type JournalRepository = ReturnType<typeof createJournalRepository>;

/** Journal entries as raw text, by (update, sequenceID). */
export function createJournalRepository(db: Queryable) {
  return {
    /**
     * Adds entries that are not there yet, if the lease still holds and the update keeps a journal; one statement, whose cost
     * does not depend on the state. Returns false when nothing was admitted.
     */
    append: async (fence: LeaseFence, entries: readonly { sequenceId: number; text: string }[]): Promise<boolean> => {
      const row = await db.one(sql.prepared('journal_append', Type.Object({ admitted: Type.Integer() }))`
        /* journalEntries.append */
        with fenced as (
          select id, has_tail from updates where id = ${fence.updateId} and status = 'running' and epoch = ${fence.epoch}
            and expires_at > clock_timestamp() and journal_version = 1 for update
        ),
        flagged as (
          update updates u set has_tail = true from fenced f
          where u.id = f.id and not f.has_tail and ${entries.length > 0}
        ),
        added as (
          insert into journal_entries (update_id, sequence_id, entry)
          select f.id, e.sequence_id, e.entry
          from fenced f, unnest(${sql.array(
            entries.map((entry) => entry.sequenceId),
            'int8',
          )}, ${sql.array(
            entries.map((entry) => entry.text),
            'text',
          )}) as e (sequence_id, entry)
          on conflict (update_id, sequence_id) do nothing
        )
        select count(*)::integer as admitted from fenced`);
      return row.admitted > 0;
    },

    /** All entries of the update in order of sequenceID. */
    list: (updateId: string) =>
      db.any(sql.rows(EntryRow)`
        /* journalEntries.list */ select sequence_id as "sequenceId", entry from journal_entries
        where update_id = ${updateId} order by sequence_id`),

    maxSequence: async (updateId: string): Promise<number> => {
      const row = await db.one(sql.rows(Type.Object({ sequence: Type.Integer() }))`
        /* journalEntries.maxSequence */
        select coalesce(max(sequence_id), 0) as sequence from journal_entries where update_id = ${updateId}`);
      return row.sequence;
    },

    /** Entries that are part of the update's checkpoint; those that could not be replayed are kept for a look. */
    deleteFolded: (updateId: string) =>
      db.query(sql.nothing`
        /* journalEntries.deleteFolded */
        delete from journal_entries j using updates u
        where j.update_id = ${updateId} and u.id = j.update_id and u.fold_error is null and j.sequence_id <= u.folded_sequence`),
  };
}
