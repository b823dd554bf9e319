import { createSignInLinkRepository } from '../../../shared/identity/sign-in-link-repository.ts';
import type { Database } from '../../../shared/platform/db/database.ts';
import { UnauthenticatedError } from '../../../shared/platform/errors/errors.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { RefusalLog } from './refusal-log.ts';
import type { BegunSession, SessionService, Visit } from './session-service.ts';

export class SignInLinkService {
  readonly #db: Database;
  readonly #sessions: SessionService;
  readonly #refusals: RefusalLog;

  constructor(db: Database, sessions: SessionService, refusals: RefusalLog) {
    this.#db = db;
    this.#sessions = sessions;
    this.#refusals = refusals;
  }

  /** Throws UnauthenticatedError. */
  async signIn(secret: string, visit: Visit, audit: AuditTrail): Promise<BegunSession> {
    const begun = await this.#db.inTransaction(async (tx) => {
      const user = await createSignInLinkRepository(tx).take(secret);
      return user && this.#sessions.begin(tx, { ...user, method: 'link' }, visit, audit);
    });
    if (begun) return begun;
    await this.#refusals.note({ method: 'link', login: null }, audit);
    throw new UnauthenticatedError('This link has been used or has expired. Ask an operator for another one.');
  }
}
