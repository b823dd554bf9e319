import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { operator } from './operator-name.ts';

/** Records a command that changes stored data in the server's audit log. Call before its work if that takes many transactions. */
export async function recordCommand(db: Queryable, command: string): Promise<void> {
  const event = { action: 'installation.repair', organization: null, object: 'installation' } as const;
  await createAuditRepository(db).insert(operatorSource(operator()), { ...event, details: { command } });
}
