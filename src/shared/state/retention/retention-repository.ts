import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Nullable, Timestamp } from '../../platform/schema/standard-schema.ts';
import { isPreview } from '../../updates/preview-fragments.ts';
import { retentionKinds } from '../../updates/rules/rule-kinds.ts';

const IdRow = Type.Object({ id: Type.String() });
const RuledRow = Type.Object({ organizationId: Type.String(), organization: Type.String() });
const ListedRow = Type.Object({
  id: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  isDue: Type.Boolean(),
});

const ProgressRow = Type.Object({ now: Timestamp, eventsUntil: Type.Integer() });

const VersionRow = Type.Object({
  updateId: Type.String(),
  version: Type.Integer(),
  /** Null if there is no state, or no longer. */
  checkpointId: Nullable(Type.String()),
  endedAt: Nullable(Timestamp),
  isPinned: Type.Boolean(),
  isHead: Type.Boolean(),
});
export type KeptVersion = Row<typeof VersionRow>;

const UpdateRow = Type.Object({
  id: Type.String(),
  number: Type.Integer(),
  endedAt: Nullable(Timestamp),
  /** All events are in segments. */
  isArchived: Type.Boolean(),
  hasEvents: Type.Boolean(),
});
export type OldUpdate = Row<typeof UpdateRow>;

const RowsRow = Type.Object({ id: Type.String(), rows: Type.Integer() });
const DeletedRow = Type.Object({ checkpointId: Type.String() });

/** Stacks are also examined when a rule is set. */
const everyHours = 6;
/** Counted from the end of the update, whose journal may be replayed again until then. */
const minAgeSeconds = 3600;

export type RetentionRepository = ReturnType<typeof createRetentionRepository>;

