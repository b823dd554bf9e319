import type { Queryable } from '../../platform/db/sql.ts';
import { isInForce } from './freeze.ts';
import { createUpdateRuleRepository } from './update-rule-repository.ts';

/** Ids of the freezes of organizations that are in force now, by the database's clock. */
export async function listFreezesInForce(db: Queryable, organizationIds: readonly string[]): Promise<string[]> {
  const freezes = await createUpdateRuleRepository(db).listFreezes(organizationIds);
  return freezes.filter(({ now, settings }) => isInForce(settings, now)).map(({ id }) => id);
}
