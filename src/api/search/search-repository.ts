import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { isStatementTimeout } from '../../shared/platform/db/sqlstate.ts';
import { Nullable, Timestamp } from '../../shared/platform/schema/standard-schema.ts';
import {
  all,
  type ResourceCondition,
  type ResourceTerm,
  resourceSql,
  type StackTerm,
  stackSql,
} from './search-terms.ts';

const Text = Nullable(Type.String());

const StackRow = Type.Object({
  id: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  resources: Type.Integer(),
});
export type SearchedStack = Row<typeof StackRow>;

const FoundRow = Type.Object({
  /** Among the searched stacks, from 1. */
  at: Type.Integer(),
  key: Type.String(),
  place: Type.String(),
  urn: Type.String(),
  type: Type.String(),
  name: Type.String(),
  parent: Text,
  /** The provider of the resource. */
  providerUrn: Text,
  provider: Text,
  providerVersion: Text,
  protect: Type.Boolean(),
  isCustom: Type.Boolean(),
  isExternal: Type.Boolean(),
  isDeleted: Type.Boolean(),
  /** The last change of the resource; null if unknown. */
  changedIn: Nullable(Type.Integer()),
  changedAt: Nullable(Timestamp),
});
export type FoundResource = Row<typeof FoundRow>;

const CountRow = Type.Object({ name: Type.String(), version: Text, resources: Type.Integer(), stacks: Type.Integer() });
const IdsRow = Type.Object({ ids: Type.Array(Type.String()), rows: Type.Integer() });
const TimeoutRow = Type.Object({ before: Type.String() });
const ProviderRow = Type.Object({ stackId: Type.String(), type: Type.String(), version: Text });
const EstimateRow = Type.Object({
  'QUERY PLAN': Type.Array(Type.Object({ Plan: Type.Object({ 'Plan Rows': Type.Number() }) })),
});
const HiddenRow = Type.Object({ isTrimmed: Type.Boolean() });

/** `facts`: JSON; they decide which stacks are found; null: all. */
export interface SearchedOrganization {
  readonly id: string;
  readonly name: string;
  readonly facts: string | null;
}

export type GroupField = 'type' | 'stack' | 'provider';

const checkedStacks = 1_000;
/** The condition of the index of providers. */
const isProvider = (alias: ReturnType<typeof sql.fragment>) => sql.fragment`${alias}.type like 'pulumi:providers:%'`;

export type SearchRepository = ReturnType<typeof createSearchRepository>;