/** Every statement is bounded by its limit, or by the ids that it gets. */
export function createRetentionRepository(db: Queryable) {
  const kinds = sql.array([...retentionKinds], 'text');
  const hasEnded = sql.fragment`u.status not in ('not started', 'running')`;
  /**
   * The newest state, and those of running updates and previews and of updates with a journal. They are few, however many versions and
   * previews the stack has.
   */
  const inUse = (stackId: string) => sql.fragment`
    in_use as materialized (
      select unnest(array[s.checkpoint_id, s.deleted_checkpoint_id]) as id from stacks s where s.id = ${stackId}
      union
      select unnest(array[r.checkpoint_id, r.base_checkpoint_id]) from updates r
      where r.organization_id = (select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = ${stackId})
        and r.stack_id = ${stackId} and r.status in ('not started', 'running')
      union
      select unnest(array[r.checkpoint_id, r.base_checkpoint_id]) from journals j join updates r on r.id = j.update_id
      where j.stack_id = ${stackId}
    )`;

  return {
    listRuled: () =>
      db.any(sql.rows(RuledRow)`
        /* retention.listRuled */
        select o.id as "organizationId", o.name as organization from organizations o
        where exists (select 1 from update_rules r where r.organization_id = o.id and r.kind = any (${kinds})) order by o.id`),

    /** Ordered by name. */
    listStacks: (organizationId: string, after: { project: string; stack: string } | null, limit: number) =>
      db.any(sql.rows(ListedRow)`
        /* retention.listStacks */
        select l.stack_id as id, l.project_name as project, l.stack_name as stack,
          r.swept_at is null or r.swept_at < clock_timestamp() - make_interval(hours => ${everyHours}) or r.swept_at > clock_timestamp()
            or r.swept_at < (select max(u.set_at) from update_rules u where u.organization_id = ${organizationId} and u.kind = any (${kinds}))
            as "isDue"
        from stack_listings l left join stack_retention r on r.stack_id = l.stack_id
        where l.organization_id = ${organizationId} and l.tag_name = ''
          and (${after === null} or (l.project_name, l.stack_name) > (${after?.project ?? ''}, ${after?.stack ?? ''}))
        order by l.project_name, l.stack_name limit ${limit}`),

    /** Null if the stack is under a legal hold, or deleted. */
    findProgress: (stackId: string) =>
      db.maybeOne(sql.prepared('retention_find_progress', ProgressRow)`
        /* retention.findProgress */
        select clock_timestamp() as now, coalesce(r.events_until, 0) as "eventsUntil"
        from stacks s left join stack_retention r on r.stack_id = s.id
        where s.id = ${stackId} and s.deleted_at is null and s.held_at is null`),

    noteProgress: (stackId: string, sweptAt: Date, eventsUntil: number) =>
      db.query(sql.command('retention_note_progress')`
        /* retention.noteProgress */
        insert into stack_retention as r (stack_id, swept_at, events_until)
        select s.id, ${sweptAt.toISOString()}::timestamptz, ${eventsUntil}::bigint from stacks s where s.id = ${stackId} for key share
        on conflict (stack_id) do update set swept_at = excluded.swept_at, events_until = greatest(r.events_until, excluded.events_until)`),

    /** Newest first, including versions without a state. */
    listVersions: (stackId: string, before: number, limit: number) =>
      db.any(sql.prepared('retention_list_versions', VersionRow)`
        /* retention.listVersions */
        select u.id as "updateId", u.stack_version as version, u.checkpoint_id as "checkpointId",
          case when ${hasEnded} then u.ended_at end as "endedAt", u.pinned_by is not null as "isPinned",
          u.checkpoint_id is not null and u.checkpoint_id = s.checkpoint_id as "isHead"
        from updates u join stacks s on s.id = u.stack_id
        where u.stack_id = ${stackId} and u.stack_version is not null and u.stack_version < ${before}::integer
        order by u.stack_version desc limit ${limit}`),

    /** Oldest first, including previews. */
    listUpdates: (stackId: string, after: number, limit: number) =>
      db.any(sql.prepared('retention_list_updates', UpdateRow)`
        /* retention.listUpdates */
        select u.id, u.number, case when ${hasEnded} then u.ended_at end as "endedAt", u.events_archived as "isArchived",
          u.events_deleted_at is null as "hasEvents"
        from updates u where u.stack_id = ${stackId} and u.number > ${after}::bigint order by u.number limit ${limit}`),

    /** Excludes the preview with the newest known difference between state and reality. */
    listPreviews: (stackId: string, after: number, limit: number) =>
      db.any(sql.prepared('retention_list_previews', UpdateRow)`
        /* retention.listPreviews */
        select u.id, u.number, case when ${hasEnded} then u.ended_at end as "endedAt",
          u.events_archived and not exists (
            select 1 from drift_runs d where d.update_id = u.id and (d.state = 'waiting'
              or d.number = (select max(n.number) from drift_runs n where n.stack_id = u.stack_id and n.state = 'done'))) as "isArchived",
          true as "hasEvents"
        from updates u where u.stack_id = ${stackId} and ${isPreview} and u.number > ${after}::bigint
        order by u.number limit ${limit}`),

    /** Checkpoints that are needed only to read old versions. */
    listUnneeded: async (stackId: string, checkpointIds: readonly string[]): Promise<string[]> => {
      const rows = await db.any(sql.prepared('retention_list_unneeded', IdRow)`
        /* retention.listUnneeded */
        with ${inUse(stackId)}
        select c.id from unnest(${sql.array([...checkpointIds], 'uuid')}) as c (id)
        where not exists (select 1 from in_use n where n.id = c.id)`);
      return rows.map(({ id }) => id);
    },

    /** Omits checkpoints without chunks. */
    countChunks: async (checkpointIds: readonly string[]): Promise<ReadonlyMap<string, number>> => {
      const counts = await db.any(sql.prepared('retention_count_chunks', RowsRow)`
        /* retention.countChunks */
        select checkpoint_id as id, count(*)::integer as rows from checkpoint_chunks
        where checkpoint_id = any (${sql.array([...checkpointIds], 'uuid')}) group by checkpoint_id`);
      return new Map(counts.map(({ id, rows }) => [id, rows]));
    },

    /** Omits updates without segments. */
    countSegments: async (updateIds: readonly string[]): Promise<ReadonlyMap<string, number>> => {
      const counts = await db.any(sql.prepared('retention_count_segments', RowsRow)`
        /* retention.countSegments */
        select update_id as id, count(*)::integer as rows from event_segments
        where update_id = any (${sql.array([...updateIds], 'uuid')}) group by update_id`);
      return new Map(counts.map(({ id, rows }) => [id, rows]));
    },

    /** Detaches up to `limit` previews, but at least one if any is left. */
    detachPreviews: async (checkpointIds: readonly string[], limit: number): Promise<number> => {
      const ids = sql.array([...checkpointIds], 'uuid');
      const { rowCount } = await db.query(sql.command('retention_detach_previews')`
        /* retention.detachPreviews */
        update updates u set checkpoint_id = null, base_checkpoint_id = null
        where u.id = any (array(
          select f.id from unnest(${ids}) as c (id) cross join lateral (
            (select u.id from updates u where u.checkpoint_id = c.id and ${isPreview} and ${hasEnded} limit ${limit})
            union all
            (select u.id from updates u where u.base_checkpoint_id = c.id and ${isPreview} and ${hasEnded} limit ${limit})) f
          limit ${limit}))`);
      return rowCount;
    },

    /** Skips states that are needed again. Returns the number of versions and the checkpoints that they had. */
    markStates: async (stackId: string, updateIds: readonly string[]) => {
      const rows = await db.any(sql.prepared('retention_mark_states', DeletedRow)`
        /* retention.markStates */
        with ${inUse(stackId)},
        doomed as materialized (
          select u.id, u.checkpoint_id from updates u
          where u.id = any (${sql.array([...updateIds], 'uuid')}) and u.stack_id = ${stackId} and ${hasEnded} and u.pinned_by is null
            and u.checkpoint_id is not null and u.ended_at < clock_timestamp() - make_interval(secs => ${minAgeSeconds})
            and not exists (select 1 from in_use n where n.id = u.checkpoint_id)
          for no key update of u
        )
        update updates u set state_deleted_at = clock_timestamp(), checkpoint_id = null,
          base_checkpoint_id = nullif(u.base_checkpoint_id, d.checkpoint_id)
        from doomed d where u.id = d.id returning d.checkpoint_id as "checkpointId"`);
      return { count: rows.length, checkpointIds: [...new Set(rows.map(({ checkpointId }) => checkpointId))] };
    },

    /** The given checkpoints, and those written by these updates, to which no version refers. */
    listUnused: async (stackId: string, checkpointIds: readonly string[], updateIds: readonly string[]) => {
      const rows = await db.any(sql.prepared('retention_list_unused', IdRow)`
        /* retention.listUnused */
        with ${inUse(stackId)}
        select c.id from checkpoints c
        where (c.id = any (${sql.array([...checkpointIds], 'uuid')}) or c.update_id = any (${sql.array([...updateIds], 'uuid')}))
          and c.stack_id = ${stackId} and not exists (select 1 from in_use n where n.id = c.id)
          and not exists (select 1 from updates u where u.checkpoint_id = c.id)`);
      return rows.map(({ id }) => id);
    },

    /** The checkpoints are deleted in this transaction. */
    releaseChunks: async (checkpointIds: readonly string[], limit: number): Promise<number> => {
      const { rowCount } = await db.query(sql.command('retention_release_chunks')`
        /* retention.releaseChunks */
        delete from checkpoint_chunks where ctid = any (array(
          select ctid from checkpoint_chunks where checkpoint_id = any (${sql.array([...checkpointIds], 'uuid')}) limit ${limit}))`);
      return rowCount;
    },

    deleteCheckpoints: async (ids: readonly string[]): Promise<number> => {
      const { rowCount } = await db.query(sql.command('retention_delete_checkpoints')`
        /* retention.deleteCheckpoints */ delete from checkpoints where id = any (${sql.array([...ids], 'uuid')})`);
      return rowCount;
    },

    /** The active update must not exceed one of these previews, whose events are then still needed. */
    areCompared: (stackId: string, previewIds: readonly string[]): Promise<boolean> =>
      db.exists(sql.prepared('retention_are_compared', IdRow)`
        /* retention.areCompared */
        select u.id from updates u join update_limits l on l.update_id = u.id
        where u.stack_id = ${stackId} and u.exclusive and u.status in ('not started', 'running')
          and l.limits::json -> 'preview' ->> 'updateId' = any (${sql.array([...previewIds], 'text')})`),

    /** From then on, readers are told that the events are deleted. */
    markEvents: (updateIds: readonly string[]) =>
      db.query(sql.command('retention_mark_events')`
        /* retention.markEvents */
        update updates set events_deleted_at = clock_timestamp()
        where id = any (${sql.array([...updateIds], 'uuid')}) and events_deleted_at is null`),

    deleteSegments: async (updateIds: readonly string[], limit: number): Promise<number> => {
      const { rowCount } = await db.query(sql.command('retention_delete_segments')`
        /* retention.deleteSegments */
        delete from event_segments where id = any (array(
          select g.id from event_segments g where g.update_id = any (${sql.array([...updateIds], 'uuid')}) limit ${limit}))`);
      return rowCount;
    },

    /** Skips previews that still have events. Also deletes all dependent rows. */
    deletePreviews: async (stackId: string, ids: readonly string[]): Promise<number> => {
      const { rowCount } = await db.query(sql.command('retention_delete_previews')`
        /* retention.deletePreviews */
        delete from updates u where u.id = any (${sql.array([...ids], 'uuid')}) and u.stack_id = ${stackId} and ${isPreview} and ${hasEnded}
          and u.stack_version is null
          and not exists (select 1 from checkpoints c where c.update_id = u.id)
          and not exists (select 1 from engine_events e where e.update_id = u.id)
          and not exists (select 1 from event_segments g where g.update_id = u.id)`);
      return rowCount;
    },
  };
}
