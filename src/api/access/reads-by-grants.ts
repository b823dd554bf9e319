import type { Database } from '../../shared/platform/db/database.ts';
import { type Queryable, sql } from '../../shared/platform/db/sql.ts';
import { isStatementTimeout } from '../../shared/platform/db/sqlstate.ts';
import { AppError } from '../../shared/platform/errors/errors.ts';
import type { ListedOrganization } from '../../shared/stacks/stack-list-repository.ts';
import { FairSemaphore } from '../platform/admission/fair-semaphore.ts';

/** The limits of one process: other calls also need connections to Postgres. */
const limits = { atOnce: 3, atOncePerCaller: 2, waiting: 300, waitingPerCaller: 50 };
const statementMs = 10_000;
const manyGrants = 50;
/** Length in characters of JSON. */
const shortestGrant = 20;
const semaphores = new WeakMap<Database, FairSemaphore>();
const methods = ['any', 'anyFirst', 'exists', 'maybeOne', 'maybeOneFirst', 'one', 'oneFirst'] as const;

/** Too many grants would be compared with too many stacks. */
class ReadTooBroadError extends AppError {
  override readonly name = 'ReadTooBroadError';
  override readonly status = 422;
  override readonly code = 'read-too-broad';
}

/**
 * For statements that compare the caller's grants with all stacks of these organizations, which can take seconds if many grants apply: only
 * a few run at once, few of one organization, and none for long. Returns the pool itself if no organization needs that. Statements throw
 * ReadTooBroadError, UnavailableError.
 */
export function readsByGrants(
  db: Database,
  organizations: readonly Pick<ListedOrganization, 'facts' | 'name'>[],
): Queryable {
  const organization = organizations.find(({ facts }) => hasManyGrants(facts));
  if (organization === undefined) return db;
  const semaphore = semaphores.get(db) ?? new FairSemaphore(limits);
  semaphores.set(db, semaphore);
  const limited: Record<string, unknown> = {};
  for (const name of methods) {
    limited[name] = (...statement: unknown[]) =>
      semaphore.run(organization.name, null, () => runBriefly(db, name, statement));
  }
  return Object.assign(Object.create(db) as Database, limited);
}

function hasManyGrants(facts: string | null): boolean {
  // Few of an organization's grants apply to most callers.
  if (facts === null || facts.length < manyGrants * shortestGrant) return false;
  return ((JSON.parse(facts) as { grants?: readonly unknown[] }).grants?.length ?? 0) > manyGrants;
}

async function runBriefly(
  db: Database,
  name: (typeof methods)[number],
  statement: readonly unknown[],
): Promise<unknown> {
  try {
    return await db.inTransaction(async (tx) => {
      await tx.query(sql.nothing`
        /* readsByGrants.limit */ select set_config('statement_timeout', ${String(statementMs)}, true)`);
      return (tx[name] as (...given: unknown[]) => Promise<unknown>)(...statement);
    });
  } catch (error) {
    if (!isStatementTimeout(error)) throw error;
    throw new ReadTooBroadError(
      'The list takes too long, because many grants apply to you: name a project or a tag, or ask for fewer grants',
      { cause: error },
    );
  }
}
