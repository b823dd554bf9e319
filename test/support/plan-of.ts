import type pg from 'pg';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import { type ExplainedStatement, explainingPool } from '../../testkit/query-plan.ts';

/** Runs `work` on a repository, without changing anything, and returns the plan of its only statement. */
export async function planOf(
  client: pg.Client,
  work: (db: Queryable) => Promise<unknown>,
): Promise<ExplainedStatement> {
  const { pool, statements } = explainingPool(client);
  await client.query('begin');
  await work(pool as Queryable);
  await client.query('rollback');
  const [statement] = statements;
  if (statement === undefined || statements.length > 1)
    throw new Error(`${statements.length} statements instead of one`);
  return statement;
}
