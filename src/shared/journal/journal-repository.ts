import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';
import type { LeaseFence } from '../updates/lease.ts';
import type { JournalPage } from './replay-work.ts';

/** Bounds of a page; what is read and decoded in one turn of the event loop. */
const pageEntries = 1_000;
const pageBytes = 2 * 1024 * 1024;

const PageRow = Type.Object({ index: Nullable(Type.String()), text: Nullable(Type.String()) });
const AppendedRow = Type.Object({ entryCount: Type.Integer(), added: Type.Integer() });

export type JournalRepository = ReturnType<typeof createJournalRepository>;

/** Journal entries as raw text, by (update, sequenceID). */
export function createJournalRepository(db: Queryable) {
  return {
    /**
     * Adds entries that are not there yet, if the lease still holds and the update keeps a journal; one statement, whose cost
     * does not depend on the state. The count goes up in the locked row itself, so that a fold which commits at the same time
     * cannot miss entries. Returns the counts after the append, or null when nothing was admitted.
     */
    append: (fence: LeaseFence, entries: readonly { sequenceId: number; text: string }[]) => {
      const sequenceIds = sql.array(
        entries.map((entry) => entry.sequenceId),
        'int8',
      );
      const texts = sql.array(
        entries.map((entry) => entry.text),
        'text',
      );
      return db.maybeOne(sql.prepared('journal_append', AppendedRow)`
        /* journalEntries.append */
        with fenced as (
          select id from updates where id = ${fence.updateId} and status = 'running' and epoch = ${fence.epoch}
            and expires_at > clock_timestamp() and journal_version = 1 for update
        ),
        added as (
          insert into journal_entries (update_id, sequence_id, entry)
          select f.id, e.sequence_id, e.entry from fenced f, unnest(${sequenceIds}, ${texts}) as e (sequence_id, entry)
          on conflict (update_id, sequence_id) do nothing returning 1
        )
        update updates u set entry_count = u.entry_count + (select count(*)::integer from added)
        from fenced f where u.id = f.id
        returning u.entry_count as "entryCount", (select count(*)::integer from added) as added`);
    },

    /**
     * The next entries with a sequenceID above `after`, in order; none at the end. One row for all: a thousand rows take
     * several times as long to decode.
     */
    readPage: async (updateId: string, after: number): Promise<JournalPage & { readonly isLast: boolean }> => {
      const row = await db.one(sql.rows(PageRow)`
        /* journalEntries.readPage */
        with next as (
          select sequence_id, entry from journal_entries where update_id = ${updateId} and sequence_id > ${after}
          order by sequence_id limit ${pageEntries}
        ),
        measured as (
          select sequence_id, entry, sum(octet_length(entry)) over (order by sequence_id) - octet_length(entry) as bytes_before from next
        )
        select string_agg(sequence_id || ' ' || octet_length(convert_to(entry, 'UTF8')), ' ' order by sequence_id) as index,
          string_agg(entry, '' order by sequence_id) as text
        from measured where bytes_before < ${pageBytes}`);
      const index = row.index?.split(' ').map(Number) ?? [];
      // Memory of its own, so that it can be given to another thread.
      const text = Buffer.allocUnsafeSlow(Buffer.byteLength(row.text ?? ''));
      text.write(row.text ?? '');
      const page = {
        sequenceIds: index.filter((_, at) => at % 2 === 0),
        lengths: index.filter((_, at) => at % 2 === 1),
        text,
      };
      return { ...page, isLast: page.lengths.length < pageEntries && text.length < pageBytes };
    },

    /** Deletes the journal of an ended update that is wholly folded; one that could not be replayed is kept for a look. */
    deleteFolded: (updateId: string) =>
      db.query(sql.nothing`
        /* journalEntries.deleteFolded */
        with folded as (
          update updates set entry_count = 0, folded_entries = 0
          where id = ${updateId} and status not in ('not started', 'running') and fold_error is null and not has_tail
          returning id
        ),
        points as (delete from journal_fold_points p using folded where p.update_id = folded.id)
        delete from journal_entries j using folded where j.update_id = folded.id`),
  };
}
