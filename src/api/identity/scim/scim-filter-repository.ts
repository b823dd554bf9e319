import { sql } from '../../../shared/platform/db/sql.ts';
import { isUuid } from '../../../shared/platform/schema/uuid.ts';
import { ScimError } from './scim-error.ts';
import type { ScimFilter, ScimValue } from './scim-filter.ts';

export type Fragment = ReturnType<typeof sql.fragment>;

/** `text` ignores case, `exact` does not, and `key` is one of these values and only allows `eq`. */
export type FilterColumn =
  | { readonly kind: 'text' | 'exact' | 'boolean'; readonly expression: Fragment }
  | { readonly kind: 'key'; readonly equals: (id: string) => Fragment };
export type FilterColumns = Readonly<Record<string, FilterColumn>>;

type Comparison = Extract<ScimFilter, { kind: 'compare' }>;

/** Names of attributes are in lower case. Throws ScimError. */
export function conditionOf(filter: ScimFilter | null, columns: FilterColumns): Fragment {
  if (filter === null) return sql.fragment`true`;
  if (filter.kind === 'compare') return comparison(filter, columns);
  // A comparison with a missing attribute is false, not unknown.
  if (filter.kind === 'not') return sql.fragment`not coalesce(${conditionOf(filter.term, columns)}, false)`;
  const glue = filter.kind === 'and' ? sql.fragment` and ` : sql.fragment` or `;
  const terms = filter.terms.map((term) => conditionOf(term, columns));
  return sql.fragment`(${sql.join(terms, glue)})`;
}

function comparison({ attribute, operator, value }: Comparison, columns: FilterColumns): Fragment {
  const column = Object.hasOwn(columns, attribute) ? columns[attribute] : undefined;
  if (!column) throw unsupported(`attribute ${JSON.stringify(attribute.slice(0, 60))}`);
  if (column.kind === 'key') {
    if (operator !== 'eq') throw unsupported(`operator ${operator} on ${attribute}`);
    return typeof value === 'string' && isUuid(value) ? column.equals(value) : sql.fragment`false`;
  }
  const { expression, kind } = column;
  if (kind === 'boolean') {
    if (operator === 'pr') return sql.fragment`true`;
    if (operator !== 'eq' && operator !== 'ne') throw unsupported(`operator ${operator} on ${attribute}`);
    return sql.fragment`(${expression} = ${toBoolean(value) === (operator === 'eq')})`;
  }
  if (operator === 'pr') return sql.fragment`(coalesce(${expression}, '') <> '')`;
  if (typeof value !== 'string') throw unsupported(`a value that is not text for ${attribute}`);
  const left = kind === 'exact' ? expression : sql.fragment`lower(${expression})`;
  const right = kind === 'exact' ? sql.fragment`${value}::text` : sql.fragment`lower(${value}::text)`;
  switch (operator) {
    case 'eq':
      return sql.fragment`(${left} = ${right})`;
    case 'ne':
      return sql.fragment`(${left} is distinct from ${right})`;
    case 'co':
      return sql.fragment`(strpos(${left}, ${right}) > 0)`;
    case 'sw':
      return sql.fragment`starts_with(${left}, ${right})`;
    case 'ew':
      return sql.fragment`(right(${left}, length(${right})) = ${right})`;
  }
}

function toBoolean(value: ScimValue): boolean {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'string' && /^(?:true|false)$/i.test(value)) return value.toLowerCase() === 'true';
  throw unsupported('a value that is neither true nor false');
}

function unsupported(what: string): ScimError {
  return new ScimError('invalidFilter', `The filter is not supported: ${what}`);
}
