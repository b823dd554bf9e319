import { Type } from 'typebox';
import type { PermissionSet } from '../access/permissions.ts';
import type { AuditAction } from '../audit/audit-actions.ts';
import type { AuditSource } from '../audit/audit-event.ts';
import { auditInsertion, objectText } from '../audit/audit-repository.ts';
import { plannedOnce, type Queryable, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import { formatStackRef, type StackRef } from '../stacks/names.ts';
import type { StackRow } from '../stacks/stack-repository.ts';
import type { SeenDatabase } from './rollback-detection/rollback-state.ts';
import { UpdateRow, updateColumns } from './update-repository.ts';
import type { UpdateKind, UpdateStatus } from './update-state.ts';

const IdRow = Type.Object({ id: Type.String() });

/** A field of the stack has another name if the update has one of that name. */
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
  isImportUnfinished: Type.Boolean(),
  missingEntries: Nullable(Type.String()),
});

export interface LockedUpdate {
  readonly update: UpdateRow;
  readonly stack: StackRow;
  /** Ids of entries that its journal lacks before the last one, e.g. `3-4, 7`; null for none. */
  readonly missingEntries: string | null;
}

/** The result of the function complete_update in the schema. */
export type Completion =
  | { readonly outcome: 'ended' | 'repeated'; readonly kind: UpdateKind; readonly missingEntries: string | null }
  | { readonly outcome: 'gap'; readonly missingEntries: string }
  | { readonly outcome: 'other-database' | 'lease-lost' | 'pending-entries' | 'watched' };
const CompletionRow = Type.Unsafe<Completion>(
  Type.Object({
    outcome: Type.String(),
    kind: Nullable(UpdateRow.properties.kind),
    missingEntries: Nullable(Type.String()),
  }),
);
export interface Started {
  readonly outcome: 'started';
  readonly stackId: string;
  readonly kind: UpdateKind;
  readonly dryRun: boolean;
  readonly expiresAt: Date;
  readonly headVersion: number;
  /** The version that the update will create; null if it creates none. */
  readonly stackVersion: number | null;
  readonly journalVersion: number;
}
/** The result of the function start_update in the schema. */
export type Start =
  | Started
  | { readonly outcome: 'no-access' | 'not-found' }
  | { readonly outcome: 'denied'; readonly dryRun: boolean; readonly permissions: PermissionSet }
  | { readonly outcome: 'not-waiting'; readonly status: UpdateStatus; readonly endReason: string | null }
  | {
      readonly outcome: 'unprepared' | 'fault' | 'journal-needed' | 'new-tags';
      readonly stackId: string;
      readonly dryRun: boolean;
    };
const StartRow = Type.Unsafe<Start>(
  Type.Object({
    outcome: Type.String(),
    stackId: Nullable(Type.String()),
    kind: Nullable(UpdateRow.properties.kind),
    dryRun: Nullable(Type.Boolean()),
    status: Nullable(UpdateRow.properties.status),
    endReason: Nullable(Type.String()),
    permissions: Nullable(Type.Integer()),
    expiresAt: Nullable(Timestamp),
    headVersion: Nullable(Type.Integer()),
    stackVersion: Nullable(Type.Integer()),
    journalVersion: Nullable(Type.Integer()),
  }),
);

export interface NewStart {
  readonly id: string;
  readonly ref: StackRef;
  readonly tokenId: string;
  /** The stack must have these tags (JSON text); null for any. */
  readonly tags: string | null;
  readonly leaseHash: Buffer;
  readonly leaseSeconds: number;
  readonly maxSeconds: number;
  readonly withJournal: boolean;
  /** Whether the caller has prepared the stack; see reclaimStack. */
  readonly isPrepared: boolean;
}

