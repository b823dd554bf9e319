import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../shared/platform/schema/standard-schema.ts';
import type { StackRef } from '../../shared/stacks/names.ts';

const Text = Nullable(Type.String());

const IndexedRow = Type.Object({
  stackId: Type.String(),
  /** Null: nothing is indexed yet. */
  indexedVersion: Nullable(Type.Integer()),
  /** Changes are known above this version. */
  knownFrom: Nullable(Type.Integer()),
  /** Changes are known up to this version; one that has not ended has none yet. */
  knownTo: Nullable(Type.Integer()),
  headVersion: Type.Integer(),
  /** The version of a running update, or `headVersion`. */
  newestVersion: Type.Integer(),
});
export type IndexedStack = Row<typeof IndexedRow>;

const ResourceRow = Type.Object({
  key: Type.String(),
  place: Type.String(),
  urn: Type.String(),
  type: Type.String(),
  name: Type.String(),
  parent: Text,
  /** The type of the provider. */
  provider: Text,
  providerVersion: Text,
  protect: Type.Boolean(),
  isCustom: Type.Boolean(),
  isExternal: Type.Boolean(),
  /** Replaced, and pending deletion. */
  isDeleted: Type.Boolean(),
  dependencies: Type.Integer(),
  /** Counted up to `maxChildren`. */
  children: Type.Integer(),
  /** Null if unknown. */
  changedIn: Nullable(Type.Integer()),
});
export type IndexedResource = Row<typeof ResourceRow>;

const UrnRow = Type.Object({ urn: Type.String() });
const EdgeRow = Type.Object({
  place: Type.String(),
  key: Type.String(),
  urn: Type.String(),
  name: Type.String(),
  parent: Text,
  /** JSON text: the driver parses arrays one character at a time. */
  dependencies: Type.String(),
});
export type ResourceEdges = Omit<Row<typeof EdgeRow>, 'dependencies'> & { readonly dependencies: readonly string[] };

const AuthorRow = Type.Object({
  version: Type.Integer(),
  updateId: Type.String(),
  kind: Type.String(),
  by: Text,
  /** The end of the update, or its beginning while it runs. */
  at: Timestamp,
  commit: Text,
  branch: Text,
  ciUrl: Text,
});
/** A resource has up to 2,000 dependencies: a page could have millions. */
const maxPageDependencies = 20_000;

export type VersionAuthorRow = Row<typeof AuthorRow>;

const HistoryRow = Type.Object({
  ...AuthorRow.properties,
  change: Type.String(),
  /** JSON text: the driver parses arrays one character at a time. */
  paths: Text,
  pathCount: Type.Integer(),
});
export type HistoryRow = Omit<Row<typeof HistoryRow>, 'paths'> & { readonly paths: readonly string[] | null };

const VersionRow = Type.Object({
  version: Type.Integer(),
  updateId: Type.String(),
  kind: Type.String(),
  status: Type.String(),
  message: Type.String(),
  by: Text,
  at: Timestamp,
  resourceCount: Nullable(Type.Integer()),
  created: Nullable(Type.Integer()),
  updated: Nullable(Type.Integer()),
  replaced: Nullable(Type.Integer()),
  deleted: Nullable(Type.Integer()),
  isStateDeleted: Type.Boolean(),
  pinnedBy: Text,
});
export type VersionRow = Row<typeof VersionRow>;

export interface ResourcePosition {
  readonly place: string;
  readonly key: string;
}

/** A resource must match all of them. */
export interface ResourceFilter {
  /** Part of name, type or URN, in lower case. */
  readonly text: string | null;
  readonly type: string | null;
  /** `parent`: key of the parent, or null for resources without a parent. */
  readonly within: { readonly parent: string | null } | null;
}

const maxMessageChars = 300;
/**
 * With a limit, and a range in the order of the index of parents, each count is a search in that index, even if nearly all resources have
 * the same parent. For `=`, Postgres would scan another index, expecting to find children soon.
 */
const maxChildren = 100;

