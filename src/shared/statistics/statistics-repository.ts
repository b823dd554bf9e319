import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';
import type { StackRef } from '../stacks/names.ts';
import { environmentColumn } from '../updates/update-repository.ts';

/** In the order of messages. */
export const comparedCounts = ['creates', 'updates', 'replaces', 'deletes'] as const;
export type Counts = Readonly<Record<(typeof comparedCounts)[number], number>>;

/** Times in seconds, and counts. */
export const comparedValues = ['seconds', 'waitedSeconds', ...comparedCounts] as const;
export type ComparedValue = (typeof comparedValues)[number];

const EndedRow = Type.Object({
  id: Type.String(),
  isPreview: Type.Boolean(),
  seconds: Type.Number(),
  resourceChanges: Type.String(),
  environment: Nullable(Type.String()),
  baseCheckpointId: Nullable(Type.String()),
  checkpointId: Nullable(Type.String()),
});
export type EndedUpdate = Row<typeof EndedRow>;

const ShownRow = Type.Object({
  stackId: Type.String(),
  kind: Type.String(),
  isPreview: Type.Boolean(),
  status: Type.String(),
  endReason: Nullable(Type.String()),
  waitedSeconds: Nullable(Type.Number()),
  /** Null before the start. For a running update, the time until now. */
  seconds: Nullable(Type.Number()),
  resourceChanges: Type.String(),
  /** Null if there are no statistics yet. */
  commit: Nullable(Type.String()),
  steps: Nullable(Type.String()),
});
export type UpdateSummary = Row<typeof ShownRow>;

const ComparableRow = Type.Object({
  stackId: Type.String(),
  kind: Type.String(),
  isPreview: Type.Boolean(),
  waitedSeconds: Type.Number(),
  seconds: Type.Number(),
  resourceChanges: Type.String(),
});

const Range = Type.Array(Type.Number());
const UsualRow = Type.Object({
  count: Type.Integer(),
  seconds: Nullable(Range),
  waitedSeconds: Nullable(Range),
  creates: Nullable(Range),
  updates: Nullable(Range),
  replaces: Nullable(Range),
  deletes: Nullable(Range),
});
const CountRow = Type.Object({ count: Type.Integer() });
const ChangesRow = Type.Object({ resourceChanges: Type.String() });

/** Ranges that contain four fifths of the values of earlier updates. */
export interface Usual {
  /** Counts updates. */
  readonly count: number;
  readonly seconds: readonly [number, number];
  /** In the queue, before the creation of the update. */
  readonly waitedSeconds: readonly [number, number];
  readonly counts: Readonly<Record<(typeof comparedCounts)[number], readonly [number, number]>>;
  readonly medians: Readonly<Record<ComparedValue, number>>;
}

/** The period and the maximum of compared updates. */
export const comparedDays = 90;
const comparedUpdates = 1_000;

const maxChangesBytes = 65_536;

