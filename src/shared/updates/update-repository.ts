import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Bytes, Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import { timeSliceBytes } from '../platform/slices/slices.ts';
import type { StackRef } from '../stacks/names.ts';
import { stackJoins, stackNamed } from '../stacks/stack-repository.ts';
import { fenceHolds } from './fence.ts';
import type { UpdateKind, UpdateStatus } from './update-state.ts';

const Status = Type.Unsafe<UpdateStatus>(Type.String());
const Kind = Type.Unsafe<UpdateKind>(Type.String());

/** For control calls and lease checks. */
export const UpdateRow = Type.Object({
  id: Type.String(),
  stackId: Type.String(),
  kind: Kind,
  dryRun: Type.Boolean(),
  exclusive: Type.Boolean(),
  status: Status,
  stackVersion: Nullable(Type.Integer()),
  baseStackVersion: Type.Integer(),
  leaseHash: Nullable(Bytes),
  expiresAt: Timestamp,
  /** Whether its time is over, or its lease was revoked. */
  expired: Type.Boolean(),
  /** Why the update ended without being completed, or is due to be ended; see lease-loss.ts. */
  endReason: Nullable(Type.String()),
  /** Seconds until the lease, or the wait for the start, ends. */
  secondsLeft: Type.Number(),
  epoch: Type.Integer(),
  /** 1 if the update sends a journal, whose entries have their own versions; otherwise 0. */
  journalVersion: Type.Integer(),
  /** The journal exists, perhaps empty, until it is compacted and deleted. */
  hasJournal: Type.Boolean(),
  /** Entries that are in no checkpoint and whose replay has not failed. */
  hasPendingEntries: Type.Boolean(),
  baseCheckpointId: Nullable(Type.String()),
  checkpointId: Nullable(Type.String()),
  /** The highest accepted number; -1 before the first. */
  checkpointSequence: Type.Integer(),
  /** Counts checkpoints by their numbers. */
  checkpointCount: Type.Integer(),
  entryCount: Type.Integer(),
  compactedEntries: Type.Integer(),
  /** Why the entries after the first `compactedEntries` could not be replayed. */
  compactionError: Nullable(Type.String()),
  /** Describes entries that the compaction skipped without an error. */
  compactionWarning: Nullable(Type.String()),
  /** When the compaction of the ended update was verified. */
  compactedAt: Nullable(Timestamp),
  fullCommitted: Type.Integer(),
  isStateDeleted: Type.Boolean(),
  /** Change limits apply to its begin entries. */
  isLimited: Type.Boolean(),
});
export type UpdateRow = Row<typeof UpdateRow>;

const IdRow = Type.Object({ id: Type.String() });
const ArrivalRow = Type.Object({ arrivalSequence: Type.Integer() });
/** `baseBytes` is the stored size of the update's base. */
const UpdateWithBaseRow = Type.Object({ ...UpdateRow.properties, baseBytes: Type.Integer() });
const TagsRow = Type.Object({ tags: Nullable(Type.String()) });
const EnvironmentRow = Type.Object({ environment: Nullable(Type.String()) });
const ExpiryRow = Type.Object({ expiresAt: Timestamp });

/** Null above 1 MiB. */
export const environmentColumn = sql.fragment`
  case when octet_length(u.environment) <= ${timeSliceBytes} then u.environment end as environment`;

/** "" if there is none. */
export function clientVersionOf(environment: string | null): string {
  // Parsed here, not in SQL: Postgres rejects escapes such as \u0000, which the text may contain.
  const version = environment === null ? '' : (JSON.parse(environment) as Record<string, unknown>)['pulumi.version'];
  return typeof version === 'string' ? version : '';
}

/** For an update `u` and its journal `j`. */
export const updateColumns = sql.fragment`
  u.id, u.stack_id as "stackId", u.kind, u.dry_run as "dryRun", u.exclusive, u.status, u.stack_version as "stackVersion",
  u.base_stack_version as "baseStackVersion", u.lease_hash as "leaseHash", u.expires_at as "expiresAt",
  (u.expires_at <= clock_timestamp() or u.end_reason is not null) as expired,
  coalesce(u.end_reason, case when u.status = 'running' and u.expires_at <= clock_timestamp() then case
    when u.must_end_at <= u.expires_at then 'time-limit'
    when exists (select 1 from api_tokens t where t.id = u.token_id and t.expires_at <= u.expires_at) then 'token-expired'
  end end) as "endReason",
  extract(epoch from u.expires_at - clock_timestamp())::float8 as "secondsLeft", u.epoch, u.journal_version as "journalVersion",
  u.base_checkpoint_id as "baseCheckpointId", u.checkpoint_id as "checkpointId",
  u.checkpoint_sequence as "checkpointSequence", u.full_committed as "fullCommitted",
  count_checkpoints(u.checkpoint_sequence, u.full_committed) as "checkpointCount",
  u.is_limited as "isLimited", u.state_deleted_at is not null as "isStateDeleted",
  j.update_id is not null as "hasJournal", coalesce(j.entry_count > j.compacted_entries and j.compaction_error is null, false) as "hasPendingEntries",
  coalesce(j.entry_count, 0) as "entryCount", coalesce(j.compacted_entries, 0) as "compactedEntries", j.compaction_error as "compactionError",
  j.compaction_warning as "compactionWarning", j.compacted_at as "compactedAt"`;

