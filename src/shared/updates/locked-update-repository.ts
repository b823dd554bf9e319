import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';
import type { StackRow } from '../stacks/stack-repository.ts';
import { UpdateRow, updateColumns } from './update-repository.ts';
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
});

/** An update and its stack, both locked by the current transaction. */
export interface LockedUpdate {
  readonly update: UpdateRow;
  readonly stack: StackRow;
  /** Whether secrets were read that are in no event of the audit log yet. */
  readonly hasSecretReads: boolean;
}

/** Statements of transactions that hold the locks of an update and its stack. */
export function createLockedUpdateRepository(tx: Queryable) {
  return {
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
          exists (select 1 from audit_secret_reads r where r.update_id = u.id) as "hasSecretReads"
        from updates u left join journals j on j.update_id = u.id join stacks s on s.id = u.stack_id
          join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
        where u.id = ${updateId}`);
      const { stackId: id, headVersion: stackVersion, headCheckpointId: checkpointId } = row;
      return { update: row, stack: { ...row, id, stackVersion, checkpointId }, hasSecretReads: row.hasSecretReads };
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
      tx.maybeOne(sql.prepared('updates_end', IdRow)`
        /* updates.end */
        with released as (
          update stacks s set active_update_id = nullif(s.active_update_id, ${ended.id}::uuid),
            stack_version = greatest(s.stack_version, ${ended.stackVersion}::integer),
            updated_at = case when ${ended.stackVersion}::integer is null then s.updated_at else now() end
          where s.id = ${ended.stackId} and (s.active_update_id = ${ended.id}::uuid or ${ended.stackVersion}::integer is not null)
        )
        update updates set status = ${ended.status}, end_reason = ${ended.reason}, ended_at = clock_timestamp(),
          lease_hash = case when ${ended.keepLease} then lease_hash end
        where id = ${ended.id} returning id`),
  };
}
