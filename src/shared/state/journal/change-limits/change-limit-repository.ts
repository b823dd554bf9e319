import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../../platform/db/sql.ts';
import { Nullable } from '../../../platform/schema/standard-schema.ts';
import { fenceHolds, type LeaseFence } from '../../../updates/fence.ts';
import { refusedPrefix } from './begin-entry.ts';
import type { ChangeLimits, Stop } from './change-limits.ts';

const IdRow = Type.Object({ id: Type.String() });
const EntryRow = Type.Object({ sequenceId: Type.Integer(), isRefused: Type.Boolean() });
const KeyRow = Type.Object({ key: Type.String() });

const UpdateLimitRow = Type.Object({
  limits: Nullable(Type.String()),
  changes: Type.Integer(),
  stopReason: Nullable(Type.Unsafe<Stop['reason']>(Type.String())),
  stopMessage: Nullable(Type.String()),
  stackId: Type.String(),
  baseCheckpointId: Nullable(Type.String()),
  /** The resources in the state before the update. */
  resources: Type.Integer(),
});

export interface ChangeLimit
  extends Pick<Row<typeof UpdateLimitRow>, 'changes' | 'stackId' | 'baseCheckpointId' | 'resources'> {
  readonly limits: ChangeLimits | null;
  readonly stop: Stop | null;
}

/** Tables `update_limits` and `update_limit_changes`. */
export function createChangeLimitRepository(db: Queryable) {
  return {
    /** For an update that was just created. */
    insert: (updateId: string, limits: ChangeLimits) =>
      db.query(sql.nothing`
        /* changeLimits.insert */
        with limited as (update updates set is_limited = true where id = ${updateId} returning id)
        insert into update_limits (update_id, limits) select id, ${JSON.stringify(limits)} from limited`),

    /**
     * Takes the locks of a batch of a limited update in the usual order: the update (shared), the update's row, the journal. Read the
     * limits and counts only in later statements: this statement returns data from before its wait. Returns false if the lease is invalid.
     */
    lockJournal: async (fence: LeaseFence): Promise<boolean> => {
      const row = await db.maybeOne(sql.prepared('change_limits_lock_journal', IdRow)`
        /* changeLimits.lockJournal */
        with locked as materialized (select lock_shared(${fence.updateId})),
        fenced as (
          select u.id from locked, updates u where ${fenceHolds(fence)} and u.journal_version = 1 for share of u
        )
        select j.update_id as id from fenced f join journals j on j.update_id = f.id for update of j`);
      return row !== null;
    },

    find: async (updateId: string): Promise<ChangeLimit | null> => {
      const row = await db.maybeOne(sql.prepared('change_limits_find', UpdateLimitRow)`
        /* changeLimits.find */
        select g.limits, g.changes, g.stop_reason as "stopReason", g.stop_message as "stopMessage", u.stack_id as "stackId",
          u.base_checkpoint_id as "baseCheckpointId", coalesce(c.resource_count, 0) as resources
        from update_limits g join updates u on u.id = g.update_id left join checkpoints c on c.id = u.base_checkpoint_id
        where g.update_id = ${updateId}`);
      if (!row) return null;
      const { limits, stopMessage, stopReason, ...rest } = row;
      return {
        ...rest,
        limits: limits === null ? null : (JSON.parse(limits) as ChangeLimits),
        stop: stopReason === null || stopMessage === null ? null : { reason: stopReason, message: stopMessage },
      };
    },

    findStored: (updateId: string, sequenceIds: readonly number[]) =>
      db.any(sql.prepared('change_limits_find_stored', EntryRow)`
        /* changeLimits.findStored */
        select sequence_id as "sequenceId", starts_with(entry, ${refusedPrefix}) as "isRefused" from journal_entries
        where update_id = ${updateId} and sequence_id = any (${sql.array([...sequenceIds], 'int8')})`),

    /** Creating a resource again replaces it if a migration has inserted it. */
    addMigrated: (updateId: string, urnKeys: readonly string[]) =>
      db.query(sql.nothing`
        /* changeLimits.addMigrated */
        update update_limits set migrated_keys = array(
          select unnest(migrated_keys) union select unnest(${sql.array([...urnKeys], 'text')}))
        where update_id = ${updateId}`),

    findMigrated: async (updateId: string, urnKeys: readonly string[]): Promise<ReadonlySet<string>> => {
      const rows = await db.any(sql.prepared('change_limits_find_migrated', KeyRow)`
        /* changeLimits.findMigrated */
        select m.key from update_limits g cross join unnest(g.migrated_keys) as m (key)
        where g.update_id = ${updateId} and m.key = any (${sql.array([...urnKeys], 'text')})`);
      return new Set(rows.map(({ key }) => key));
    },

    /** The update has already begun to change these resources. */
    findChanged: async (updateId: string, urnKeys: readonly string[]): Promise<ReadonlySet<string>> => {
      const rows = await db.any(sql.prepared('change_limits_find_changed', KeyRow)`
        /* changeLimits.findChanged */
        select urn_key as key from update_limit_changes
        where update_id = ${updateId} and urn_key = any (${sql.array([...urnKeys], 'text')})`);
      return new Set(rows.map(({ key }) => key));
    },

    addChanged: (updateId: string, urnKeys: readonly string[]) =>
      db.query(sql.nothing`
        /* changeLimits.addChanged */
        with added as (
          insert into update_limit_changes (update_id, urn_key) select ${updateId}, unnest(${sql.array([...urnKeys], 'text')}) returning 1
        )
        update update_limits set changes = changes + (select count(*)::integer from added) where update_id = ${updateId}`),

    /** Keeps an earlier reason. The caller has locked the update's row or, for a limited update, its journal. */
    stop: (updateId: string, { reason, message }: Stop) =>
      db.query(sql.nothing`
        /* changeLimits.stop */
        insert into update_limits as g (update_id, stopped_at, stop_reason, stop_message)
        values (${updateId}, clock_timestamp(), ${reason}, ${message})
        on conflict (update_id) do update
          set stopped_at = excluded.stopped_at, stop_reason = excluded.stop_reason, stop_message = excluded.stop_message
          where g.stopped_at is null`),

    /** Makes every batch of the update check its change limits, starting with the commit. The caller has locked the update's row. */
    enforce: (updateId: string) =>
      db.query(sql.nothing`/* changeLimits.enforce */ update updates set is_limited = true where id = ${updateId}`),
  };
}
