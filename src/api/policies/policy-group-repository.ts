import { Type } from 'typebox';
import { isByProject, type SubjectFacts } from '../../shared/access/access-decision.ts';
import { countStacks } from '../../shared/access/quotas/storage-repository.ts';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';
import { packBytes } from './policies.ts';

const GroupRow = Type.Object({ id: Type.String(), name: Type.String(), isDefault: Type.Boolean() });
export type PolicyGroupRow = Row<typeof GroupRow>;
const SummaryRow = Type.Object({
  name: Type.String(),
  isDefault: Type.Boolean(),
  stackCount: Type.Integer(),
  packCount: Type.Integer(),
});
const MemberRow = Type.Object({ project: Type.String(), stack: Type.String() });
const AppliedRow = Type.Object({
  name: Type.String(),
  displayName: Type.String(),
  versionTag: Type.String(),
  /** JSON text. */
  config: Type.String(),
});
const ConfigBytesRow = Type.Object({
  project: Nullable(Type.String()),
  stack: Nullable(Type.String()),
  bytes: Type.Integer(),
});
const CountRow = Type.Object({ count: Type.Integer() });
const FoundRow = Type.Object({ at: Type.Integer(), ids: Type.Array(Type.String()) });

/** The condition for stacks `s` of projects `p`; null: all. */
const readableBy = (facts: object | null) => sql.fragment`(${facts === null}
  or effective_permissions(${JSON.stringify(facts)}::jsonb, p.organization_id, p.name, s.name) & 1 = 1)`;

type Fragment = ReturnType<typeof sql.fragment>;

export type PolicyGroupRepository = ReturnType<typeof createPolicyGroupRepository>;

