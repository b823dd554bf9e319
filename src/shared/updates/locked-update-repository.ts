import { Type } from 'typebox';
import type { AuditAction } from '../audit/audit-actions.ts';
import { type AuditSource, detailsJson } from '../audit/audit-event.ts';
import { auditInsertion, objectText } from '../audit/audit-repository.ts';
import { type Queryable, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import { formatStackRef, type StackRef } from '../stacks/names.ts';
import type { StackRow } from '../stacks/stack-repository.ts';
import type { SeenDatabase } from './database/database-memory.ts';
import { type NewUpdate, UpdateRow, updateColumns } from './update-repository.ts';
import type { UpdateStatus } from './update-state.ts';

const IdRow = Type.Object({ id: Type.String() });

/** An update with its stack, whose fields have other names where both have one. */
const LockedRow = Type.Object({
  ...UpdateRow.properties,
  organizationId: Type.String(),
  projectId: Type.String(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  tags: Type.String(),
  headVersion: Type.Integer(),
  headCheckpointId: Nullable(Type.String()),
  activeUpdateId: Nullable(Type.String()),
  hasSecretReads: Type.Boolean(),
  missingEntries: Nullable(Type.String()),
});

/** An update and its stack, both locked by the current transaction. */
export interface LockedUpdate {
  readonly update: UpdateRow;
  readonly stack: StackRow;
  /** Whether secrets were read that are in no event of the audit log yet. */
  readonly hasSecretReads: boolean;
  /** Ids of entries that its journal lacks before the last one, as in `3-4, 7`; null: none. */
  readonly missingEntries: string | null;
}

const CompletedRow = Type.Object({ kind: UpdateRow.properties.kind });
const StartedRow = Type.Object({
  kind: UpdateRow.properties.kind,
  expiresAt: Timestamp,
  headVersion: Type.Integer(),
  /** The version that the update will create; null if it creates none. */
  stackVersion: Nullable(Type.Integer()),
  journalVersion: Type.Integer(),
});

/** An update that is created where no rule, limit or queue has to be asked. */
export interface OrdinaryUpdate extends Omit<NewUpdate, 'baseStackVersion' | 'waitedMs'> {
  readonly organization: string;
  /** Whether those that wait for the stack go first. */
  readonly mayWait: boolean;
}

/** An update that is started as it was created. */
export interface OrdinaryStart {
  readonly id: string;
  readonly ref: StackRef;
  readonly tokenId: string;
  /** JSON text; null: they stay. */
  readonly tags: string | null;
  readonly leaseHash: Buffer;
  readonly leaseSeconds: number;
  readonly maxSeconds: number;
  readonly withJournal: boolean;
}

/** Statements of transactions that hold the locks of an update and its stack. */
export function createLockedUpdateRepository(tx: Queryable) {
  return {
    /**
     * Creates an update and adds `action` to the audit log, all in one statement. Returns its id; null, and changes nothing, if there is
     * more to decide: see the function. Violates `updates_one_active_per_stack` as `insert` does.
     */
    create: async (
      update: OrdinaryUpdate,
      object: string,
      source: AuditSource,
      action: AuditAction,
    ): Promise<string | null> => {
      const { dryRun, kind, organization, stackId } = update;
      const event = {
        action,
        organization: sql.fragment`${organization}::text`,
        object: sql.fragment`${object}`,
        outcome: 'done' as const,
        updateId: sql.fragment`created.id`,
        updates: sql.fragment`lateral (select created.id, created.ci_run, null::uuid as requested_by, null::uuid as token_id)`,
        details: sql.fragment`${detailsJson({ stackId, kind, dryRun })}`,
      };
      const row = await tx.maybeOne(sql.prepared('updates_create', IdRow)`
        /* updates.create */
        with created as materialized (
          select c.id, ${update.ciRun}::text as ci_run from create_update(${stackId}, ${update.tokenId}, ${organization}, ${kind}, ${dryRun},
            ${update.exclusive}, ${update.mayWait}, ${update.message}, ${update.environment}, ${update.config}, ${update.program},
            ${update.requestedBy}, ${update.ciRun}, ${update.waitSeconds}) as c (id)
          where c.id is not null
        ),
        recorded as (${auditInsertion(source, event, sql.fragment`created`)})
        select id from created`);
      return row?.id ?? null;
    },

    /**
     * Starts an update and adds `action` to the audit log, all in one statement. Returns null, and changes nothing, if there is more to
     * decide: see the function.
     */
    start: (update: OrdinaryStart, source: AuditSource, action: AuditAction) => {
      const { id, ref } = update;
      const event = {
        action,
        organization: sql.fragment`${ref.organization}::text`,
        object: sql.fragment`${formatStackRef(ref)}`,
        outcome: 'done' as const,
        updateId: sql.fragment`${id}::uuid`,
        details: objectText(sql.fragment`json_build_object(
          'stackId', started.stack_id, 'kind', started.kind, 'dryRun', started.dry_run,
          'stackVersion', case when not started.dry_run then coalesce(started."stackVersion", started."headVersion") end)`),
      };
      return tx.maybeOne(sql.prepared('updates_start_at_once', StartedRow)`
        /* updates.startAtOnce */
        with started as materialized (
          select * from start_update(${id}, ${update.tokenId}, ${ref.organization}, ${ref.project}, ${ref.stack}, ${update.tags},
            ${sql.binary(update.leaseHash)}, ${update.leaseSeconds}, ${update.maxSeconds}, ${update.withJournal})
        ),
        recorded as (${auditInsertion(source, event, sql.fragment`started`)})
        select kind, "expiresAt", "headVersion", "stackVersion", "journalVersion" from started`);
    },

    /**
     * Locks and completes a running update and adds `action` to the audit log, all in one statement. Returns null, and changes nothing,
     * if there is more to decide than whether the lease of this epoch is valid: entries in no checkpoint or missing, reads of secrets in no
     * event, outputs that a rule watches, another database or an earlier point of it than `seen`.
     */
    complete: (
      {
        epoch,
        id,
        seen,
        status,
      }: {
        readonly id: string;
        readonly epoch: number;
        readonly seen: SeenDatabase | null;
        readonly status: UpdateStatus;
      },
      source: AuditSource,
      action: AuditAction,
    ) => {
      const event = {
        action,
        organization: sql.fragment`ended.organization`,
        object: sql.fragment`ended.organization || '/' || ended.project || '/' || ended.stack`,
        outcome: 'done' as const,
        updateId: sql.fragment`${id}::uuid`,
        details: objectText(sql.fragment`json_build_object(
          'stackId', ended.stack_id, 'kind', ended.kind, 'dryRun', ended.dry_run, 'stackVersion', ended.stack_version,
          'journalEntries', ended.entry_count, 'checkpoints', ended.checkpoint_count, 'status', ${status}::text)`),
      };
      return tx.maybeOne(sql.prepared('updates_complete', CompletedRow)`
        /* updates.complete */
        with ended as materialized (
          -- No update ends as its client wants in a database that may lack what was acknowledged to it.
          select c.* from database_change(${seen?.losses ?? null}::integer, ${seen?.position ?? null}::bigint) as present (change),
            complete_update(${id}, case when present.change in ('none', 'unnoted') then ${epoch}::integer end, ${status}) c
        ),
        recorded as (${auditInsertion(source, event, sql.fragment`ended`)})
        select kind from ended`);
    },

    /**
     * Locks the stack, then the update. Null if there is no such update, or if its stack was deleted. Two statements: journal
     * batches and reads of secrets hold only a share lock and do not change the update's row, so a single statement that waited for
     * them would return what there was before its wait.
     */
    lock: async (updateId: string): Promise<LockedUpdate | null> => {
      const locked = await tx.maybeOne(sql.prepared('updates_lock_with_stack', IdRow)`
        /* updates.lockWithStack */
        with stack as (
          select s.id from stacks s
          where s.id = (select stack_id from updates where id = ${updateId}) and s.deleted_at is null for update
        ),
        turn as materialized (select stack.id as stack_id, lock_exclusive(${updateId}) from stack)
        select u.id from turn join updates u on u.stack_id = turn.stack_id where u.id = ${updateId} for update of u`);
      if (!locked) return null;
      const row = await tx.one(sql.prepared('updates_read_with_stack', LockedRow)`
        /* updates.readWithStack */
        select ${updateColumns}, o.id as "organizationId", p.id as "projectId", o.name as organization, p.name as project,
          s.name as stack, s.tags, s.stack_version as "headVersion", s.checkpoint_id as "headCheckpointId",
          s.active_update_id as "activeUpdateId",
          exists (select 1 from audit_secret_reads r where r.update_id = u.id) as "hasSecretReads",
          missing_journal_entries(u.id, j.entry_count) as "missingEntries"
        from updates u left join journals j on j.update_id = u.id join stacks s on s.id = u.stack_id
          join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
        where u.id = ${updateId}`);
      const { stackId: id, headVersion: stackVersion, headCheckpointId: checkpointId } = row;
      return {
        update: row,
        stack: { ...row, id, stackVersion, checkpointId },
        hasSecretReads: row.hasSecretReads,
        missingEntries: row.missingEntries,
      };
    },

    /**
     * Ends an active update, releases the stack if that held it, and publishes `stackVersion`. `keepLease`: keeps the hash, so that
     * its holder can be distinguished from others.
     */
    end: (ended: {
      readonly id: string;
      readonly stackId: string;
      readonly status: UpdateStatus;
      readonly reason: string | null;
      readonly keepLease: boolean;
      readonly stackVersion: number | null;
    }) =>
      tx.query(sql.command('updates_end_locked')`
        /* updates.end */
        select end_locked_update(${ended.id}, ${ended.stackId}, ${ended.status}, ${ended.reason}, ${ended.keepLease}, ${ended.stackVersion})`),

    /** Records with which gaps the journal of an update has ended, for its history and for all who read the state. */
    recordMissingEntries: (id: string, missingEntries: string) =>
      tx.query(sql.nothing`
        /* updates.recordMissingEntries */
        with noted as (update updates set missing_entries = ${missingEntries} where id = ${id} returning id)
        update journals j set compaction_warning = concat_ws('; ', describe_missing_entries(${missingEntries}), j.compaction_warning)
        from noted where j.update_id = noted.id`),
  };
}