export function createResourceRepository(db: Queryable) {
  const columns = sql.fragment`
    r.key, r.place, r.urn, r.type, r.name, parent.urn as parent, provider.type as provider,
    provider.provider_version as "providerVersion", r.is_protected as protect, r.is_custom as "isCustom",
    r.is_external as "isExternal", r.is_deleted as "isDeleted", cardinality(r.dependencies) as dependencies,
    (select count(*)::integer from (
      select 1 from stack_resources c where c.stack_id = r.stack_id and c.parent between r.key and r.key
      order by c.parent, c.place, c.key limit ${maxChildren}) c) as children,
    (select c.version from resource_changes c where c.stack_id = r.stack_id and c.key = r.key order by c.version desc limit 1) as "changedIn"`;
  const joins = sql.fragment`
    left join stack_resources parent on parent.stack_id = r.stack_id and parent.key = r.parent
    left join stack_resources provider on provider.stack_id = r.stack_id and provider.key = r.provider`;
  const author = sql.fragment`
    u.stack_version as version, u.id as "updateId", u.kind, a.login as by, coalesce(u.ended_at, u.created_at) as at,
    u.commit_id as commit, u.branch, u.ci_run::json ->> 'build.url' as "ciUrl"`;
  const always = sql.fragment`true`;

  return {
    /** Null: the stack does not exist. */
    find: (ref: StackRef) =>
      db.maybeOne(sql.rows(IndexedRow)`
        /* resources.find */
        select s.id as "stackId", i.version as "indexedVersion", i.known_from as "knownFrom", s.stack_version as "headVersion",
          case when i.is_ended then i.version else (
            select u.base_stack_version from updates u where u.stack_id = s.id and u.stack_version = i.version) end as "knownTo",
          coalesce((
            select u.stack_version from updates u where u.id = s.active_update_id and u.exclusive and not u.dry_run
          ), s.stack_version) as "newestVersion"
        from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
          left join state_indexes i on i.stack_id = s.id
        where o.name = ${ref.organization} and p.name = ${ref.project} and s.name = ${ref.stack} and s.deleted_at is null`),

    /** In the order of type and name. */
    list: (stackId: string, { text, type, within }: ResourceFilter, after: ResourcePosition | null, limit: number) =>
      db.any(sql.rows(ResourceRow)`
        /* resources.list */
        select ${columns} from (
          select * from stack_resources r
          where r.stack_id = ${stackId}
            and ${after === null ? always : sql.fragment`(r.place, r.key) > (${after.place}::text, ${after.key}::text)`}
            and ${type === null ? always : sql.fragment`r.type = ${type}`}
            and ${text === null ? always : sql.fragment`position(lower(${text}::text) in lower(r.urn)) > 0`}
            and ${within === null ? always : within.parent === null ? sql.fragment`r.parent is null` : sql.fragment`r.parent = ${within.parent}`}
          order by r.place, r.key limit ${limit}
        ) r ${joins} order by r.place, r.key`),

    listByKeys: (stackId: string, keys: readonly string[]) =>
      db.any(sql.rows(ResourceRow)`
        /* resources.listByKeys */
        select ${columns} from stack_resources r ${joins}
        where r.stack_id = ${stackId} and r.key = any (${sql.array([...keys], 'text')}) order by r.place, r.key`),

    listDependents: async (stackId: string, key: string, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(UrnRow)`
        /* resources.listDependents */
        select urn from stack_resources where stack_id = ${stackId} and ${key} = any (dependencies) order by place, key limit ${limit}`);
      return rows.map(({ urn }) => urn);
    },

    /**
     * The dependencies of at most `limit` resources in the order of lists, and about `maxPageDependencies` in total. Empty after the last
     * resource.
     */
    listEdges: async (
      stackId: string,
      after: ResourcePosition | null,
      limit: number,
    ): Promise<readonly ResourceEdges[]> => {
      const rows = await db.any(sql.rows(EdgeRow)`
        /* resources.listEdges */
        select place, key, urn, name, parent, array_to_json(dependencies)::text as dependencies
        from (
          select place, key, urn, name, parent, dependencies,
            sum(cardinality(dependencies)) over (order by place, key) - cardinality(dependencies) as before
          from stack_resources where stack_id = ${stackId} and not is_deleted
            and ${after === null ? sql.fragment`true` : sql.fragment`(place, key) > (${after.place}, ${after.key})`}
          order by place, key limit ${limit}) r
        where before < ${maxPageDependencies} order by place, key`);
      return rows.map((row) => ({ ...row, dependencies: JSON.parse(row.dependencies) as string[] }));
    },

    /** Null: the stack does not have the version. */
    findVersionAuthor: (stackId: string, version: number) =>
      db.maybeOne(sql.rows(AuthorRow)`
        /* resources.findVersionAuthor */
        select ${author} from updates u left join users a on a.id = u.requested_by
        where u.stack_id = ${stackId} and u.stack_version = ${version}`),

    /** Newest first. */
    listChanges: async (
      stackId: string,
      key: string,
      before: number | null,
      limit: number,
    ): Promise<readonly HistoryRow[]> => {
      const rows = await db.any(sql.rows(HistoryRow)`
        /* resources.listChanges */
        select ${author}, c.change, array_to_json(c.paths)::text as paths, c.path_count as "pathCount"
        from resource_changes c join updates u on u.stack_id = c.stack_id and u.stack_version = c.version
          left join users a on a.id = u.requested_by
        where c.stack_id = ${stackId} and c.key = ${key} and (${before}::integer is null or c.version < ${before}::integer)
        order by c.version desc limit ${limit}`);
      return rows.map((row) => ({ ...row, paths: row.paths === null ? null : (JSON.parse(row.paths) as string[]) }));
    },

    /** Newest first. */
    listVersions: (stackId: string, before: number | null, limit: number) =>
      db.any(sql.rows(VersionRow)`
        /* versions.list */
        select u.stack_version as version, u.id as "updateId", u.kind, u.status, left(u.message, ${maxMessageChars}) as message,
          a.login as by, coalesce(u.ended_at, u.created_at) as at,
          (select c.resource_count from checkpoints c where c.id = u.checkpoint_id) as "resourceCount",
          v.created, v.updated, v.replaced, v.deleted, u.state_deleted_at is not null as "isStateDeleted", u.pinned_by as "pinnedBy"
        from updates u left join users a on a.id = u.requested_by
          left join version_changes v on v.stack_id = u.stack_id and v.version = u.stack_version
        where u.stack_id = ${stackId} and u.stack_version is not null
          and (${before}::integer is null or u.stack_version < ${before}::integer)
        order by u.stack_version desc limit ${limit}`),
  };
}
