import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Nullable } from '../../platform/schema/standard-schema.ts';
import { onLockedStack } from '../../stacks/stack-repository.ts';
import { environmentColumn, UpdateRow, updateColumns } from '../../updates/update-repository.ts';
import { CheckpointRow, checkpointColumns } from '../checkpoints/checkpoint-repository.ts';
import { pageEntries, pageOf, type ReadPage, toPage } from './journal-repository.ts';

const IdRow = Type.Object({ id: Type.String() });

const ClaimedRow = Type.Object({
  ...UpdateRow.properties,
  environment: Nullable(Type.String()),
  hasSnapshot: Type.Boolean(),
  index: Nullable(Type.String()),
  text: Nullable(Type.String()),
  /** The fields of `CheckpointRow`; null if there is no document. */
  ...Object.fromEntries(
    Object.entries(CheckpointRow.properties).map(([name, type]) => [`document ${name}`, Nullable(type)]),
  ),
});

/** Includes the rows that the compaction reads first. */
export interface ClaimedUpdate extends UpdateRow {
  readonly environment: string | null;
  readonly hasSnapshot: boolean;
  /** The base of a running update, or the checkpoint of an ended one. Also null if the compaction does not need it. */
  readonly document: CheckpointRow | null;
  /** All entries of a running update; null if they must be read separately. */
  readonly page: ReadPage | null;
}

const documentColumns = sql.join(
  Object.keys(CheckpointRow.properties).map(
    (name) => sql.fragment`d.${sql.identifier([name])} as ${sql.identifier([`document ${name}`])}`,
  ),
  sql.fragment`, `,
);

function toClaimed({ index, text, ...row }: Row<typeof ClaimedRow>): ClaimedUpdate {
  const values = row as Record<string, unknown>;
  const document =
    values['document id'] === null
      ? null
      : (Object.fromEntries(
          Object.keys(CheckpointRow.properties).map((name) => [name, values[`document ${name}`]]),
        ) as CheckpointRow);
  const page = toPage({ index, text });
  // A claim that waited for an append may count entries that its page lacks.
  const isWhole = page.lengths.length === row.entryCount;
  return { ...row, document, page: isWhole ? { ...page, isLast: true } : null };
}

/** Occurs in the warning about skipped entries of an unknown kind, not in the one about missing entries. */
export const unknownKindText = 'this release does not know the kind of';

