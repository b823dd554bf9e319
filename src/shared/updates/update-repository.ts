import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Bytes, Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import type { StackRef } from '../stacks/names.ts';
import type { UpdateKind, UpdateStatus } from './update-state.ts';

const Status = Type.Unsafe<UpdateStatus>(Type.String());
const Kind = Type.Unsafe<UpdateKind>(Type.String());

/** What control and lease checks need of an update. */
const UpdateRow = Type.Object({
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
  expired: Type.Boolean(),
  /** Of the lease, or of the wait for the start. */
  secondsLeft: Type.Number(),
  epoch: Type.Integer(),
  journalVersion: Type.Integer(),
  hasTail: Type.Boolean(),
  baseCheckpointId: Nullable(Type.String()),
  checkpointId: Nullable(Type.String()),
  checkpointSequence: Type.Integer(),
  entryCount: Type.Integer(),
  foldedEntries: Type.Integer(),
  foldError: Nullable(Type.String()),
  fullCommitted: Type.Integer(),
});
export type UpdateRow = Row<typeof UpdateRow>;

/** What histories and the get call show. */
const UpdateInfoRow = Type.Object({
  id: Type.String(),
  kind: Kind,
  dryRun: Type.Boolean(),
  status: Status,
  stackVersion: Nullable(Type.Integer()),
  baseStackVersion: Type.Integer(),
  message: Type.String(),
  environment: Type.String(),
  config: Type.String(),
  resourceChanges: Type.String(),
  resourceCount: Nullable(Type.Integer()),
  requestedBy: Nullable(Type.String()),
  createdAt: Timestamp,
  startedAt: Nullable(Timestamp),
  endedAt: Nullable(Timestamp),
});
export type UpdateInfoRow = Row<typeof UpdateInfoRow>;

const IdRow = Type.Object({ id: Type.String() });
const ExpiryRow = Type.Object({ expiresAt: Timestamp });

export interface NewUpdate {
  readonly stackId: string;
  readonly kind: UpdateKind;
  readonly dryRun: boolean;
  readonly exclusive: boolean;
  readonly baseStackVersion: number;
  readonly message: string;
  readonly environment: string;
  readonly config: string;
  readonly program: string;
  readonly requestedBy: string;
  readonly waitSeconds: number;
}

export type UpdateRepository = ReturnType<typeof createUpdateRepository>;

