import { createSignInLinkRepository } from '../../../shared/identity/sign-in-link-repository.ts';
import type { Database } from '../../../shared/platform/db/database.ts';
import { UnauthenticatedError } from '../../../shared/platform/errors/errors.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { BegunSession, SessionService, Visit } from './session-service.ts';

/** Signing in with a link that works once. */
export class SignInLinkService {
  readonly #db: Database;
  readonly #sessions: SessionService;

  constructor(db: Database, sessions: SessionService) {
    this.#db = db;
    this.#sessions = sessions;
  }

  /** Returns the values of the new session's cookies. Throws UnauthenticatedError if the link does not work, or no longer. */
  signIn(secret: string, visit: Visit, audit: AuditTrail): Promise<BegunSession> {
    return this.#db.inTransaction(async (tx) => {
      const user = await createSignInLinkRepository(tx).take(secret);
      if (!user)
        throw new UnauthenticatedError('This link has been used or has expired. Ask an operator for another one.');
      return this.#sessions.begin(tx, { ...user, method: 'link' }, visit, audit);
    });
  }
}