export type UpdateRepository = ReturnType<typeof createUpdateRepository>;

/** All times are by the database's clock. */
export function createUpdateRepository(db: Queryable) {
  const withJournal = sql.fragment`updates u left join journals j on j.update_id = u.id`;
  const isOf = (ref: StackRef) =>
    sql.fragment`exists (select 1 from ${stackJoins} where s.id = u.stack_id and ${stackNamed(ref)})`;
  // Evaluated once, not for each row, so that an index scan can use it.
  const once = sql.fragment`(select clock_timestamp())`;
  const ofLiveStack = sql.fragment`exists (select 1 from stacks s where s.id = u.stack_id and s.deleted_at is null)`;

  return {
    findNamed: (id: string, ref: StackRef) =>
      db.maybeOne(sql.prepared('updates_find_named', UpdateRow)`
        /* updates.findNamed */ select ${updateColumns} from ${withJournal} where u.id = ${id} and ${isOf(ref)}`),

    /** Also accepts former names of the stack, so that a preview continues after a rename. Runs on every lease call. */
    findInStack: (id: string, ref: StackRef) =>
      db.maybeOne(sql.prepared('updates_find_in_stack', UpdateWithBaseRow)`
        /* updates.findInStack */
        select ${updateColumns},
          coalesce((select c.stored_bytes from checkpoints c where c.id = u.base_checkpoint_id), 0) as "baseBytes"
        from ${withJournal} where u.id = ${id} and (${isOf(ref)} or ${ofLiveStack}
          and exists (select 1 from former_stack_names f join organizations o on o.id = f.organization_id where f.stack_id = u.stack_id
            and o.name = ${ref.organization} and f.project_name = ${ref.project} and f.stack_name = ${ref.stack}))`),

    isLease: (hash: Buffer) =>
      db.exists(sql.rows(IdRow)`
        /* updates.isLease */
        select id from updates where status in ('not started', 'running') and lease_hash = ${sql.binary(hash)}`),

    /** Also returns null if the update's stack was deleted. */
    find: (id: string) =>
      db.maybeOne(sql.prepared('updates_find', UpdateRow)`
        /* updates.find */ select ${updateColumns} from ${withJournal} where u.id = ${id} and ${ofLiveStack}`),

    /** The entries are in no checkpoint yet. */
    findWithPendingEntries: (stackId: string) =>
      db.maybeOne(sql.prepared('updates_find_with_pending_entries', UpdateRow)`
        /* updates.findWithPendingEntries */ select ${updateColumns} from ${withJournal}
        where j.stack_id = ${stackId} and j.compacted_at is null and j.entry_count > j.compacted_entries and j.compaction_error is null
        order by u.stack_version desc limit 1`),

    /** See NewUpdate in new-update-repository.ts. */
    findTagsAtArrival: async (id: string): Promise<string | null> => {
      const row = await db.one(sql.rows(TagsRow)`
        /* updates.findTagsAtArrival */ select tags_at_arrival as tags from updates where id = ${id}`);
      return row.tags;
    },

    /** The record of an import or a rename. */
    insertEnded: async (update: {
      id: string;
      stackId: string;
      kind: 'import' | 'rename';
      stackVersion: number;
      message: string;
      environment: string;
      requestedBy: string | null;
      baseCheckpointId: string | null;
    }): Promise<void> => {
      await db.query(sql.nothing`
        /* updates.insertEnded */
        insert into updates (id, stack_id, kind, exclusive, status, stack_version, base_stack_version, message, environment,
                             requested_by, started_at, ended_at, expires_at, base_checkpoint_id, checkpoint_id)
        values (${update.id}, ${update.stackId}, ${update.kind}, true, 'succeeded', ${update.stackVersion}, ${update.stackVersion - 1},
                ${update.message}, ${update.environment}, ${update.requestedBy}, now(), now(), now(),
                ${update.baseCheckpointId}, ${update.baseCheckpointId})`);
    },

    assignArrivalSequence: async (id: string): Promise<number> => {
      const row = await db.one(sql.prepared('updates_assign_arrival', ArrivalRow)`
        /* updates.assignArrivalSequence */
        update updates set full_assigned = full_assigned + 1 where id = ${id} returning full_assigned as "arrivalSequence"`);
      return row.arrivalSequence;
    },

    /**
     * Extends a live lease, but not beyond the limits of the update and the token. Never shortens it. Returns null if the lease has ended,
     * or its token no longer has the permission for the update.
     */
    renewLease: async (id: string, epoch: number, seconds: number): Promise<Date | null> => {
      const row = await db.maybeOne(sql.prepared('updates_renew_lease', ExpiryRow)`
        /* updates.renewLease */
        with locked as materialized (select lock_exclusive(${id}))
        update updates u
        set expires_at = greatest(u.expires_at, least(clock_timestamp() + make_interval(secs => ${seconds}), u.must_end_at, token_end(u.token_id)))
        from locked where ${fenceHolds({ updateId: id, epoch })}
          and (u.token_id is null or token_permissions(u.token_id, u.stack_id) & permission_of_update(u.dry_run, u.exclusive) <> 0)
        returning u.expires_at as "expiresAt"`);
      return row?.expiresAt ?? null;
    },

    /** Clips the leases of one stack, or of all. More than one lease remains only if the database's clock was set back. */
    clipLeases: async (seconds: number, stackId: string | null = null): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* updates.clipLeases */
        update updates set expires_at = clock_timestamp() + make_interval(secs => ${seconds})
        where id = any (array(
          select id from updates
          where status in ('not started', 'running') and expires_at > ${once} + make_interval(secs => ${seconds})
            and (${stackId}::uuid is null or stack_id = ${stackId}::uuid)
          for update skip locked)) returning id`);
      return rows.map((row) => row.id);
    },

    /** The stack is locked and being deleted, so only previews can be active. */
    cancelAll: async (stackId: string): Promise<void> => {
      // The deletion takes this row, too, and count_delivery takes it before the row of stack_days that these updates change.
      await db.query(sql.nothing`
        /* updates.lockListing */ select 1 from stack_changes where stack_id = ${stackId} for update`);
      await db.query(sql.nothing`
        /* updates.cancelAll */
        update updates set status = 'cancelled', end_reason = 'cancelled', ended_at = clock_timestamp(), lease_hash = null
        where id in (
          select id from updates where stack_id = ${stackId} and status in ('not started', 'running') order by id for update)`);
    },

    setResourceChanges: (id: string, changes: string) =>
      db.query(sql.nothing`
        /* updates.setResourceChanges */ update updates set resource_changes = ${changes} where id = ${id}`),

    /** "" if none was sent, or if the environment exceeds 1 MiB. */
    findClientVersion: async (id: string): Promise<string> => {
      const row = await db.maybeOne(sql.rows(EnvironmentRow)`
        /* updates.findEnvironment */ select ${environmentColumn} from updates u where id = ${id}`);
      return clientVersionOf(row?.environment ?? null);
    },

    /** The holder must be ended, or has more than `seconds` left. Takes no locks, so that its journal can continue. */
    isHolderDue: (stackId: string, seconds: number) =>
      db.exists(sql.rows(IdRow)`
        /* updates.isHolderDue */
        select u.id from stacks s join updates u on u.id = s.active_update_id
        where s.id = ${stackId} and s.deleted_at is null and (u.end_reason is not null or u.expires_at <= clock_timestamp()
          or u.expires_at > clock_timestamp() + make_interval(secs => ${seconds}))`),

    listExpired: async (limit: number, skipped: readonly string[]): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* updates.listExpired */
        select id from updates where status in ('not started', 'running') and expires_at <= ${once}
          and id <> all(${sql.array(skipped, 'uuid')})
        order by expires_at limit ${limit}`);
      return rows.map((row) => row.id);
    },

    /** The lease, or the permission to start, was lost before the time was over. */
    listLost: async (limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* updates.listLost */
        select id from updates where status in ('not started', 'running') and end_reason is not null order by id limit ${limit}`);
      return rows.map((row) => row.id);
    },

    findByVersion: (stackId: string, stackVersion: number) =>
      db.maybeOne(sql.rows(UpdateRow)`
        /* updates.findByVersion */ select ${updateColumns} from ${withJournal}
        where u.stack_id = ${stackId} and u.stack_version = ${stackVersion} and ${ofLiveStack}`),
  };
}