/** Updates: the record, the lease and the pointers to state. Time is the database's everywhere. */
export function createUpdateRepository(db: Queryable) {
  const columns = sql.fragment`
    u.id, u.stack_id as "stackId", u.kind, u.dry_run as "dryRun", u.exclusive, u.status, u.stack_version as "stackVersion",
    u.base_stack_version as "baseStackVersion", u.lease_hash as "leaseHash", u.expires_at as "expiresAt",
    u.expires_at <= clock_timestamp() as expired,
    extract(epoch from u.expires_at - clock_timestamp())::float8 as "secondsLeft", u.epoch, u.journal_version as "journalVersion", u.has_tail as "hasTail",
    u.base_checkpoint_id as "baseCheckpointId", u.checkpoint_id as "checkpointId",
    u.checkpoint_sequence as "checkpointSequence", u.entry_count as "entryCount",
    u.folded_entries as "foldedEntries", u.fold_error as "foldError",
    u.full_committed as "fullCommitted"`;
  const infoColumns = sql.fragment`
    u.id, u.kind, u.dry_run as "dryRun", u.status, u.stack_version as "stackVersion", u.base_stack_version as "baseStackVersion",
    u.message, u.environment, u.config, u.resource_changes as "resourceChanges", c.resource_count as "resourceCount",
    a.login as "requestedBy", u.created_at as "createdAt", u.started_at as "startedAt", u.ended_at as "endedAt"`;
  const infoJoins = sql.fragment`
    updates u left join checkpoints c on c.id = u.checkpoint_id left join users a on a.id = u.requested_by`;
  const inStack = (id: string, ref: StackRef) => sql.fragment`
    u.id = ${id} and exists (
      select 1 from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
      where s.id = u.stack_id and o.name = ${ref.organization} and p.name = ${ref.project} and s.name = ${ref.stack})`;

  return {
    /** The update, if it belongs to the stack named. Runs on every lease call. */
    findInStack: (id: string, ref: StackRef) =>
      db.maybeOne(sql.prepared('updates_find_in_stack', UpdateRow)`
        /* updates.findInStack */ select ${columns} from updates u where ${inStack(id, ref)}`),

    get: (id: string) =>
      db.one(sql.rows(UpdateRow)`/* updates.get */ select ${columns} from updates u where u.id = ${id}`),

    find: (id: string) =>
      db.maybeOne(sql.rows(UpdateRow)`/* updates.find */ select ${columns} from updates u where u.id = ${id}`),

    lock: (id: string) =>
      db.maybeOne(
        sql.rows(UpdateRow)`/* updates.lock */ select ${columns} from updates u where u.id = ${id} for update of u`,
      ),

    /** The update of this stack whose journal has entries that no checkpoint holds yet. */
    findWithTail: (stackId: string) =>
      db.maybeOne(sql.rows(UpdateRow)`
        /* updates.findWithTail */ select ${columns} from updates u
        where u.stack_id = ${stackId} and u.has_tail order by u.stack_version desc limit 1`),

    /** Violates `updates_one_active_per_stack` when another exclusive update is active. */
    insert: async (update: NewUpdate): Promise<string> => {
      const row = await db.one(sql.rows(IdRow)`
        /* updates.insert */
        insert into updates (stack_id, kind, dry_run, exclusive, status, base_stack_version, message, environment, config,
                             program, requested_by, expires_at)
        values (${update.stackId}, ${update.kind}, ${update.dryRun}, ${update.exclusive}, 'not started',
                ${update.baseStackVersion}, ${update.message}, ${update.environment}, ${update.config}, ${update.program},
                ${update.requestedBy}, clock_timestamp() + make_interval(secs => ${update.waitSeconds}))
        returning id`);
      return row.id;
    },

    /** A record that is born ended: import and rename. */
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

    start: async (update: {
      id: string;
      leaseHash: Buffer;
      leaseSeconds: number;
      stackVersion: number | null;
      baseStackVersion: number;
      journalVersion: number;
      checkpointId: string | null;
    }): Promise<Date> => {
      const row = await db.one(sql.rows(ExpiryRow)`
        /* updates.start */
        update updates set status = 'running', started_at = clock_timestamp(), lease_hash = ${sql.binary(update.leaseHash)},
          expires_at = clock_timestamp() + make_interval(secs => ${update.leaseSeconds}), epoch = epoch + 1,
          stack_version = ${update.stackVersion}, base_stack_version = ${update.baseStackVersion},
          journal_version = ${update.journalVersion}, base_checkpoint_id = ${update.checkpointId}, checkpoint_id = ${update.checkpointId}
        where id = ${update.id} returning expires_at as "expiresAt"`);
      return row.expiresAt;
    },

    /** The next place in the order of full checkpoints. */
    assignFullOrder: async (id: string): Promise<number> => {
      const row = await db.one(sql.rows(Type.Object({ fullOrder: Type.Integer() }))`
        /* updates.assignFullOrder */
        update updates set full_assigned = full_assigned + 1 where id = ${id} returning full_assigned as "fullOrder"`);
      return row.fullOrder;
    },

    /** Extends a live lease; null when it is dead. Never shortens it. */
    renewLease: async (id: string, epoch: number, seconds: number): Promise<Date | null> => {
      const row = await db.maybeOne(sql.rows(ExpiryRow)`
        /* updates.renewLease */
        update updates set expires_at = greatest(expires_at, clock_timestamp() + make_interval(secs => ${seconds}))
        where id = ${id} and epoch = ${epoch} and status = 'running' and expires_at > clock_timestamp()
        returning expires_at as "expiresAt"`);
      return row?.expiresAt ?? null;
    },

    /**
     * Cuts what is left of leases to `seconds`: more than a whole lease is left only when the database's clock was set back.
     * Of all active updates, or of one stack's. Returns the ids of those updates.
     */
    clipLeases: async (seconds: number, stackId: string | null = null): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* updates.clipLeases */
        update updates set expires_at = clock_timestamp() + make_interval(secs => ${seconds})
        where id in (
          select id from updates
          where status in ('not started', 'running') and expires_at > clock_timestamp() + make_interval(secs => ${seconds})
            and (${stackId}::uuid is null or stack_id = ${stackId}::uuid)
          for update skip locked)
        returning id`);
      return rows.map((row) => row.id);
    },

    /** Ends an active update. `keepLease`: the hash stays, so that a repeated complete can be told from a foreign one. */
    end: (id: string, status: UpdateStatus, reason: string | null, keepLease: boolean) =>
      db.query(sql.nothing`
        /* updates.end */
        update updates set status = ${status}, end_reason = ${reason}, ended_at = clock_timestamp(),
          lease_hash = case when ${keepLease} then lease_hash end
        where id = ${id}`),

    setResourceChanges: (id: string, changes: string) =>
      db.query(
        sql.nothing`/* updates.setResourceChanges */ update updates set resource_changes = ${changes} where id = ${id}`,
      ),

    /** The state stays at the checkpoint it has; the journal is no longer waited for. */
    setFoldError: (id: string, message: string) =>
      db.query(sql.nothing`
        /* updates.setFoldError */ update updates set fold_error = ${message}, folded_entries = entry_count where id = ${id}`),

    /** The CLI's version as it told at the creation of the update; "" when it did not. */
    findClientVersion: async (id: string): Promise<string> => {
      const row = await db.maybeOne(sql.rows(Type.Object({ environment: Type.String() }))`
        /* updates.findEnvironment */ select environment from updates where id = ${id}`);
      // Parsed here, not in SQL: Postgres refuses escapes such as \u0000 that the text may hold.
      const version = row ? (JSON.parse(row.environment) as Record<string, unknown>)['pulumi.version'] : '';
      return typeof version === 'string' ? version : '';
    },

    listExpired: async (limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* updates.listExpired */
        select id from updates where status in ('not started', 'running') and expires_at <= clock_timestamp()
        order by expires_at limit ${limit}`);
      return rows.map((row) => row.id);
    },

    /** Ended updates whose journal is still to be folded or deleted. */
    listWithJournal: async (limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* updates.listWithJournal */
        select id from updates
        where entry_count > 0 and fold_error is null and status not in ('not started', 'running') order by ended_at limit ${limit}`);
      return rows.map((row) => row.id);
    },

    findInfo: (id: string, ref: StackRef) =>
      db.maybeOne(sql.rows(UpdateInfoRow)`
        /* updates.findInfo */ select ${infoColumns} from ${infoJoins} where ${inStack(id, ref)}`),

    /** History, newest first, previews left out. */
    listHistory: (stackId: string, page: { limit: number; offset: number } | null) =>
      db.any(sql.rows(UpdateInfoRow)`
        /* updates.listHistory */ select ${infoColumns} from ${infoJoins}
        where u.stack_id = ${stackId} and not u.dry_run and u.kind <> 'preview'
        order by u.created_at desc, u.id limit ${page?.limit ?? null} offset ${page?.offset ?? 0}`),

    findLatestPreviews: (stackId: string, limit: number) =>
      db.any(sql.rows(IdRow)`
        /* updates.findLatestPreviews */ select id from updates
        where stack_id = ${stackId} and (dry_run or kind = 'preview') order by created_at desc, id limit ${limit}`),

    findByVersion: (stackId: string, stackVersion: number) =>
      db.maybeOne(sql.rows(UpdateRow)`
        /* updates.findByVersion */ select ${columns} from updates u
        where u.stack_id = ${stackId} and u.stack_version = ${stackVersion}`),
  };
}
