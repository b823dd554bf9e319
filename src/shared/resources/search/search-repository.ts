import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Nullable, Timestamp } from '../../platform/schema/standard-schema.ts';
import { likePattern } from '../../stacks/name-pattern.ts';
import { resourceKey } from '../resource-key.ts';
import type { Condition, FlagField, Term } from './search-query.ts';

const Text = Nullable(Type.String());

const StackRow = Type.Object({
  id: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  resources: Type.Integer(),
});
export type SearchedStack = Row<typeof StackRow>;

const FoundRow = Type.Object({
  /** Position of its stack among those that were searched, from 1. */
  at: Type.Integer(),
  key: Type.String(),
  place: Type.String(),
  urn: Type.String(),
  type: Type.String(),
  name: Type.String(),
  parent: Text,
  /** URN and type of its provider. */
  providerUrn: Text,
  provider: Text,
  providerVersion: Text,
  protect: Type.Boolean(),
  isCustom: Type.Boolean(),
  isExternal: Type.Boolean(),
  isDeleted: Type.Boolean(),
  /** The last version that changed it, and its end; null if that is not known. */
  changedIn: Nullable(Type.Integer()),
  changedAt: Nullable(Timestamp),
});
export type FoundResource = Row<typeof FoundRow>;

const CountRow = Type.Object({ name: Type.String(), version: Text, resources: Type.Integer(), stacks: Type.Integer() });
const IdsRow = Type.Object({ ids: Type.Array(Type.String()), rows: Type.Integer() });
const ProviderRow = Type.Object({ stackId: Type.String(), type: Type.String(), version: Text });
const HiddenRow = Type.Object({ isTrimmed: Type.Boolean() });

export type StackCondition = Extract<Condition, { kind: 'stack' | 'tag' | 'changed' }>;
export type ResourceCondition = Exclude<Condition, { kind: 'stack' | 'tag' }>;

/** A term about stacks. */
export type StackTerm = Pick<Term, 'isNegated'> & { readonly condition: StackCondition };

/** A term about resources. */
export type ResourceTerm = Pick<Term, 'isNegated'> & {
  readonly condition: ResourceCondition;
  /** Of a term about versions of providers: those in its range, among the stacks that are searched. */
  readonly versions?: readonly string[];
};

/** An organization and what decides which of its stacks are found, as JSON; null: all are. */
export interface SearchedOrganization {
  readonly id: string;
  readonly name: string;
  readonly facts: string | null;
}

export type GroupField = 'type' | 'stack' | 'provider';

/** Beginnings of texts that are in indexes, in characters. */
const indexedChars = 200;
const checkedStacks = 1_000;
const providerPrefix = 'pulumi:providers:';
/** As the index of providers has it. */
const isProvider = (alias: ReturnType<typeof sql.fragment>) => sql.fragment`${alias}.type like 'pulumi:providers:%'`;
const no = sql.fragment`false`;

export type SearchRepository = ReturnType<typeof createSearchRepository>;

