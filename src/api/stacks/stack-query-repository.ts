import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../shared/platform/schema/standard-schema.ts';
import { likePattern } from '../../shared/stacks/name-pattern.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { isInScope, type ListedOrganization, unnested } from '../../shared/stacks/stack-list-repository.ts';
import { isEffective } from '../../shared/updates/history-repository.ts';

const Text = Nullable(Type.String());

const OverviewRow = Type.Object({
  id: Type.String(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  /** JSON text. */
  tags: Text,
  stackVersion: Type.Integer(),
  resourceCount: Nullable(Type.Integer()),
  /** Microseconds since the epoch, as text. */
  changedAt: Type.String(),
  updatedAt: Timestamp,
  createdAt: Timestamp,
  /** Calls that wait for the stack. */
  waiting: Type.Integer(),
  /** The last run that compared the state with the cloud found drift that has not been repaired since; null: never compared. */
  isDrifted: Nullable(Type.Boolean()),
  lastId: Text,
  lastVersion: Nullable(Type.Integer()),
  lastKind: Text,
  lastStatus: Text,
  lastStartedAt: Nullable(Timestamp),
  lastEndedAt: Nullable(Timestamp),
  lastBy: Text,
  lastCommit: Text,
  lastCiUrl: Text,
  activeId: Text,
  activeKind: Text,
  activeBy: Text,
  activeSince: Nullable(Timestamp),
  activeBranch: Text,
  activeCommit: Text,
  activeCiUrl: Text,
});
export type OverviewRow = Row<typeof OverviewRow>;

const IdRow = Type.Object({ id: Type.String() });
const NamedRow = Type.Object({ project: Type.String(), stack: Type.String(), tags: Type.String() });
const CountRow = Type.Object({ name: Type.String(), role: Text, stacks: Nullable(Type.Integer()) });

export interface OverviewFilter {
  readonly organizations: readonly ListedOrganization[];
  /** Parts of `project/stack`, in any case. */
  readonly words: readonly string[];
  /** The lock holder: a login, or kind and name of a token. `*` matches any characters. */
  readonly owner: string | null;
  /** The age of the last change: at most, or at least, this many seconds. */
  readonly updated: { readonly isOlder: boolean; readonly seconds: number } | null;
  readonly project: string | null;
  readonly tag: { readonly name: string; readonly value: string | null } | null;
  /** A list by a common tag is read in its own order, rather than from the stacks with the tag. */
  readonly isTagCommon: boolean;
  readonly status: 'running' | 'failed' | 'interrupted' | 'drifted' | null;
  /** Ids of rules; null: frozen stacks or not. */
  readonly frozenBy: readonly string[] | null;
  readonly before: { readonly changedAt: string; readonly id: string } | null;
  readonly limit: number;
}

const maxShownTags = 20;

/** Null: never compared. */
const isDrifted = (stackId: ReturnType<typeof sql.fragment>) => sql.fragment`(
  select r.is_detected and not exists (
    select 1 from updates u
    where u.stack_id = r.stack_id and u.number >= r.number and u.kind in ('update', 'destroy') and not u.dry_run and u.status = 'succeeded')
  from drift_runs r where r.stack_id = ${stackId} and r.state = 'done' order by r.number desc limit 1)`;

const shown = (tags: number) => sql.fragment`
  s.id, s.organization, s.project, s.stack, s.stack_version as "stackVersion", s.changed_at as "updatedAt", s.created_at as "createdAt",
  (extract(epoch from s.changed_at) * 1000000)::bigint::text as "changedAt",
  (select json_object_agg(g.tag_name, g.tag_value)::text
    from (select * from listed_tags(s.tags) where tag_name <> '' limit ${tags}) g) as tags,
  (select c.resource_count from checkpoints c where c.id = s.checkpoint_id) as "resourceCount",
  (select count(*)::int from update_queue_waiters w where w.stack_id = s.id and w.superseded_by is null) as waiting,
  ${isDrifted(sql.fragment`s.id`)} as "isDrifted",
  u.id as "lastId", u.stack_version as "lastVersion", u.kind as "lastKind", u.status as "lastStatus",
  coalesce(u.started_at, u.created_at) as "lastStartedAt", u.ended_at as "lastEndedAt", coalesce(ua.login, ut.kind || ':' || ut.name) as "lastBy",
  u.commit_id as "lastCommit",
  u.ci_run::json ->> 'build.url' as "lastCiUrl",
  v.id as "activeId", v.kind as "activeKind", coalesce(va.login, vt.kind || ':' || vt.name) as "activeBy",
  coalesce(v.started_at, v.created_at) as "activeSince", v.branch as "activeBranch", v.commit_id as "activeCommit",
  v.ci_run::json ->> 'build.url' as "activeCiUrl"`;

/** The requester of the update `v`. */
const owners = sql.fragment`
  left join users va on va.id = v.requested_by left join api_tokens vt on vt.id = v.token_id and v.requested_by is null`;

const details = sql.fragment`
  left join lateral (
    select u.* from updates u where u.stack_id = s.id and ${isEffective} order by u.number desc limit 1
  ) u on true
  left join users ua on ua.id = u.requested_by left join api_tokens ut on ut.id = u.token_id and u.requested_by is null
  left join updates v on v.id = s.active_update_id
  ${owners}`;

export function createStackQueryRepository(db: Queryable) {
  /** Stacks of one organization `o`, found by the most selective condition; without one, in the order of an index. */
  const candidates = ({ before, isTagCommon, owner, project, status, tag }: OverviewFilter) => {
    const ofProject = project === null ? sql.fragment`true` : sql.fragment`l.project_name = ${project}`;
    const ofTag =
      tag === null
        ? sql.fragment`l.tag_name = ''`
        : sql.fragment`l.tag_name = ${tag.name} and l.tag_name <> '' and (${tag.value}::text is null or l.tag_value = ${tag.value})`;
    const found =
      (tag !== null && !isTagCommon) || project !== null
        ? sql.fragment`(select l.stack_id from stack_listings l where l.organization_id = o.id and ${ofTag} and ${ofProject}) l
            join stack_changes c on c.stack_id = l.stack_id`
        : status === 'running' || owner !== null
          ? sql.fragment`(
              select distinct u.stack_id from updates u where u.organization_id = o.id and u.status in ('not started', 'running')) u
            join stack_changes c on c.stack_id = u.stack_id`
          : sql.fragment`stack_changes c`;
    const later =
      before === null
        ? sql.fragment`true`
        : sql.fragment`(c.changed_at, c.stack_id) <
            ('epoch'::timestamptz + ${before.changedAt}::bigint * interval '1 microsecond', ${before.id}::uuid)`;
    return sql.fragment`${found} where c.organization_id = o.id and ${later}`;
  };
  const matched = ({ frozenBy, isTagCommon, owner, status, tag, updated, words }: OverviewFilter) => {
    const all = [sql.fragment`true`];
    // With `exists`, Postgres would read and sort all stacks with the tag.
    if (tag !== null && isTagCommon)
      all.push(sql.fragment`(
        select l.stack_id from stack_listings l
        where l.organization_id = o.id and l.tag_name = ${tag.name} and l.tag_name <> '' and l.project_name = c.project_name
          and l.stack_name = c.stack_name and ${tag.value === null ? sql.fragment`true` : sql.fragment`l.tag_value = ${tag.value}`}
        limit 1) is not null`);
    for (const word of words)
      all.push(sql.fragment`strpos(lower(c.project_name || '/' || c.stack_name), lower(${word})) > 0`);
    if (owner !== null)
      all.push(sql.fragment`exists (
        select 1 from stacks s join updates v on v.id = s.active_update_id ${owners}
        where s.id = c.stack_id and coalesce(va.login, vt.kind || ':' || vt.name) ilike ${likePattern(owner)})`);
    if (updated !== null) {
      // A condition with clock_timestamp() could not skip pages of the index.
      const limit = sql.fragment`statement_timestamp() - make_interval(secs => ${updated.seconds})`;
      all.push(updated.isOlder ? sql.fragment`c.changed_at < ${limit}` : sql.fragment`c.changed_at >= ${limit}`);
    }
    if (status === 'running')
      all.push(
        sql.fragment`exists (select 1 from stacks s where s.id = c.stack_id and s.active_update_id is not null)`,
      );
    // Literals: Postgres uses the index of stacks with a trouble only if the condition implies one.
    if (status === 'failed') all.push(sql.fragment`c.trouble = 'failed'`);
    if (status === 'interrupted') all.push(sql.fragment`c.trouble = 'cancelled'`);
    if (status === 'drifted')
      all.push(sql.fragment`c.is_drifted and coalesce(${isDrifted(sql.fragment`c.stack_id`)}, false)`);
    if (frozenBy !== null)
      all.push(sql.fragment`exists (
        select 1 from update_rules r where r.id = any (${sql.array([...frozenBy], 'uuid')}) and r.organization_id = o.id
          and (r.project is null or r.project = c.project_name) and (r.stack is null or r.stack = c.stack_name)
          and (r.tag_name is null or exists (
            select 1 from stack_listings f where f.organization_id = o.id and f.tag_name = r.tag_name
              and f.project_name = c.project_name and f.stack_name = c.stack_name and f.tag_value = r.tag_value)))`);
    return sql.join(all, sql.fragment` and `);
  };
  return {
    /** The newest change first. Reads no more of an organization than the page needs, unless a filter excludes most stacks. */
    list: (filter: OverviewFilter, maxTags = maxShownTags) =>
      db.any(sql.rows(OverviewRow)`
        /* stackQueries.list */
        select ${shown(maxTags)}
        from (
          select k.*, s.tags, s.stack_version, s.checkpoint_id, s.active_update_id, s.created_at from (
            select o.name as organization, c.*
            from ${unnested(filter.organizations)} as o (id, name, facts)
            cross join lateral (
              select c.stack_id as id, c.changed_at, c.project_name as project, c.stack_name as stack
              from ${candidates(filter)} and ${matched(filter)}
                and (o.facts is null or effective_permissions(o.facts, o.id, c.project_name, c.stack_name) & 1 = 1)
              order by c.changed_at desc, c.stack_id desc limit ${filter.limit}
            ) c
            order by c.changed_at desc, c.id desc limit ${filter.limit}
          ) k cross join lateral (select * from stacks where id = k.id offset 0) s
        ) s ${details}
        order by s.changed_at desc, s.id desc`),

    /** An organization has many stacks with the tag, and more than a 25th of its stacks have it. */
    isTagCommon: (
      organizations: readonly ListedOrganization[],
      { name, value }: NonNullable<OverviewFilter['tag']>,
      many: number,
    ) =>
      db.exists(sql.rows(IdRow)`
        /* stackQueries.isTagCommon */
        select o.id from ${unnested(organizations)} as o (id, name, facts)
        cross join lateral (
          select 1 from stack_listings l
          where l.organization_id = o.id and l.tag_name = ${name} and l.tag_name <> ''
            and ${value === null ? sql.fragment`true` : sql.fragment`l.tag_value = ${value}`}
          offset (select greatest(${many}::integer, coalesce(sum(n.stacks), 0) / 25) from stack_counts n where n.organization_id = o.id)
          limit 1) more limit 1`),

    find: (id: string) =>
      db.maybeOne(sql.rows(OverviewRow)`
        /* stackQueries.find */
        select ${shown(maxShownTags)}
        from (
          select o.name as organization, p.name as project, s.name as stack, s.*, c.changed_at from stacks s
          join stack_changes c on c.stack_id = s.id join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
          where s.id = ${id} and s.deleted_at is null
        ) s ${details}`),

    /** Stacks that had this name before a rename. */
    listRenamed: ({ organization, project, stack }: StackRef, limit: number) =>
      db.any(sql.rows(NamedRow)`
        /* stackQueries.listRenamed */
        select p.name as project, s.name as stack, s.tags
        from organizations o join former_stack_names f on f.organization_id = o.id
          join stacks s on s.id = f.stack_id and s.deleted_at is null join projects p on p.id = s.project_id
        where o.name = ${organization} and f.project_name = ${project} and f.stack_name = ${stack}
        order by s.updated_at desc limit ${limit}`),

    /** Organizations by name, with the number of their stacks, up to `most`, if all of them may be read. */
    listOrganizations: (tokenId: string, most: number) =>
      db.any(sql.rows(CountRow)`
        /* stackQueries.listOrganizations */
        select o.name, m.role, case when a.version = 0 and not t.is_limited then (
            select count(*)::int from (
              select 1 from stack_listings l where l.organization_id = o.id and l.tag_name = '' limit ${most}) l) end as stacks
        from api_tokens t
        cross join lateral (
          select organization_id, role from memberships where user_id = t.user_id
          union all select t.organization_id, t.role where t.organization_id is not null) m
        join organizations o on o.id = m.organization_id join organization_access a on a.organization_id = o.id
        where t.id = ${tokenId} and ${isInScope} order by o.name`),
  };
}