/** For transactions that hold the locks on an update and its stack. */
export function createLockedUpdateRepository(tx: Queryable) {
  return {
    /** Also adds `action` to the audit log. Changes nothing unless the outcome is `started`. */
    start: (update: NewStart, source: AuditSource, action: AuditAction): Promise<Start> => {
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
      return tx.one(sql.prepared('updates_start', StartRow)`
        /* updates.start */
        with ${plannedOnce(tx)},
        start as materialized (
          select s.* from planned_once, start_update(${id}, ${update.tokenId}, ${ref.organization}, ${ref.project}, ${ref.stack},
            ${update.tags}, ${sql.binary(update.leaseHash)}, ${update.leaseSeconds}, ${update.maxSeconds}, ${update.withJournal},
            ${update.isPrepared} and mode is not null) s
        ),
        started as (select * from start where outcome = 'started'),
        recorded as (${auditInsertion(source, event, sql.fragment`started`)})
        select outcome, stack_id as "stackId", kind, dry_run as "dryRun", status, end_reason as "endReason", permissions, "expiresAt",
          "headVersion", "stackVersion", "journalVersion"
        from start`);
    },

    /**
     * Locks the update, and adds `action` to the audit log. Changes nothing unless the outcome is `ended`. `knowsOutputs`: the caller knows
     * the removed outputs and records them.
     */
    complete: (
      {
        epoch,
        id,
        knowsOutputs,
        seen,
        status,
      }: {
        readonly id: string;
        readonly epoch: number;
        readonly seen: SeenDatabase | null;
        readonly status: UpdateStatus;
        readonly knowsOutputs: boolean;
      },
      source: AuditSource,
      action: AuditAction,
    ): Promise<Completion> => {
      const event = {
        action,
        organization: sql.fragment`ended.organization`,
        object: sql.fragment`ended.organization || '/' || ended.project || '/' || ended.stack`,
        outcome: 'done' as const,
        updateId: sql.fragment`${id}::uuid`,
        details: objectText(
          sql.fragment`json_build_object(
          'stackId', ended.stack_id, 'kind', ended.kind, 'dryRun', ended.dry_run, 'stackVersion', ended.stack_version,
          'journalEntries', ended.entry_count, 'checkpoints', ended.checkpoint_count, 'missingEntries', ended.missing_entries,
          'status', ${status}::text)`,
          ['missingEntries'],
        ),
      };
      return tx.one(sql.prepared('updates_complete', CompletionRow)`
        /* updates.complete */
        with ${plannedOnce(tx)},
        completed as materialized (
          select c.* from planned_once, complete_update(${id}, ${epoch}, ${status}, ${seen?.losses ?? null}::integer,
            ${seen?.position ?? null}::bigint, ${knowsOutputs} and mode is not null) c
        ),
        ended as (select * from completed where outcome = 'ended'),
        recorded as (${auditInsertion(source, event, sql.fragment`ended`)})
        select outcome, kind, missing_entries as "missingEntries" from completed`);
    },

    /**
     * Locks the stack, then the update. Returns null if the stack was deleted. Two statements are needed: journal batches and reads of
     * secrets hold only a share lock and do not change the update's row, so a single statement would return the data from before its wait
     * for them.
     */
    lock: async (updateId: string): Promise<LockedUpdate | null> => {
      const locked = await tx.maybeOne(sql.prepared('updates_lock_with_stack', IdRow)`
        /* updates.lockWithStack */
        with stack as (
          select s.id from stacks s
          where s.id = (select stack_id from updates where id = ${updateId}) and s.deleted_at is null for update
        ),
        locked as materialized (select stack.id as stack_id, lock_exclusive(${updateId}) from stack)
        select u.id from locked join updates u on u.stack_id = locked.stack_id where u.id = ${updateId} for update of u`);
      if (!locked) return null;
      const row = await tx.one(sql.prepared('updates_read_with_stack', LockedRow)`
        /* updates.readWithStack */
        select ${updateColumns}, o.id as "organizationId", p.id as "projectId", o.name as organization, p.name as project,
          s.name as stack, s.tags, s.stack_version as "headVersion", s.checkpoint_id as "headCheckpointId",
          s.active_update_id as "activeUpdateId", s.import_unfinished as "isImportUnfinished",
          missing_journal_entries(u.id, j.entry_count) as "missingEntries"
        from updates u left join journals j on j.update_id = u.id join stacks s on s.id = u.stack_id
          join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
        where u.id = ${updateId}`);
      const { stackId: id, headVersion: stackVersion, headCheckpointId: checkpointId } = row;
      return {
        update: row,
        stack: { ...row, id, stackVersion, checkpointId },
        missingEntries: row.missingEntries,
      };
    },

    /**
     * Also releases the stack if the update held it, and publishes `stackVersion`. `keepLease` keeps the hash, so that the server still
     * recognizes the lease's holder.
     */
    end: (ended: {
      readonly id: string;
      readonly stackId: string;
      readonly status: UpdateStatus;
      readonly reason: string | null;
      readonly keepLease: boolean;
      readonly stackVersion: number | null;
      readonly missingEntries: string | null;
    }) =>
      tx.query(sql.command('updates_end_locked')`
        /* updates.end */
        select end_locked_update(${ended.id}, ${ended.stackId}, ${ended.status}, ${ended.reason}, ${ended.keepLease}, ${ended.stackVersion},
          ${ended.missingEntries})`),
  };
}
