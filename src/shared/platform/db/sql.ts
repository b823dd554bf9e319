import {
  type CommonQueryMethods,
  createSqlTag,
  type FragmentSqlToken,
  type Interceptor,
  type QueryResultRow,
  SchemaValidationError,
} from 'slonik';
import type { Static, TSchema } from 'typebox';
import { Type } from 'typebox';
import { standard } from '../schema/standard-schema.ts';

/** A pool or a transaction. */
export type Queryable = CommonQueryMethods;
export type SqlFragment = FragmentSqlToken;

export const poolMark = Symbol('pool');

/** In a pool, each statement is its own transaction. */
export function isPool(on: Queryable): boolean {
  return poolMark in on;
}

const tag = createSqlTag();
const nothing = standard(Type.Object({}));

/** `sql.rows(Row)` checks every row against its TypeBox schema; `sql.nothing` is for statements whose rows are not read. */
export const sql = {
  rows: <S extends TSchema>(row: S) => tag.type(standard<S>(row)),
  /** Postgres plans the named statement once per connection. For hot paths. */
  prepared: <S extends TSchema>(name: string, row: S) => tag.prepared(name, standard<S>(row)),
  /** Like `prepared`, but its rows are not read. */
  command: (name: string) => tag.prepared(name, nothing),
  nothing: tag.type(nothing),
  fragment: tag.fragment,
  binary: tag.binary,
  identifier: tag.identifier,
  array: tag.array,
  join: tag.join,
  unnest: tag.unnest,
};

export type Row<S extends TSchema> = Static<S>;

/**
 * For statements that run our functions and triggers: Postgres plans the statements inside them once per connection, instead of anew for
 * the first five calls. A statement must depend on this column before it calls a function. In a transaction, where the setting would
 * outlast the statement, it changes nothing.
 */
export const plannedOnce = (on: Queryable) => sql.fragment`
  planned_once as materialized (
    select set_config(
      'plan_cache_mode', case when ${isPool(on)}::boolean then 'force_generic_plan' else current_setting('plan_cache_mode') end, true
    ) as mode
  )`;

/** slonik leaves this check to an interceptor. */
export function createRowChecker(): Interceptor {
  return {
    name: 'row-checker',
    transformRow: (context, query, row): QueryResultRow => {
      if (!context.resultParser) return row;
      const result = context.resultParser['~standard'].validate(row);
      if (result instanceof Promise) throw new TypeError('Row schemas are synchronous');
      if (result.issues) throw new SchemaValidationError(query, row, result.issues);
      return result.value as QueryResultRow;
    },
  };
}