const FaultCountRow = Type.Object({
  error: Type.Integer(),
  unknownKind: Type.Integer(),
  missingEntries: Type.Integer(),
});
/** No operator has accepted the compaction error or warning. */
const JournalFaultRow = Type.Object({
  updateId: Type.String(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  stackVersion: Nullable(Type.Integer()),
  entryCount: Type.Integer(),
  compactedEntries: Type.Integer(),
  compactionError: Nullable(Type.String()),
  compactionWarning: Nullable(Type.String()),
});
export type JournalFaultRow = Row<typeof JournalFaultRow>;

export type CompactionRepository = ReturnType<typeof createCompactionRepository>;

/** All times come from the database's clock. */
export function createCompactionRepository(db: Queryable) {
  const isFaulty = sql.fragment`j.accepted_at is null and (j.compaction_error is not null or j.compaction_warning is not null)`;
  // Must imply the condition of the index journals_kept. A legal hold keeps entries that are in no state, which an operator has accepted.
  const isDeletable = sql.fragment`
    j.compacted_at is not null and (j.accepted_at is not null or (j.compaction_error is null and j.compaction_warning is null))
    and (j.accepted_at is null or not exists (select 1 from stacks s where s.id = j.stack_id and s.held_at is not null))`;
  // Evaluated once, not for each row, so that an index scan can use it.
  const once = sql.fragment`(select clock_timestamp())`;

  return {
    /**
     * Returns null if another process holds the claim, if there is no journal, or if the stack was deleted. For a deleted stack that can be
     * restored, the claim succeeds with `deletedToo` or if the journal only has to be read back. A claim that expires later than `seconds`
     * from now was made before the database's clock was set back, and is ignored. After a wait for another statement, the row may have the
     * update's earlier checkpoint; a commit based on that fails. `withPage` also reads the entries of a running update, unless it has a
     * snapshot or many entries. The commit does not wait for the disk: a claim only saves work, and a claim lost in a crash of Postgres is
     * made again. Call this outside a transaction: its commit would not wait either.
     */
    claim: async (
      updateId: string,
      claim: string,
      {
        deletedToo,
        seconds,
        withPage,
      }: { readonly seconds: number; readonly deletedToo: boolean; readonly withPage: boolean },
    ): Promise<ClaimedUpdate | null> => {
      const row = await db.maybeOne(sql.prepared('journals_claim_update', ClaimedRow)`
        /* journals.claim */
        with quick as materialized (select set_config('synchronous_commit', 'off', true)),
        claimed as (
        update journals j set compaction_claim = ${claim}, compaction_claimed_until = clock_timestamp() + make_interval(secs => ${seconds})
        from quick, updates u
          join stacks s on s.id = u.stack_id
        where j.update_id = ${updateId} and u.id = j.update_id
          and (s.deleted_at is null or (s.restorable_until is not null and (${deletedToo} or j.entry_count <= j.compacted_entries)))
          and (j.compaction_claimed_until is null or j.compaction_claimed_until <= clock_timestamp()
          or j.compaction_claimed_until > clock_timestamp() + make_interval(secs => ${seconds}))
        returning ${updateColumns}, ${environmentColumn},
          exists (select 1 from journal_snapshots p where p.update_id = j.update_id) as "hasSnapshot"
        )
        select c.*, ${documentColumns}, p.index, p.text
        from claimed c
          left join lateral (
            select ${checkpointColumns} from checkpoints
            where id = case when c.status = 'running' and c."hasPendingEntries" then c."baseCheckpointId"
              when c.status not in ('not started', 'running') and not c."hasPendingEntries" then c."checkpointId" end
          ) d on true
          cross join lateral (${pageOf(sql.fragment`
            ${withPage}::boolean and c.status = 'running' and c."hasPendingEntries" and not c."hasSnapshot" and c."entryCount" <= ${pageEntries}
            and update_id = c.id and sequence_id > 0`)}) p`);
      return row && toClaimed(row);
    },

    renewClaim: (updateId: string, claim: string, seconds: number) =>
      db.query(sql.nothing`
        /* journals.renewClaim */
        update journals set compaction_claimed_until = clock_timestamp() + make_interval(secs => ${seconds})
        where update_id = ${updateId} and compaction_claim = ${claim}`),

    releaseClaim: (updateId: string, claim: string) =>
      db.query(sql.nothing`
        /* journals.releaseClaim */
        update journals set compaction_claim = null, compaction_claimed_until = null
        where update_id = ${updateId} and compaction_claim = ${claim}`),

    /**
     * No entry of an ended update can be replayed, so its state becomes the base. Returns false and changes nothing if the update no longer
     * has `foundCheckpointId`, or if the stack was deleted.
     */
    revertToBase: async (compaction: {
      updateId: string;
      stackId: string;
      foundCheckpointId: string | null;
      error: string;
    }): Promise<boolean> => {
      const statement = sql.rows(IdRow)`
        /* journals.revertToBase */
        with stack as (select id from stacks where id = ${compaction.stackId} and deleted_at is null for update),
        fenced as (
          select u.id, u.stack_id, u.checkpoint_id, u.base_checkpoint_id, u.missing_entries
          from updates u join stack on stack.id = u.stack_id join journals j on j.update_id = u.id
          where u.id = ${compaction.updateId} and u.checkpoint_id is not distinct from ${compaction.foundCheckpointId}::uuid
            and not exists (
              select 1 from updates r where r.stack_id = u.stack_id and r.id <> u.id and r.exclusive and r.status = 'running'
            )
          for update of u, j
        ),
        moved as (
          update updates u set checkpoint_id = f.base_checkpoint_id from fenced f
          where u.id = f.id and u.checkpoint_id is distinct from f.base_checkpoint_id
        ),
        head as (
          update stacks s set checkpoint_id = f.base_checkpoint_id, updated_at = now() from fenced f
          where s.id = f.stack_id and s.checkpoint_id is not distinct from f.checkpoint_id
            and f.checkpoint_id is distinct from f.base_checkpoint_id
        ),
        superseded as (
          delete from checkpoints c using fenced f where c.update_id = f.id
            and not exists (
              select 1 from updates o where o.id <> f.id and o.exclusive and (o.base_checkpoint_id = c.id or o.checkpoint_id = c.id)
            )
        )
        update journals j set compacted_entries = 0, compaction_error = ${compaction.error},
          compaction_warning = describe_missing_entries(f.missing_entries), compacted_at = null,
          -- Only what an operator has seen is accepted.
          accepted_at = case when j.compaction_error = ${compaction.error} then j.accepted_at end,
          compaction_claim = null, compaction_claimed_until = null
        from fenced f where j.update_id = f.id returning f.id`;
      const row = await onLockedStack(db, compaction.stackId, (tx) => tx.maybeOne(statement));
      return row !== null;
    },

    /** Records why entries of an ended update cannot be replayed. Its checkpoint stays. */
    recordFault: (updateId: string, error: string) =>
      db.query(sql.nothing`
        /* journals.recordFault */
        update journals j set compaction_error = ${error}, compacted_at = null, accepted_at = null from updates u
        where j.update_id = ${updateId} and u.id = j.update_id and u.status not in ('not started', 'running')
          and j.entry_count > j.compacted_entries and j.compaction_error is null`),

    /**
     * The state of an ended update was read back intact as `checkpointId`. Also deletes the update's snapshots and releases the claim.
     * Returns false if nothing was changed.
     */
    markCompacted: async (updateId: string, checkpointId: string | null): Promise<boolean> => {
      const row = await db.maybeOne(sql.prepared('journals_mark_compacted', IdRow)`
        /* journals.markCompacted */
        with fenced as (
          select u.id from updates u
          where u.id = ${updateId} and u.status not in ('not started', 'running') and u.checkpoint_id is not distinct from ${checkpointId}::uuid
          for no key update
        ),
        marked as (
          update journals j set compacted_at = clock_timestamp(), compaction_claim = null, compaction_claimed_until = null from fenced f
          where j.update_id = f.id and j.compacted_at is null and (j.entry_count <= j.compacted_entries or j.compaction_error is not null)
          returning j.update_id
        ),
        dropped as (delete from journal_snapshots p using marked m where p.update_id = m.update_id)
        select update_id as id from marked`);
      return row !== null;
    },

    /**
     * Claims ended updates whose journal has not been compacted or read back, untried ones first. The pause before a retry starts at 20 s
     * and doubles up to one hour. It is stored before the attempt, so one that crashes the process also counts. Journals of deleted stacks
     * that can be restored are only read back.
     */
    claimUncompacted: async (limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* journals.claimUncompacted */
        with due as (
          select j.update_id from journals j join stacks s on s.id = j.stack_id
          where j.compacted_at is null and j.ended_at is not null
            and (s.deleted_at is null or (s.restorable_until is not null and j.entry_count <= j.compacted_entries))
            and (j.next_compaction_at is null or j.next_compaction_at <= ${once}
              -- The clock was set back.
              or j.next_compaction_at > ${once} + interval '1 hour')
          order by j.next_compaction_at nulls first, j.ended_at limit ${limit} for update of j skip locked
        )
        update journals j set compaction_attempts = j.compaction_attempts + 1,
          next_compaction_at = clock_timestamp() + least(interval '1 hour', interval '20 seconds' * 2 ^ least(j.compaction_attempts, 12))
        from due where j.update_id = due.update_id returning j.update_id as id`);
      return rows.map((row) => row.id);
    },

    listKeptLongerThan: async (
      graceSeconds: number,
      limit: number,
      skipped: readonly string[] = [],
    ): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* journals.listKeptLongerThan */
        select j.update_id as id from journals j
        where ${isDeletable} and greatest(j.compacted_at, j.accepted_at) <= ${once} - make_interval(secs => ${graceSeconds})
          and j.update_id <> all(${sql.array(skipped, 'uuid')}) order by greatest(j.compacted_at, j.accepted_at) limit ${limit}`);
      return rows.map((row) => row.id);
    },

    /** Does nothing if some entries of the journal are in no state, unless an operator has accepted this and no legal hold keeps them. */
    delete: (updateId: string) =>
      db.query(sql.nothing`
        /* journals.delete */
        with deleted as (delete from journals j where j.update_id = ${updateId} and ${isDeletable} returning j.update_id),
        snapshots as (delete from journal_snapshots p using deleted d where p.update_id = d.update_id)
        delete from journal_entries e using deleted d where e.update_id = d.update_id`),

    /** Newest version first. */
    findFaults: (stackId: string) =>
      db.any(sql.prepared('journals_find_faults', JournalFaultRow)`
        /* journals.findFaults */
        select j.update_id as "updateId", o.name as organization, p.name as project, s.name as stack,
          u.stack_version as "stackVersion", j.entry_count as "entryCount", j.compacted_entries as "compactedEntries",
          j.compaction_error as "compactionError", j.compaction_warning as "compactionWarning"
        from journals j join updates u on u.id = j.update_id join stacks s on s.id = j.stack_id
          join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
        where j.stack_id = ${stackId} and ${isFaulty} order by u.stack_version desc`),

    /** Returns false and changes nothing if the fault has changed or was already accepted. */
    acceptFault: async (
      fault: Pick<JournalFaultRow, 'updateId' | 'compactionError' | 'compactionWarning'>,
    ): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* journals.acceptFault */
        update journals j set accepted_at = clock_timestamp()
        where j.update_id = ${fault.updateId} and j.ended_at is not null and ${isFaulty}
          and j.compaction_error is not distinct from ${fault.compactionError}::text
          and j.compaction_warning is not distinct from ${fault.compactionWarning}::text
        returning j.update_id as id`);
      return row !== null;
    },

    countFaultyStacks: () =>
      db.one(sql.rows(FaultCountRow)`
        /* journals.countFaultyStacks */
        select count(distinct j.stack_id) filter (where j.compaction_error is not null)::integer as error,
          count(distinct j.stack_id) filter (where strpos(j.compaction_warning, ${unknownKindText}) > 0)::integer as "unknownKind",
          count(distinct j.stack_id) filter (where u.missing_entries is not null)::integer as "missingEntries"
        from journals j join updates u on u.id = j.update_id where ${isFaulty}`),

    /** `stackVersion` null finds the newest update that still has its journal. */
    findWithJournal: (stackId: string, stackVersion: number | null) =>
      db.maybeOne(sql.rows(IdRow)`
        /* journals.findWithJournal */
        select u.id from journals j join updates u on u.id = j.update_id
        where j.stack_id = ${stackId} and (${stackVersion}::integer is null or u.stack_version = ${stackVersion}::integer)
        order by u.stack_version desc limit 1`),
  };
}
