import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import type { StackRef } from './names.ts';

const OrganizationRow = Type.Object({
  id: Type.String(),
  name: Type.String(),
  /** JSON of SubjectFacts, which decide which stacks are listed; null if all are. */
  facts: Nullable(Type.String()),
});
export type ListedOrganization = Row<typeof OrganizationRow>;
const FoundRow = Type.Object({ found: Type.Boolean() });

const StackListRow = Type.Object({
  id: Type.String(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  tags: Type.String(),
  stackVersion: Type.Integer(),
  activeUpdateId: Nullable(Type.String()),
  resourceCount: Nullable(Type.Integer()),
  lastKind: Nullable(Type.String()),
  lastStatus: Nullable(Type.String()),
  lastStartedAt: Nullable(Timestamp),
  /** Counted up to `limit`, before `maxBytes` cuts the list. */
  found: Type.Integer(),
  /** Counts toward `maxBytes`. */
  bytes: Type.Integer(),
});
export type StackListRow = Row<typeof StackListRow>;

/** All given conditions must hold. */
export interface StackFilter {
  /** Ordered by name. */
  readonly organizations: readonly ListedOrganization[];
  readonly project: string | null;
  readonly tagName: string | null;
  readonly tagValue: string | null;
  /** Applies in the first organization. */
  readonly after: StackRef | null;
  readonly limit: number;
  /** An update that ended without having started may count as the last one. */
  readonly unstarted: boolean;
  /** For tags and names together. At least one stack is always listed. */
  readonly maxBytes: number;
}

/** A table with a row of `id`, `name` and `facts` for each organization. */
export function unnested(organizations: readonly ListedOrganization[]) {
  const columns = [
    sql.array(
      organizations.map(({ id }) => id),
      'uuid',
    ),
    sql.array(
      organizations.map(({ name }) => name),
      'text',
    ),
    sql.array(
      organizations.map(({ facts }) => facts),
      'jsonb',
    ),
  ];
  return sql.fragment`unnest(${sql.join(columns, sql.fragment`, `)})`;
}

/** The token `t` is valid in an organization `o` of its holder: it has no scopes, or its scopes or grants name the organization. */
export const isInScope = sql.fragment`(t.scopes is null or t.kind <> 'personal'
  or exists (select 1 from jsonb_to_recordset(t.scopes) as c (organization text) where coalesce(c.organization, o.name) = o.name)
  or exists (select 1 from grants g where g.token_id = t.id and g.organization_id = o.id))`;

export type StackListRepository = ReturnType<typeof createStackListRepository>;

/** Ordered by qualified name, from `stack_listings`. */
export function createStackListRepository(db: Queryable) {
  const isReadable = sql.fragment`effective_permissions(o.facts, o.id, l.project_name, l.stack_name) & 1 = 1`;
  /** Rows of one organization `o`, in the order of a unique index. */
  const matches = ({ project, tagName, tagValue, after }: StackFilter) => {
    const listedUnder =
      tagName !== null && tagValue !== null
        ? sql.fragment`l.tag_name = ${tagName} and l.tag_name <> '' and l.tag_value = ${tagValue}`
        : sql.fragment`l.tag_name = ${tagName ?? ''}`;
    const ofFirst = (value: string) => sql.fragment`case when o.at = 1 then ${value} else '' end`;
    // If the row comparison also contained the project, Postgres would begin at its first stack.
    const afterCursor =
      project === null
        ? sql.fragment`(l.project_name, l.stack_name) > (${ofFirst(after?.project ?? '')}, ${ofFirst(after?.stack ?? '')})`
        : sql.fragment`l.project_name = ${project} and (o.at > 1 or ${after?.project ?? ''} <= ${project})
            and l.stack_name > ${ofFirst(after?.project === project ? after.stack : '')}`;
    return sql.fragment`l.organization_id = o.id and ${listedUnder} and ${afterCursor} and (o.facts is null or ${isReadable})`;
  };

  /** The update of a stack `m` that counts as its last one, in place of the recorded one. */
  const lastUpdate = ({ unstarted }: StackFilter) =>
    unstarted
      ? sql.fragment`stack_id = m.id and not dry_run and kind <> 'preview' order by number desc limit 1`
      : sql.fragment`id = m.active_update_id and not dry_run and kind <> 'preview' offset 0`;

  return {
    /**
     * Ordered by name: one organization or all, from the name `from` on. Excludes organizations whose stacks the holder's role does not
     * show at all.
     */
    listOrganizations: (tokenId: string, { name, from }: { name: string | null; from: string | null }) =>
      db.any(sql.rows(OrganizationRow)`
        /* stackLists.listOrganizations */
        select o.id, o.name, case when a.version > 0 or t.is_limited then coalesce(token_facts(t.id, o.id), '{"base":0}')::text end as facts
        from api_tokens t
        cross join lateral (
          select organization_id from memberships where user_id = t.user_id
          union all select t.organization_id where t.organization_id is not null) m
        join organizations o on o.id = m.organization_id join organization_access a on a.organization_id = o.id
        where t.id = ${tokenId} and ${isInScope} and (${name}::text is null or o.name = ${name})
          and (${from}::text is null or o.name >= ${from})
        order by o.name`),

    /** If `facts` are not null, they must permit reading the stack. */
    hasReadableStack: async (organization: string, project: string, facts: object | null): Promise<boolean> => {
      const row = await db.one(sql.rows(FoundRow)`
        /* stackLists.hasReadableStack */
        select exists (
          select 1 from (select id, ${facts && JSON.stringify(facts)}::jsonb as facts from organizations where name = ${organization}) o
          join stack_listings l on l.organization_id = o.id and l.tag_name = '' and l.project_name = ${project}
          where o.facts is null or ${isReadable}) as found`);
      return row.found;
    },

    /**
     * Reads one row of each stack, and of the update that holds it or was its last one. Reads an organization only if the earlier ones do
     * not fill the page. Uses lateral joins, because Postgres would otherwise read a whole table rather than a tenth of it through an
     * index.
     */
    list: (filter: StackFilter) =>
      db.any(sql.rows(StackListRow)`
        /* stackLists.list */
        select m.id, m.organization, m.project, m.stack, m.tags, m.stack_version as "stackVersion",
               m.active_update_id as "activeUpdateId", case when m.active_update_id is null then m.resource_count else c.resource_count end as "resourceCount",
               coalesce(u.kind, m.last_kind) as "lastKind", coalesce(u.status, m.last_status) as "lastStatus",
               coalesce(u.started_at, u.created_at, m.last_started_at) as "lastStartedAt", m.found, m.bytes
        from (
          select k.organization, k.project, k.stack, s.*, count(*) over () as found, row_number() over w as rank,
                 sum(s.bytes) over w as total
          from (
            select o.at, o.name as organization, l.project_name as project, l.stack_name as stack, l.stack_id
            from ${unnested(filter.organizations)} with ordinality as o (id, name, facts, at)
            cross join lateral (
              select l.project_name, l.stack_name, l.stack_id from stack_listings l
              where ${matches(filter)}
              order by l.project_name, l.stack_name limit ${filter.limit}
            ) l
            order by o.at, l.project_name, l.stack_name limit ${filter.limit}
          ) k
          cross join lateral (
            select id, tags, stack_version, active_update_id, checkpoint_id, resource_count, last_kind, last_status, last_started_at,
              octet_length(tags) + 1000 as bytes
            from stacks where id = k.stack_id offset 0
          ) s
          window w as (order by k.at, k.project, k.stack)
        ) m
        left join lateral (
          select resource_count from checkpoints where id = m.checkpoint_id and m.active_update_id is not null offset 0) c on true
        left join lateral (
          select kind, status, started_at, created_at from updates where ${lastUpdate(filter)}
        ) u on true
        where m.total <= ${filter.maxBytes} or m.rank = 1 order by m.rank`),
  };
}