export function createPolicyGroupRepository(db: Queryable) {
  const columns = sql.fragment`g.id, g.name, g.is_default as "isDefault"`;
  const named = (organization: string, name: string) => sql.fragment`
    policy_groups g join organizations o on o.id = g.organization_id
    where o.name = ${organization} and g.name = ${name}`;

  /**
   * Common table expressions: the stacks that `facts` allow to read, and their number in each group. Null: the deleted stacks in groups.
   */
  const readable = (organization: string, facts: SubjectFacts | null) => {
    if (facts === null)
      return sql.fragment`
        with organization as materialized (select id from organizations where name = ${organization}),
        deleted as materialized (
          select m.group_id, m.organization_id, m.stack_id from (
            select id from stacks where restorable_in = (select id from organization) and restorable_until is not null
            union all
            -- Of all organizations: they wait for their purge.
            select id from stacks where deleted_at is not null and coalesce(restorable_until, '-infinity'::timestamptz) = '-infinity') s
          cross join lateral (
            select m.*, h.organization_id from policy_group_stacks m join policy_groups h on h.id = m.group_id
            where m.stack_id = s.id offset 0) m)`;
    const mayRead = (project: Fragment, stack: Fragment) =>
      sql.fragment`effective_permissions(${JSON.stringify(facts)}::jsonb, o.id, ${project}, ${stack}) & 1 = 1`;
    const isByProjects = isByProject(facts);
    return sql.fragment`
      with organization as materialized (select id from organizations where name = ${organization}),
      projects_read as materialized (
        select p.organization_id, p.name from organizations o join projects p on p.organization_id = o.id
        where o.name = ${organization} and (${!isByProjects} or ${mayRead(sql.fragment`p.name`, sql.fragment`''`)})
      ), readable as materialized (
        select l.stack_id from organizations o
          join projects_read p on p.organization_id = o.id
          join stack_listings l on l.organization_id = o.id and l.tag_name = '' and l.project_name = p.name
        where ${isByProjects} or ${mayRead(sql.fragment`l.project_name`, sql.fragment`l.stack_name`)}
      ), added as materialized (
        select m.group_id, count(*)::integer as stacks
        from readable r join policy_group_stacks m on m.stack_id = r.stack_id group by m.group_id)`;
  };
  const readableCount = sql.fragment`case when g.is_default then (
      select count(*)::integer from readable r
      where not exists (select 1 from policy_group_stacks m where m.stack_id = r.stack_id)
    ) else coalesce((select a.stacks from added a where a.group_id = g.id), 0) end`;
  /** Counts in the index alone, minus members whose stacks are deleted, without a lookup of each stack. */
  const wholeCount = sql.fragment`case when g.is_default then
      ${countStacks(sql.fragment`g.organization_id`)} - (
        (select count(distinct m.stack_id)::integer from policy_groups h join policy_group_stacks m on m.group_id = h.id
          where h.organization_id = g.organization_id)
        - (select count(distinct d.stack_id)::integer from deleted d where d.organization_id = g.organization_id))
    else (select count(*)::integer from policy_group_stacks m where m.group_id = g.id)
      - (select count(*)::integer from deleted d where d.group_id = g.id) end`;
  /** Includes the number of stacks that `facts` allow to read; null: all. */
  const summary = (facts: object | null) => sql.fragment`
    g.name, g.is_default as "isDefault", ${facts === null ? wholeCount : readableCount} as "stackCount",
    (select count(*)::integer from policy_group_packs a where a.group_id = g.id) as "packCount"`;

  return {
    /** The default group has the stacks that are in no other group. */
    list: (organization: string, facts: SubjectFacts | null) =>
      db.any(sql.rows(SummaryRow)`
        /* policyGroups.list */
        ${readable(organization, facts)}
        select ${summary(facts)} from policy_groups g
        where g.organization_id = (select id from organization) order by g.is_default desc, g.name`),

    listPage: (
      organization: string,
      facts: SubjectFacts | null,
      after: { readonly isDefault: boolean; readonly name: string } | null,
      limit: number,
    ) =>
      db.any(sql.rows(SummaryRow)`
        /* policyGroups.listPage */
        ${readable(organization, facts)}
        select ${summary(facts)} from (
          select g.* from policy_groups g join organizations o on o.id = g.organization_id
          where o.name = ${organization} and (${after === null} or not g.is_default and (${after?.isDefault ?? false} or g.name > ${after?.name ?? ''}))
          order by g.is_default desc, g.name limit ${limit}
        ) g order by g.is_default desc, g.name`),

    find: (organization: string, name: string) =>
      db.maybeOne(sql.rows(GroupRow)`/* policyGroups.find */ select ${columns} from ${named(organization, name)}`),

    /** The lock lasts until the transaction ends. */
    lock: (organization: string, name: string) =>
      db.maybeOne(sql.rows(GroupRow)`
        /* policyGroups.lock */ select ${columns} from ${named(organization, name)} for update of g`),

    /** Blocks all other changes of the organization's groups until the transaction ends. */
    lockAll: (organization: string) =>
      db.query(sql.nothing`
        /* policyGroups.lockAll */
        select 1 from policy_groups g join organizations o on o.id = g.organization_id
        where o.name = ${organization} and g.is_default for no key update of g`),

    /** Configuration of the group's packs, and the maximum total over all groups of one of its stacks. Each pack adds `packBytes`. */
    findConfigBytes: (id: string) =>
      db.any(sql.rows(ConfigBytesRow)`
        /* policyGroups.findConfigBytes */
        with sizes as materialized (
          select a.group_id, sum(octet_length(a.config) + ${packBytes}::integer) as bytes
          from policy_groups own join policy_groups g on g.organization_id = own.organization_id
            join policy_group_packs a on a.group_id = g.id
          where own.id = ${id} group by a.group_id
        )
        select null as project, null as stack, bytes::float8 from sizes where group_id = ${id}
        union all
        (select p.name, s.name, t.bytes::float8
        from (
          select m.stack_id, sum(z.bytes) as bytes
          from policy_group_stacks own join policy_group_stacks m on m.stack_id = own.stack_id join sizes z on z.group_id = m.group_id
          where own.group_id = ${id} group by m.stack_id order by 2 desc limit 1) t
          join stacks s on s.id = t.stack_id join projects p on p.id = s.project_id)`),

    /** Counts at most `most` groups. */
    count: async (organization: string, most: number): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* policyGroups.count */
        select count(*)::integer as count from (
          select 1 from policy_groups g join organizations o on o.id = g.organization_id
          where o.name = ${organization} limit ${most}) as counted`);
      return count;
    },

    /** Counts at most `most` live stacks that were added. */
    countStacks: async (id: string, most: number): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* policyGroups.countStacks */
        select count(*)::integer as count from (
          select 1 from policy_group_stacks m join stacks s on s.id = m.stack_id
          where m.group_id = ${id} and s.deleted_at is null limit ${most}) as counted`);
      return count;
    },

    insert: (organization: string, name: string) =>
      db.query(sql.nothing`
        /* policyGroups.insert */
        insert into policy_groups (organization_id, name) select id, ${name} from organizations where name = ${organization}`),

    rename: (id: string, name: string) =>
      db.query(sql.nothing`/* policyGroups.rename */ update policy_groups set name = ${name} where id = ${id}`),

    delete: (id: string) => db.query(sql.nothing`/* policyGroups.delete */ delete from policy_groups where id = ${id}`),

    /** The live stacks that were added: those that `facts` allow to read, or all. */
    listStacks: (id: string, facts: object | null) =>
      db.any(sql.rows(MemberRow)`
        /* policyGroups.listStacks */
        select p.name as project, s.name as stack
        from policy_group_stacks m join stacks s on s.id = m.stack_id join projects p on p.id = s.project_id
        where m.group_id = ${id} and s.deleted_at is null and ${readableBy(facts)}
        order by p.name, s.name`),

    listStackPage: (
      id: string,
      facts: object | null,
      after: { readonly project: string; readonly stack: string } | null,
      limit: number,
    ) =>
      db.any(sql.rows(MemberRow)`
        /* policyGroups.listStackPage */
        select p.name as project, s.name as stack
        from policy_group_stacks m join stacks s on s.id = m.stack_id join projects p on p.id = s.project_id
        where m.group_id = ${id} and s.deleted_at is null and ${readableBy(facts)}
          and (${after === null} or (p.name, s.name) > (${after?.project ?? ''}, ${after?.stack ?? ''}))
        order by p.name, s.name limit ${limit}`),

    listPacks: (id: string) =>
      db.any(sql.rows(AppliedRow)`
        /* policyGroups.listPacks */
        select p.name, v.display_name as "displayName", v.version_tag as "versionTag", a.config
        from policy_group_packs a join policy_pack_versions v on v.id = a.version_id join policy_packs p on p.id = a.pack_id
        where a.group_id = ${id} order by p.name`),

    /** Ids by position of the reference: at most two live stacks with this name, in one project or in any. */
    findStacks: async (
      organization: string,
      references: readonly { readonly project: string | null; readonly name: string }[],
    ): Promise<ReadonlyMap<number, readonly string[]>> => {
      const rows = await db.any(sql.rows(FoundRow)`
        /* policyGroups.findStacks */
        with r as materialized (
          select at, name, project from unnest(${sql.array(
            references.map(({ name }) => name),
            'text',
          )}, ${sql.array(
            references.map(({ project }) => project ?? ''),
            'text',
          )}) with ordinality as r (name, project, at)),
        found as (
          select r.at, s.id from r join organizations o on o.name = ${organization}
            join projects p on p.organization_id = o.id and p.name = r.project
            join stacks s on s.project_id = p.id and s.name = r.name and s.deleted_at is null
          where r.project <> ''
          union all
          select r.at, f.id from r join organizations o on o.name = ${organization} cross join lateral (
            select s.id from projects p join stacks s on s.project_id = p.id
            where p.organization_id = o.id and s.name = r.name and s.deleted_at is null limit 2) f
          where r.project = '')
        select (at - 1)::integer as at, (array_agg(id))[1:2] as ids from found group by at`);
      return new Map(rows.map(({ at, ids }) => [at, ids]));
    },

    addStacks: (id: string, stackIds: readonly string[]) =>
      db.query(sql.nothing`
        /* policyGroups.addStacks */
        insert into policy_group_stacks (group_id, stack_id) select ${id}::uuid, unnest(${sql.array(stackIds, 'uuid')})
        on conflict do nothing`),

    /** Null: all stacks. */
    removeStacks: (id: string, stackIds: readonly string[] | null) =>
      db.query(sql.nothing`
        /* policyGroups.removeStacks */
        delete from policy_group_stacks
        where group_id = ${id} and (${stackIds === null} or stack_id = any(${sql.array(stackIds ?? [], 'uuid')}))`),

    /** The versions take the place of other versions of the packs. */
    setPacks: (
      id: string,
      packs: readonly { readonly packId: string; readonly versionId: string; readonly config: string }[],
    ) =>
      db.query(sql.nothing`
        /* policyGroups.setPacks */
        insert into policy_group_packs (group_id, pack_id, version_id, config)
        select ${id}::uuid, * from unnest(${sql.array(
          packs.map(({ packId }) => packId),
          'uuid',
        )}, ${sql.array(
          packs.map(({ versionId }) => versionId),
          'uuid',
        )}, ${sql.array(
          packs.map(({ config }) => config),
          'text',
        )})
        on conflict (group_id, pack_id) do update set version_id = excluded.version_id, config = excluded.config`),

    /** Any version of the pack, or only the given one. Returns whether it was enabled. */
    removePack: async (id: string, name: string, versionTag: string | null): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* policyGroups.removePack */
        delete from policy_group_packs a using policy_packs p, policy_pack_versions v
        where a.group_id = ${id} and p.id = a.pack_id and v.id = a.version_id and p.name = ${name}
          and (${versionTag}::text is null or v.version_tag = ${versionTag}::text or v.version::text = ${versionTag}::text)`);
      return rowCount > 0;
    },

    clearPacks: (id: string) =>
      db.query(sql.nothing`/* policyGroups.clearPacks */ delete from policy_group_packs where group_id = ${id}`),
  };
}