/** Call within a transaction: see `begin`. */
export function createSearchRepository(tx: Queryable) {
  return {
    /** Limits each statement of the transaction, and makes Postgres use indexes only: it cannot estimate the selectivity of texts. */
    begin: async (timeoutMs: number): Promise<void> => {
      await tx.query(sql.nothing`
        /* search.begin */
        select set_config('statement_timeout', ${String(timeoutMs)}, true), set_config('enable_seqscan', 'off', true),
          set_config('jit', 'off', true)`);
    },

    /** Resources with these whole words, from the statistics of Postgres alone. */
    estimate: async (words: readonly string[]): Promise<number> => {
      const query = words.map((word) => `'${word}'`).join(' & ');
      const row = await tx.one(sql.rows(EstimateRow)`
        explain (format json) /* search.estimate */
        select 1 from stack_resources r where resource_words(r.type, r.name) @@ ${query}::tsquery`);
      return row['QUERY PLAN'][0]?.Plan['Plan Rows'] ?? 0;
    },

    /** Ignores permissions and organizations. `many`: more than `limit` resources match. `slow`: the probe would take longer than `ms`. */
    probe: async (
      condition: ResourceCondition,
      { limit, ms }: { readonly limit: number; readonly ms: number },
    ): Promise<readonly string[] | 'many' | 'slow'> => {
      try {
        return await tx.transaction(async (nested) => {
          const { before } = await nested.one(sql.rows(TimeoutRow)`
            /* search.limitProbe */
            select current_setting('statement_timeout') as before, set_config('statement_timeout', ${String(ms)}, true)`);
          const row = await nested.one(sql.rows(IdsRow)`
            /* search.probe */
            select coalesce(array_agg(distinct stack_id::text), '{}') as ids, count(*)::integer as rows,
              set_config('statement_timeout', ${before}, true)
            from (select r.stack_id from stack_resources r where ${resourceSql({ condition, isNegated: false })} limit ${limit + 1}) r`);
          return row.rows > limit ? 'many' : row.ids;
        });
      } catch (error) {
        if (isStatementTimeout(error)) return 'slow';
        throw error;
      }
    },

    /** Readable and indexed stacks, sorted by name. */
    listStacks: ({
      after,
      limit,
      organization: { facts, id, name },
      terms,
      within,
    }: {
      readonly organization: SearchedOrganization;
      readonly terms: readonly StackTerm[];
      /** Only these stacks; null: all. */
      readonly within: readonly string[] | null;
      /** `isFrom`: including that stack. */
      readonly after: { readonly project: string; readonly stack: string; readonly isFrom: boolean } | null;
      readonly limit: number;
    }) =>
      tx.any(sql.rows(StackRow)`
        /* search.listStacks */
        select l.stack_id as id, l.project_name as project, l.stack_name as stack, i.resource_count as resources
        from ${
          within === null
            ? sql.fragment`stack_listings l join state_indexes i on i.stack_id = l.stack_id where l.tag_name = ''`
            : sql.fragment`stack_changes l join state_indexes i on i.stack_id = l.stack_id
                where l.stack_id = any (${sql.array([...within], 'uuid')})`
        }
          and l.organization_id = ${id} and i.resource_count > 0
          and ${
            after === null
              ? sql.fragment`true`
              : after.isFrom
                ? sql.fragment`(l.project_name, l.stack_name) >= (${after.project}, ${after.stack})`
                : sql.fragment`(l.project_name, l.stack_name) > (${after.project}, ${after.stack})`
          }
          and ${all(terms.map((term) => stackSql(term, name)))}
          and ${
            facts === null
              ? sql.fragment`true`
              : sql.fragment`effective_permissions(${facts}::jsonb, ${id}::uuid, l.project_name, l.stack_name) & 1 = 1`
          }
        order by l.project_name, l.stack_name limit ${limit}`),

    /** The caller may not read some stacks. Independent of the query, which would otherwise reveal hidden matches. */
    isTrimmed: async ({ facts, id }: SearchedOrganization): Promise<boolean> => {
      if (facts === null) return false;
      const row = await tx.one(sql.rows(HiddenRow)`
        /* search.isTrimmed */
        select count(*) > ${checkedStacks} or coalesce(bool_or(
          effective_permissions(${facts}::jsonb, ${id}::uuid, l.project_name, l.stack_name) & 1 = 0), false) as "isTrimmed"
        from (
          select project_name, stack_name from stack_listings where organization_id = ${id} and tag_name = ''
          order by project_name, stack_name limit ${checkedStacks + 1}) l`);
      return row.isTrimmed;
    },

    /** Returns each version once. */
    listProviders: (stackIds: readonly string[]) =>
      tx.any(sql.rows(ProviderRow)`
        /* search.listProviders */
        select distinct r.stack_id as "stackId", r.type, r.provider_version as version from stack_resources r
        where r.stack_id = any (${ids(stackIds)}) and ${isProvider(sql.fragment`r`)}`),

    /** Resources in the order of the stacks, and within each in the order of type and name. `after`: a position in the first stack. */
    list: (
      stackIds: readonly string[],
      terms: readonly ResourceTerm[],
      after: { readonly place: string; readonly key: string } | null,
      limit: number,
    ) =>
      tx.any(sql.rows(FoundRow)`
        /* search.list */
        select f.at, f.key, f.place, f.urn, f.type, f.name, parent.urn as parent, provider.urn as "providerUrn", provider.type as provider,
          coalesce(provider.provider_version, f.provider_version) as "providerVersion", f.is_protected as protect, f.is_custom as "isCustom",
          f.is_external as "isExternal", f.is_deleted as "isDeleted", changed.version as "changedIn", changed.at as "changedAt"
        from (
          select o.at::integer as at, r.* from unnest(${ids(stackIds)}) with ordinality as o (id, at)
          cross join lateral (
            select r.* from stack_resources r
            where r.stack_id = o.id
              and ${after === null ? sql.fragment`true` : sql.fragment`(o.at > 1 or (r.place, r.key) > (${after.place}, ${after.key}))`}
              and ${all(terms.map(resourceSql))}
            order by r.place, r.key limit ${limit}
          ) r
          order by o.at, r.place, r.key limit ${limit}
        ) f
        left join stack_resources parent on parent.stack_id = f.stack_id and parent.key = f.parent
        left join stack_resources provider on provider.stack_id = f.stack_id and provider.key = f.provider
        left join lateral (
          select c.version, coalesce(u.ended_at, u.created_at) as at
          from resource_changes c join updates u on u.stack_id = c.stack_id and u.stack_version = c.version
          where c.stack_id = f.stack_id and c.key = f.key order by c.version desc limit 1
        ) changed on true
        order by f.at, f.place, f.key`),

    /** Counts resources. `stack`: by its id. */
    count: (stackIds: readonly string[], terms: readonly ResourceTerm[], by: GroupField) =>
      tx.any(sql.rows(CountRow)`
        /* search.count */
        select ${
          by === 'type'
            ? sql.fragment`r.type as name, null as version`
            : by === 'stack'
              ? sql.fragment`r.stack_id::text as name, null as version`
              : sql.fragment`coalesce(p.type, '') as name, p.provider_version as version`
        }, count(*)::integer as resources, count(distinct r.stack_id)::integer as stacks
        from stack_resources r ${
          by === 'provider'
            ? sql.fragment`left join stack_resources p on p.stack_id = r.stack_id and p.key = r.provider`
            : sql.fragment``
        }
        where r.stack_id = any (${ids(stackIds)}) and ${all(terms.map(resourceSql))}
        group by 1, 2`),

    /** Versions with the numbers of stacks and of resources. */
    countProviders: (stackIds: readonly string[]) =>
      tx.any(sql.rows(CountRow)`
        /* search.countProviders */
        select r.type as name, r.provider_version as version, count(distinct r.stack_id)::integer as stacks, sum(n.count)::integer as resources
        from stack_resources r cross join lateral (
          select count(*) as count from stack_resources u where u.stack_id = r.stack_id and u.provider = r.key
        ) n
        where r.stack_id = any (${ids(stackIds)}) and ${isProvider(sql.fragment`r`)}
        group by 1, 2`),
  };
}

function ids(stackIds: readonly string[]) {
  return sql.array([...stackIds], 'uuid');
}
