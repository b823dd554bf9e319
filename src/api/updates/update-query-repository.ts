import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../shared/platform/schema/standard-schema.ts';
import { type ListedOrganization, unnested } from '../../shared/stacks/stack-list-repository.ts';
import { isEffective } from '../../shared/updates/history-repository.ts';
import type { EndReason } from '../../shared/updates/lease-loss.ts';
import { isNoPreview, isPreview } from '../../shared/updates/preview-fragments.ts';
import type { UpdateKind, UpdateStatus } from '../../shared/updates/update-state.ts';

const Text = Nullable(Type.String());

const UpdateRow = Type.Object({
  id: Type.String(),
  number: Type.Integer(),
  version: Nullable(Type.Integer()),
  baseVersion: Type.Integer(),
  kind: Type.Unsafe<UpdateKind>(Type.String()),
  dryRun: Type.Boolean(),
  status: Type.Unsafe<UpdateStatus>(Type.String()),
  /** Why the update ended without being completed by its client; null: its client completed it. */
  endReason: Nullable(Type.Unsafe<EndReason>(Type.String())),
  missingEntries: Text,
  by: Text,
  /** At most `maxMessage` characters. */
  message: Type.String(),
  createdAt: Timestamp,
  startedAt: Nullable(Timestamp),
  endedAt: Nullable(Timestamp),
  /** JSON text; null if it is too large. */
  changes: Text,
  commit: Text,
  branch: Text,
  ciUrl: Text,
});
export type OverviewUpdateRow = Row<typeof UpdateRow>;

const DetailsRow = Type.Object({
  ...UpdateRow.properties,
  exclusive: Type.Boolean(),
  /** JSON texts; null if they are too large. */
  config: Text,
  environment: Text,
  resourceCount: Nullable(Type.Integer()),
  /** The preceding preview, unless another update came between. */
  previewId: Text,
  /** The update that followed a preview, if no other preview came between them. */
  followerId: Text,
  /** The wait before the update was created; null: it did not wait, or the time is unknown. */
  waitedMs: Nullable(Type.Integer()),
  /** JSON: the last updates that held the stack during the wait. */
  behind: Text,
});
export type OverviewUpdateDetailsRow = Row<typeof DetailsRow>;

const RunRow = Type.Object({
  /** Null for a waiting run. */
  updateId: Text,
  /** The entry of the run in the queue; null: the run holds the lock. */
  placeId: Text,
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  /** 0: the run holds the stack. */
  position: Type.Integer(),
  kind: Text,
  since: Timestamp,
  by: Text,
  commit: Text,
  branch: Text,
  ciUrl: Text,
  isHeld: Type.Boolean(),
  /** The limit that defers the run although its stack is free, and how many updates it allows. */
  heldBy: Text,
  limit: Nullable(Type.Integer()),
  isFrozen: Type.Boolean(),
  /** The caller's permissions on the stack; null: the role's permissions. */
  held: Nullable(Type.Integer()),
});
export type QueuedRunRow = Row<typeof RunRow>;

const ConfigRow = Type.Object({ config: Text, environment: Text });

export type UpdateSelector = { readonly id: string } | { readonly version: number };

export interface UpdateRange {
  readonly before: number | null;
  readonly beforeId?: string | undefined;
  readonly previews: boolean;
  readonly limit: number;
}

/** Sizes in bytes; for messages, in characters. */
const maxText = 262_144;
const maxMessage = 2_000;
const maxListMessage = 300;
const maxBehind = 5;
/** Number of the newest earlier updates that are searched for the holders of the stack. */
const maxBefore = 500;

