import { sql } from '../../shared/platform/db/sql.ts';
import { resourceKey } from '../../shared/search/resource-key.ts';
import { likePattern } from '../../shared/stacks/name-pattern.ts';
import type { Condition, FlagField, Term } from './search-query.ts';

export type StackCondition = Extract<Condition, { kind: 'stack' | 'tag' | 'changed' }>;
export type ResourceCondition = Exclude<Condition, { kind: 'stack' | 'tag' }>;

export type StackTerm = Pick<Term, 'isNegated'> & { readonly condition: StackCondition };

export type ResourceTerm = Pick<Term, 'isNegated'> & {
  readonly condition: ResourceCondition;
  /** The versions in the term's range, among the searched stacks. */
  readonly versions?: readonly string[];
};

/** Indexes contain only the beginning of a text. */
const indexedChars = 200;
const providerPrefix = 'pulumi:providers:';
const no = sql.fragment`false`;

export function all(conditions: readonly ReturnType<typeof sql.fragment>[]) {
  return conditions.length === 0 ? sql.fragment`true` : sql.join([...conditions], sql.fragment` and `);
}

/** A condition on a stack `l` of the organization. */
export function stackSql({ condition, isNegated }: StackTerm, organization: string) {
  const holds = stackHoldsSql(condition, organization);
  return isNegated ? sql.fragment`not (${holds})` : sql.fragment`(${holds})`;
}

/** A condition on a stack `l`. */
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
      // A stack's last change is the end of the update that changed a resource, or later, within a minute by its clock.
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

/** A condition on a resource `r`. */
export function resourceSql({ isNegated, ...term }: ResourceTerm) {
  const holds = holdsSql(term);
  return isNegated ? sql.fragment`not coalesce(${holds}, false)` : sql.fragment`(${holds})`;
}

function holdsSql({ condition, versions = [] }: Omit<ResourceTerm, 'isNegated'>) {
  switch (condition.kind) {
    case 'words': {
      // Words contain no special characters of the pattern.
      const query = condition.words
        .map((word, at) => `'${word}'${at === condition.words.length - 1 ? ':*' : ''}`)
        .join(' & ');
      // A cheap condition that holds wherever the words match.
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
      // The name of the parent is in an index.
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

/** A condition on the provider `p` of the resource. */
function ofProvider(condition: ReturnType<typeof sql.fragment>) {
  return sql.fragment`exists (select 1 from stack_resources p where p.stack_id = r.stack_id and p.key = r.provider and ${condition})`;
}

/** A resource without known changes has not changed since the first version with known changes. */
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

/** `*` stands for any characters. */
function matches(text: ReturnType<typeof sql.fragment>, pattern: string) {
  return pattern.includes('*')
    ? sql.fragment`${text} like ${likePattern(pattern)}`
    : sql.fragment`${text} = ${pattern}`;
}

/** Like `matches`, for a text whose beginning is in an index. */
function matchesIndexed(text: ReturnType<typeof sql.fragment>, pattern: string) {
  const star = pattern.indexOf('*');
  const begin = [...(star < 0 ? pattern : pattern.slice(0, star))].slice(0, indexedChars).join('');
  const column = sql.fragment`left(${text}, 200)`;
  if (star < 0) return sql.fragment`${column} = ${begin} and ${text} = ${pattern}`;
  if (begin === '') return matches(text, pattern);
  return sql.fragment`${column} like ${`${likePattern(begin)}%`} and ${matches(text, pattern)}`;
}