/** Searches the index of states. A transaction: see `begin`. */
export function createSearchRepository(tx: Queryable) {
  return {
    /** Limits each statement of the transaction, and lets Postgres use indexes only: it does not know how selective texts are. */
    begin: async (timeoutMs: number): Promise<void> => {
      await tx.query(sql.nothing`
        /* search.begin */
        select set_config('statement_timeout', ${String(timeoutMs)}, true), set_config('enable_seqscan', 'off', true),
          set_config('jit', 'off', true)`);
    },

    /** Stacks that have a resource for which the condition holds, whoever may read them; null if more than `limit` resources are found. */
    probe: async (condition: ResourceCondition, limit: number): Promise<string[] | null> => {
      const row = await tx.one(sql.rows(IdsRow)`
        /* search.probe */
        select coalesce(array_agg(distinct stack_id::text), '{}') as ids, count(*)::integer as rows
        from (select r.stack_id from stack_resources r where ${resourceSql({ condition, isNegated: false })} limit ${limit + 1}) r`);
      return row.rows > limit ? null : row.ids;
    },

    /** A page of the stacks of an organization that may be read and have an index, in the order of their names. */
    listStacks: ({
      after,
      limit,
      organization: { facts, id, name },
      terms,
      within,
    }: {
      readonly organization: SearchedOrganization;
      readonly terms: readonly StackTerm[];
      /** Only these; null: all. */
      readonly within: readonly string[] | null;
      /** `isFrom`: that one, too. */
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

    /** Whether stacks of the organization may be hidden from the caller. Does not depend on a query, whose matches it would tell. */
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

    /** The providers of these stacks, each version once. */
    listProviders: (stackIds: readonly string[]) =>
      tx.any(sql.rows(ProviderRow)`
        /* search.listProviders */
        select distinct r.stack_id as "stackId", r.type, r.provider_version as version from stack_resources r
        where r.stack_id = any (${ids(stackIds)}) and ${isProvider(sql.fragment`r`)}`),

    /** Resources of these stacks, in their order, and within each in the order of type and name. `after`: a place in the first stack. */
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

    /** How many resources of these stacks there are, by the given field. `stack`: by its id. */
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

    /** Versions of providers in these stacks: in how many stacks, and of how many resources. */
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

function all(conditions: readonly ReturnType<typeof sql.fragment>[]) {
  return conditions.length === 0 ? sql.fragment`true` : sql.join([...conditions], sql.fragment` and `);
}

function stackSql({ condition, isNegated }: StackTerm, organization: string) {
  const holds = stackHoldsSql(condition, organization);
  return isNegated ? sql.fragment`not (${holds})` : sql.fragment`(${holds})`;
}

/** The condition on a stack `l`. */
function stackHoldsSql(condition: StackCondition, organization: string) {
  switch (condition.kind) {
    case 'tag': {
      const { name, value } = condition;
      return sql.fragment`exists (
        select 1 from stack_listings g
        where g.organization_id = l.organization_id and g.tag_name = ${name} and g.tag_name <> ''
          and g.project_name = l.project_name and g.stack_name = l.stack_name
          and ${value === null ? sql.fragment`true` : matches(sql.fragment`g.tag_value`, value)})`;
    }
    case 'changed':
      // The stack was changed when the update that has changed a resource ended, or later; within a minute by its clock.
      return sql.fragment`exists (
        select 1 from stack_changes h
        where h.stack_id = l.stack_id and h.changed_at >= clock_timestamp() - make_interval(secs => ${condition.seconds + 60}))`;
    case 'stack':
      return all([
        ...(condition.organization === '*'
          ? []
          : [matches(sql.fragment`${organization}::text`, condition.organization)]),
        ...(condition.project === '*' ? [] : [matches(sql.fragment`l.project_name`, condition.project)]),
        ...(condition.stack === '*' ? [] : [matches(sql.fragment`l.stack_name`, condition.stack)]),
      ]);
  }
}

/** The condition of a term on a resource `r`. */
function resourceSql({ isNegated, ...term }: ResourceTerm) {
  const holds = holdsSql(term);
  return isNegated ? sql.fragment`not coalesce(${holds}, false)` : sql.fragment`(${holds})`;
}

function holdsSql({ condition, versions = [] }: Omit<ResourceTerm, 'isNegated'>) {
  switch (condition.kind) {
    case 'words': {
      // Words have no character that means something here.
      const query = condition.words
        .map((word, at) => `'${word}'${at === condition.words.length - 1 ? ':*' : ''}`)
        .join(' & ');
      // Cheap, and true where the words are found.
      const parts = condition.words.map(
        (word) => sql.fragment`strpos(lower((r.type || ' ' || r.name) collate "C"), ${word}) > 0`,
      );
      return sql.fragment`${all(parts)} and resource_words(r.type, r.name) @@ ${query}::tsquery`;
    }
    case 'flag':
      return sql.fragment`${flagSql(condition.field)} = ${condition.value}`;
    case 'version':
      return condition.range === null
        ? sql.fragment`(r.provider_version is not null or ${ofProvider(sql.fragment`p.provider_version is not null`)})`
        : versions.length === 0
          ? no
          : sql.fragment`(r.provider_version = any (${sql.array([...versions], 'text')})
              or ${ofProvider(sql.fragment`p.provider_version = any (${sql.array([...versions], 'text')})`)})`;
    case 'changed':
      return changedSql(condition);
    case 'text':
      return textSql(condition);
  }
}

function flagSql(field: FlagField) {
  return {
    protect: sql.fragment`r.is_protected`,
    custom: sql.fragment`r.is_custom`,
    external: sql.fragment`r.is_external`,
    deleted: sql.fragment`r.is_deleted`,
  }[field];
}

function textSql({ field, pattern }: Extract<Condition, { kind: 'text' }>) {
  switch (field) {
    case 'type':
      return matchesIndexed(sql.fragment`r.type`, pattern);
    case 'name':
      return matchesIndexed(sql.fragment`r.name`, pattern);
    case 'urn':
      // Its name is in an index.
      return pattern.includes('*') || !pattern.includes('::')
        ? matches(sql.fragment`r.urn`, pattern)
        : sql.fragment`r.urn = ${pattern} and ${matchesIndexed(sql.fragment`r.name`, pattern.slice(pattern.lastIndexOf('::') + 2))}`;
    case 'parent':
      return pattern.startsWith('urn:') && !pattern.includes('*')
        ? sql.fragment`r.parent = ${resourceKey(pattern)}`
        : sql.fragment`exists (
            select 1 from stack_resources p where p.stack_id = r.stack_id and p.key = r.parent
              and (${matches(sql.fragment`p.name`, pattern)} or ${matches(sql.fragment`p.type`, pattern)} or ${matches(sql.fragment`p.urn`, pattern)}))`;
    case 'provider': {
      const type = pattern.startsWith(providerPrefix) ? pattern : `${providerPrefix}${pattern}`;
      return sql.fragment`(${matches(sql.fragment`r.type`, type)} or ${ofProvider(matches(sql.fragment`p.type`, type))})`;
    }
  }
}

/** Whether the provider `p` of the resource is so. */
function ofProvider(condition: ReturnType<typeof sql.fragment>) {
  return sql.fragment`exists (select 1 from stack_resources p where p.stack_id = r.stack_id and p.key = r.provider and ${condition})`;
}

/** What is not known to have changed has not changed since the version from which on changes are known. */
function changedSql({ isOlder, seconds }: Extract<Condition, { kind: 'changed' }>) {
  const changedAt = sql.fragment`(
    select coalesce(u.ended_at, u.created_at) from resource_changes c join updates u on u.stack_id = c.stack_id and u.stack_version = c.version
    where c.stack_id = r.stack_id and c.key = r.key order by c.version desc limit 1)`;
  const limit = sql.fragment`clock_timestamp() - make_interval(secs => ${seconds})`;
  if (!isOlder) return sql.fragment`${changedAt} >= ${limit}`;
  return sql.fragment`coalesce(${changedAt}, (
    select coalesce(u.ended_at, u.created_at) from state_indexes i join updates u on u.stack_id = i.stack_id and u.stack_version = i.known_from
    where i.stack_id = r.stack_id)) < ${limit}`;
}

/** Whether a text has a pattern, in which `*` stands for any characters. */
function matches(text: ReturnType<typeof sql.fragment>, pattern: string) {
  return pattern.includes('*')
    ? sql.fragment`${text} like ${likePattern(pattern)}`
    : sql.fragment`${text} = ${pattern}`;
}

/** The same of a text whose beginning is in an index. */
function matchesIndexed(text: ReturnType<typeof sql.fragment>, pattern: string) {
  const star = pattern.indexOf('*');
  const begin = [...(star < 0 ? pattern : pattern.slice(0, star))].slice(0, indexedChars).join('');
  const column = sql.fragment`left(${text}, 200)`;
  if (star < 0) return sql.fragment`${column} = ${begin} and ${text} = ${pattern}`;
  if (begin === '') return matches(text, pattern);
  return sql.fragment`${column} like ${`${likePattern(begin)}%`} and ${matches(text, pattern)}`;
}