/** Table `update_statistics`. */
export function createStatisticsRepository(db: Queryable) {
  const changes = sql.fragment`
    case when octet_length(u.resource_changes) <= ${maxChangesBytes} then u.resource_changes else '{}' end as "resourceChanges"`;
  return {
    /** Null if the update has statistics, or if no client ran it. */
    findEnded: (updateId: string) =>
      db.maybeOne(sql.rows(EndedRow)`
        /* statistics.findEnded */
        select u.id, u.dry_run or u.kind = 'preview' as "isPreview", extract(epoch from u.ended_at - u.started_at)::float8 as seconds, ${changes}, ${environmentColumn},
          u.base_checkpoint_id as "baseCheckpointId", u.checkpoint_id as "checkpointId"
        from updates u
        where u.id = ${updateId} and u.status not in ('not started', 'running') and u.started_at is not null and u.ended_at is not null
          and u.kind in ('update', 'preview', 'refresh', 'destroy')
          and not exists (select 1 from update_statistics f where f.update_id = u.id)`),

    /** Does nothing if the update already has statistics or is gone. A trigger counts its delivery, unless it was imported. */
    insert: (
      { id, seconds }: EndedUpdate,
      { commit, counts, steps }: { readonly commit: string | null; readonly counts: Counts; readonly steps: string },
    ) =>
      db.query(sql.nothing`
        /* statistics.insert */
        insert into update_statistics (update_id, stack_id, kind, is_preview, is_success, ended_at, commit_id, seconds, creates, updates, deletes,
          replaces, steps, created_at, organization_id)
        select u.id, u.stack_id, u.kind, u.dry_run or u.kind = 'preview', u.status = 'succeeded', u.ended_at, ${commit}::text, ${seconds}::float8,
          ${counts.creates}::integer, ${counts.updates}::integer, ${counts.deletes}::integer, ${counts.replaces}::integer, ${steps}, u.created_at,
          case when not exists (select 1 from imported_versions i where i.update_id = u.id)
            and not exists (select 1 from imported_previews i where i.update_id = u.id) then u.organization_id end
        from updates u where u.id = ${id}
        on conflict (update_id) do nothing`),

    find: (updateId: string, ref: StackRef) =>
      db.maybeOne(sql.rows(ShownRow)`
        /* statistics.find */
        select u.stack_id as "stackId", u.kind, u.dry_run or u.kind = 'preview' as "isPreview", u.status, u.end_reason as "endReason",
          u.waited_ms / 1000.0::float8 as "waitedSeconds",
          extract(epoch from coalesce(u.ended_at, clock_timestamp()) - u.started_at)::float8 as seconds, ${changes}, f.commit_id as commit, f.steps
        from updates u left join update_statistics f on f.update_id = u.id
        where u.id = ${updateId} and exists (
          select 1 from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
          where s.id = u.stack_id and o.name = ${ref.organization} and p.name = ${ref.project} and s.name = ${ref.stack}
            and s.deleted_at is null)`),

    /** Of successful updates of this kind. Excludes the compared update. */
    findUsual: async (stackId: string, kind: string, except: string | null): Promise<Usual | null> => {
      const range = (column: ReturnType<typeof sql.fragment>) =>
        sql.fragment`percentile_disc(array[0.1, 0.5, 0.9]) within group (order by ${column})`;
      const row = await db.one(sql.rows(UsualRow)`
        /* statistics.findUsual */
        select count(*)::integer as count, ${range(sql.fragment`l.seconds`)} as seconds,
          ${range(sql.fragment`l.waited_seconds`)} as "waitedSeconds", ${range(sql.fragment`l.creates`)} as creates,
          ${range(sql.fragment`l.updates`)} as updates, ${range(sql.fragment`l.replaces`)} as replaces, ${range(sql.fragment`l.deletes`)} as deletes
        from (
          select f.*, coalesce(u.waited_ms, 0) / 1000.0::float8 as waited_seconds
          from update_statistics f left join updates u on u.id = f.update_id
          where f.stack_id = ${stackId} and f.kind = ${kind} and not f.is_preview and f.ended_at > now() - make_interval(days => ${comparedDays})
          order by f.ended_at desc limit ${comparedUpdates}) l
        where l.is_success and l.update_id is distinct from ${except}::uuid`);
      if (row.seconds === null) return null;
      const pair = (name: ComparedValue): readonly [number, number] => [row[name]?.[0] ?? 0, row[name]?.[2] ?? 0];
      return {
        count: row.count,
        seconds: pair('seconds'),
        waitedSeconds: pair('waitedSeconds'),
        counts: Object.fromEntries(comparedCounts.map((name) => [name, pair(name)])) as Usual['counts'],
        medians: Object.fromEntries(comparedValues.map((name) => [name, row[name]?.[1] ?? 0])) as Usual['medians'],
      };
    },

    /** Null if the ended update is gone, or if no client ran it. */
    findComparable: (updateId: string) =>
      db.maybeOne(sql.rows(ComparableRow)`
        /* statistics.findComparable */
        select u.stack_id as "stackId", u.kind, u.dry_run or u.kind = 'preview' as "isPreview",
          coalesce(u.waited_ms, 0) / 1000.0::float8 as "waitedSeconds",
          extract(epoch from u.ended_at - u.started_at)::float8 as seconds, ${changes}
        from updates u where u.id = ${updateId} and u.ended_at is not null and u.started_at is not null
          and u.kind in ('update', 'preview', 'refresh', 'destroy')`),

    /** Of the same commit and kind, within the compared period. */
    countFailedBefore: async (updateId: string): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* statistics.countFailedBefore */
        select count(*)::integer as count from update_statistics own join update_statistics f on f.stack_id = own.stack_id and f.kind = own.kind
          and f.is_preview = own.is_preview and f.ended_at < own.ended_at and f.ended_at > own.ended_at - make_interval(days => ${comparedDays})
        where own.update_id = ${updateId} and f.commit_id = own.commit_id and not f.is_success`);
      return count;
    },

    /** As sent by the client; `{}` if there is no summary. */
    findChanges: async (updateId: string): Promise<string> => {
      const row = await db.maybeOne(sql.rows(ChangesRow)`
        /* statistics.findChanges */ select ${changes} from updates u where u.id = ${updateId}`);
      return row?.resourceChanges ?? '{}';
    },
  };
}
