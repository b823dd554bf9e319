import type { AuditEvent, AuditSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import type { Database } from '../../shared/platform/db/database.ts';

/** The audit log of organizations. */
export class AuditService {
  readonly #db: Database;

  constructor({ db }: { db: Database }) {
    this.#db = db;
  }

  /** Records a call that was refused. */
  async recordRefusal(source: AuditSource, event: AuditEvent): Promise<void> {
    await createAuditRepository(this.#db).insert(source, { ...event, outcome: 'refused' });
  }
}