export function createUpdateQueryRepository(db: Queryable) {
  const by = sql.fragment`coalesce(a.login, t.kind || ':' || t.name)`;
  const owners = sql.fragment`
    left join users a on a.id = u.requested_by left join api_tokens t on t.id = u.token_id and u.requested_by is null`;
  const columns = (messageChars: number) => sql.fragment`
    u.id, u.number, u.stack_version as version, u.base_stack_version as "baseVersion", u.kind, u.dry_run as "dryRun", u.status,
    u.end_reason as "endReason", u.missing_entries as "missingEntries", ${by} as by, left(u.message, ${messageChars}) as message, u.created_at as "createdAt",
    u.started_at as "startedAt", u.ended_at as "endedAt",
    case when octet_length(u.resource_changes) <= 65536 then u.resource_changes end as changes,
    u.commit_id as commit, u.branch, u.ci_run::json ->> 'build.url' as "ciUrl"`;
  const small = (column: 'config' | 'environment') => {
    const name = column === 'config' ? sql.fragment`u.config` : sql.fragment`u.environment`;
    return sql.fragment`case when octet_length(${name}) <= ${maxText} then ${name} end`;
  };
  /** Runs that hold a lock or wait for one, without superseded runs. */
  const runsOf = (
    organizations: readonly ListedOrganization[],
    at: { readonly project: string | null; readonly stack: string | null },
  ) => sql.fragment`
    with o as materialized (
      select * from ${unnested(organizations)} as o (id, name, facts)
    ),
    busy as materialized (
      select u.stack_id from o join updates u on u.organization_id = o.id and u.status in ('not started', 'running') and u.exclusive
      union select stack_id from update_queue_waiters where superseded_by is null
    ),
    held_stacks as (
      select o.name as organization, p.name as project, s.name as stack, s.id, s.active_update_id,
        case when o.facts is not null then effective_permissions(o.facts, o.id, p.name, s.name) end as held
      from busy b join stacks s on s.id = b.stack_id and s.deleted_at is null join projects p on p.id = s.project_id
      join o on o.id = p.organization_id
      where (${at.project}::text is null or p.name = ${at.project}) and (${at.stack}::text is null or s.name = ${at.stack})
        and (o.facts is null or effective_permissions(o.facts, o.id, p.name, s.name) & 1 = 1)
    ),
    runs as (
      select u.id as "updateId", null::uuid as "placeId", l.organization, l.project, l.stack, 0 as position, u.kind, coalesce(u.started_at, u.created_at) as since,
        ${by} as by, u.commit_id as commit, u.branch,
        u.ci_run::json ->> 'build.url' as "ciUrl", true as "isHeld", null::text as "heldBy", null::int as "limit", false as "isFrozen", l.held
      from held_stacks l join updates u on u.id = l.active_update_id ${owners}
      union all
      select null, w.id, l.organization, l.project, l.stack,
        (row_number() over (partition by l.id order by not w.is_urgent, w.number))::int, w.shown ->> 'kind', w.arrived_at,
        coalesce(a.login, t.kind || ':' || t.name), coalesce(w.shown ->> 'commit', w.run ->> 'commit'), w.shown ->> 'branch',
        coalesce(w.shown ->> 'url', w.run ->> 'url'), l.active_update_id is not null, w.held_by,
        (select (r.settings ->> 'most')::int from update_rules r
         where w.held_by is not null and r.id::text = split_part(w.held_by, ':', 1)), w.is_freeze_notified, l.held
      from held_stacks l join update_queue_waiters w on w.stack_id = l.id and w.superseded_by is null
      join api_tokens t on t.id = w.token_id left join users a on a.id = t.user_id
    )`;
  return {
    /** Newest first. */
    list: (stackId: string, { before, beforeId, limit, previews }: UpdateRange) =>
      db.any(sql.rows(UpdateRow)`
        /* updateQueries.list */
        select ${columns(maxListMessage)}
        from (
          select * from updates u where u.stack_id = ${stackId}
            ${previews ? sql.fragment`` : sql.fragment`and ${isNoPreview}`}
            ${before === null ? sql.fragment`` : sql.fragment`and u.number < ${before}::bigint`}
            ${
              beforeId === undefined
                ? sql.fragment``
                : sql.fragment`and u.number < (select number from updates where stack_id = ${stackId} and id = ${beforeId})`
            }
          order by u.number desc limit ${limit}
        ) u ${owners}
        order by u.number desc`),

    find: (stackId: string, selector: UpdateSelector) =>
      db.maybeOne(sql.rows(DetailsRow)`
        /* updateQueries.find */
        select ${columns(maxMessage)}, u.exclusive, ${small('config')} as config, ${small('environment')} as environment,
          (select c.resource_count from checkpoints c where c.id = u.checkpoint_id) as "resourceCount",
          case when ${isNoPreview} then (
            select p.id from updates p
            where p.stack_id = u.stack_id and p.number < u.number and (p.dry_run or p.kind = 'preview')
              and p.number > coalesce((
                select max(e.number) from updates e
                where e.stack_id = u.stack_id and e.number < u.number and not e.dry_run and e.kind <> 'preview'
                  and (e.started_at is not null or e.ended_at is null)), 0)
            order by p.number desc limit 1) end as "previewId",
          case when ${isPreview} then (
            select f.id from (
              select n.id, n.dry_run or n.kind = 'preview' as is_preview from updates n
              where n.stack_id = u.stack_id and n.number > u.number order by n.number limit 1) f
            where not f.is_preview) end as "followerId",
          u.waited_ms as "waitedMs",
          case when u.waited_ms is not null then (
            select json_agg(json_build_object('updateId', h.id, 'version', h.stack_version, 'kind', h.kind, 'by', h.by) order by h.number)
            from (
              select e.id, e.stack_version, e.kind, e.number, coalesce(ea.login, et.kind || ':' || et.name) as by
              from (
                select * from updates e where e.stack_id = u.stack_id and e.number < u.number order by e.number desc limit ${maxBefore}) e
              left join users ea on ea.id = e.requested_by
              left join api_tokens et on et.id = e.token_id and e.requested_by is null
              where e.exclusive and e.ended_at > u.created_at - make_interval(secs => u.waited_ms / 1000.0)
              order by e.number desc limit ${maxBehind}) h)::text end as behind
        from updates u ${owners}
        where u.stack_id = ${stackId} and ${'id' in selector ? sql.fragment`u.id = ${selector.id}` : sql.fragment`u.stack_version = ${selector.version}`}`),

    /** The last run of a program that made this version or an earlier one, other than an import or a rename of a state. */
    findLastRun: (stackId: string, version: number) =>
      db.maybeOne(sql.rows(UpdateRow)`
        /* updateQueries.findLastRun */
        select ${columns(maxListMessage)} from updates u ${owners}
        where u.stack_id = ${stackId} and u.stack_version <= ${version} and (u.kind not in ('import', 'rename') or u.end_reason is not null)
        order by u.stack_version desc limit 1`),

    /** Previews do not count. */
    findLastSettings: (stackId: string) =>
      db.maybeOne(sql.rows(ConfigRow)`
        /* updateQueries.findLastSettings */
        select ${small('config')} as config, ${small('environment')} as environment from updates u
        where u.stack_id = ${stackId} and ${isEffective} order by u.number desc limit 1`),

    /** Runs by stack and position, without superseded ones. */
    listQueue: (
      organizations: readonly ListedOrganization[],
      at: { readonly project: string | null; readonly stack: string | null },
      after: readonly [string, string, string, number] | null,
      limit: number,
    ) =>
      db.any(sql.rows(RunRow)`
        /* updateQueries.listQueue */
        ${runsOf(organizations, at)}
        select * from runs
        where ${
          after === null
            ? sql.fragment`true`
            : sql.fragment`(organization, project, stack, position) > (${after[0]}, ${after[1]}, ${after[2]}, ${after[3]}::int)`
        }
        order by organization, project, stack, position limit ${limit}`),

    /** The longest wait first. */
    listLongWaits: (organizations: readonly ListedOrganization[], seconds: number, limit: number) =>
      db.any(sql.rows(RunRow)`
        /* updateQueries.listLongWaits */
        ${runsOf(organizations, { project: null, stack: null })}
        select * from runs where "updateId" is null and since < clock_timestamp() - make_interval(secs => ${seconds})
        order by since, "placeId" limit ${limit}`),
  };
}
