import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { TimeSlices } from '../../../shared/platform/slices/slices.ts';
import { isInForce } from '../../../shared/updates/rules/freeze.ts';
import { createUpdateRuleRepository } from '../../../shared/updates/rules/update-rule-repository.ts';

/** A user may belong to any number of organizations. */
const slices = new TimeSlices();

/** The freezes that are in force now, by the database's clock. */
export async function listFreezesInForce(db: Queryable, organizationIds: readonly string[]): Promise<string[]> {
  const freezes = await createUpdateRuleRepository(db).listFreezes(organizationIds);
  const inForce: string[] = [];
  for (const { now, id, settings } of freezes) {
    await slices.pause();
    if (isInForce(settings, now)) inForce.push(id);
  }
  return inForce;
}
