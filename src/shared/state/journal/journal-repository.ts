import { Type } from 'typebox';
import { type Queryable, type Row, type SqlFragment, sql } from '../../platform/db/sql.ts';
import { inBatches, packTexts } from '../../platform/db/text-chunks.ts';
import { Nullable } from '../../platform/schema/standard-schema.ts';
import { FenceError, fenceHolds, type LeaseFence, whileFenceHolds } from '../../updates/fence.ts';
import { type BatchEntry, isLimitable } from './journal-batch.ts';
import type { JournalPage } from './replay/runner/replay-work.ts';

/** Limits of a page, which is decoded in one event loop tick. */
export const pageEntries = 1_000;
const pageBytes = 2 * 1024 * 1024;

const PageRow = Type.Object({ index: Nullable(Type.String()), text: Nullable(Type.String()) });

export type ReadPage = JournalPage & { readonly isLast: boolean };

/** One row, because decoding a thousand rows takes several times as long. `where` refers to `journal_entries`. */
export const pageOf = (where: SqlFragment): SqlFragment => sql.fragment`
  with next as (
    select sequence_id, entry from journal_entries where ${where} order by sequence_id limit ${pageEntries}
  ),
  measured as (
    select sequence_id, entry, sum(octet_length(entry)) over (order by sequence_id) - octet_length(entry) as bytes_before from next
  )
  select string_agg(sequence_id || ' ' || octet_length(convert_to(entry, 'UTF8')), ' ' order by sequence_id) as index,
    string_agg(entry, '' order by sequence_id) as text
  from measured where bytes_before < ${pageBytes}`;

export function toPage(row: Row<typeof PageRow>): ReadPage {
  const index = row.index?.split(' ').map(Number) ?? [];
  // Not from Buffer's pool, so that the memory can be transferred to another thread.
  const text = Buffer.allocUnsafeSlow(Buffer.byteLength(row.text ?? ''));
  text.write(row.text ?? '');
  const lengths = index.filter((_, at) => at % 2 === 1);
  const isLast = lengths.length < pageEntries && text.length < pageBytes;
  return { sequenceIds: index.filter((_, at) => at % 2 === 0), lengths, text, isLast };
}

const AppendedRow = Type.Object({
  entryCount: Type.Integer(),
  added: Type.Integer(),
  /** See RollbackState.beginWrite. */
  position: Nullable(Type.Integer()),
});
export type Appended = Row<typeof AppendedRow>;

export type JournalRepository = ReturnType<typeof createJournalRepository>;

/** Raw text, keyed by (update, sequenceID). */
export function createJournalRepository(db: Queryable) {
  const insert = (
    tx: Queryable,
    fence: LeaseFence,
    entries: readonly BatchEntry[],
    isChecked: boolean,
  ): Promise<Appended | null> => {
    // Change limits depend on the limitable entries. After a wait for its lock, the condition is checked again on the newest row.
    const limitsAreChecked = isChecked || !entries.some(isLimitable);
    const sequenceIds = entries.map((entry) => entry.sequenceId);
    const { bytes, starts, lengths } = packTexts(entries.map(({ text }) => text));
    return tx.maybeOne(sql.prepared('journal_append', AppendedRow)`
      /* journalEntries.append */
      with locked as materialized (select lock_shared(${fence.updateId})),
      fenced as (
        select u.id from locked, updates u where ${fenceHolds(fence)}
          and u.journal_version = 1 and (${limitsAreChecked}::boolean or not u.is_limited)
          for share of u
      ),
      added as (
        insert into journal_entries (update_id, sequence_id, entry)
        select f.id, e.sequence_id, convert_from(substr(${sql.binary(bytes)}::bytea, e.start, e.length), 'UTF8')
        from fenced f, unnest(${sql.array(sequenceIds, 'int8')}, ${sql.array(starts, 'int4')}, ${sql.array(lengths, 'int4')})
          as e (sequence_id, start, length)
        on conflict (update_id, sequence_id) do nothing returning 1
      )
      update journals j set entry_count = j.entry_count + (select count(*)::integer from added)
      from fenced f where j.update_id = f.id
      returning j.entry_count as "entryCount", (select count(*)::integer from added) as added, write_position() as position`);
  };

  const repository = {
    /**
     * Adds the entries that do not exist yet. Uses one statement, or a transaction of several above 1 MiB; the cost does not depend on the
     * size of the state. Takes only a shared lock on the update's row, so that batches of entries and events can run concurrently; the end
     * of the update waits for them. Increments the entry count in the journal's own row, so that a concurrent commit of a compaction cannot
     * miss entries. Returns null if the lease is invalid, if the update has no journal, or if these entries must first be checked against
     * its change limits. `isChecked` means that this transaction has checked them.
     */
    append: async (fence: LeaseFence, entries: readonly BatchEntry[], isChecked = false): Promise<Appended | null> => {
      const batches = inBatches(entries, ({ text }) => text.length);
      if (batches.length === 1) return insert(db, fence, entries, isChecked);
      return whileFenceHolds(db, async (tx) => {
        const total: Appended = { entryCount: 0, added: 0, position: null };
        for (const batch of batches) {
          const appended = await insert(tx, fence, batch, isChecked);
          if (!appended) throw new FenceError();
          total.entryCount = appended.entryCount;
          total.added += appended.added;
          total.position = appended.position;
        }
        return total;
      });
    },

    /** In order, with a sequenceID above `after`. */
    readPage: async (updateId: string, after: number): Promise<ReadPage> =>
      toPage(
        await db.one(sql.prepared('journal_read_page', PageRow)`
          /* journalEntries.readPage */ ${pageOf(sql.fragment`update_id = ${updateId} and sequence_id > ${after}`)}`),
      ),

    /** In order. Holds one page in memory at a time. */
    async *readTexts(updateId: string): AsyncGenerator<string> {
      let after = 0;
      for (;;) {
        const { sequenceIds, lengths, text, isLast } = await repository.readPage(updateId, after);
        let end = 0;
        for (const length of lengths) {
          const start = end;
          end += length;
          yield Buffer.from(text.buffer, text.byteOffset + start, length).toString('utf8');
        }
        if (isLast || sequenceIds.length === 0) return;
        after = sequenceIds.at(-1) as number;
      }
    },
  };
  return repository;
}
