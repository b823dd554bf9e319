import { createHmac, randomBytes } from 'node:crypto';
import { createAuditRepository } from '../../../shared/audit/audit-repository.ts';
import { createPasswordRepository } from '../../../shared/identity/password-repository.ts';
import { assertPasswordAllowed } from '../../../shared/identity/password-rules.ts';
import { hashPassword, verifyPassword } from '../../../shared/platform/crypto/password-hash.ts';
import type { Database } from '../../../shared/platform/db/database.ts';
import { ForbiddenError, UnauthenticatedError } from '../../../shared/platform/errors/errors.ts';
import { isLogin } from '../../../shared/stacks/names.ts';
import { recordOfPerson } from '../../audit/personal-events.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { Session } from '../../platform/http/request.ts';
import type { BegunSession, SessionService, Visit } from './session-service.ts';
import type { SignInLimits } from './sign-in-limits.ts';

/** The same for an unknown user, a user without a password, and a wrong password. */
const refusal = 'Login or password is wrong';

const never = new AbortController().signal;

export class PasswordService {
  readonly #db: Database;
  readonly #sessions: SessionService;
  readonly #limits: SignInLimits;

  constructor(db: Database, sessions: SessionService, limits: SignInLimits) {
    this.#db = db;
    this.#sessions = sessions;
    this.#limits = limits;
  }

  /**
   * May wait in the queue, unless the browser is known. Ends early when the client is `gone`. Throws UnauthenticatedError,
   * TooManyRequestsError.
   */
  async signIn(
    { gone, login, password }: { readonly login: string; readonly password: string; readonly gone: AbortSignal },
    visit: Visit,
    audit: AuditTrail,
  ): Promise<BegunSession> {
    const browserId = await this.#sessions.browsers.idFor(this.#db, login, visit.marks);
    const attempt = { login, address: visit.address, browserId, gone };
    await this.#limits.count(attempt);
    const found = isLogin(login) ? await createPasswordRepository(this.#db).find(login) : null;
    // Always compares with a hash: the time must not reveal whether the user exists.
    const isRight = await verifyPassword(
      password,
      found?.passwordHash ?? null,
      browserId === null ? 'anybody' : 'known',
    );
    if (!found || !isRight) {
      await this.#recordRefusal(found?.login ?? digestOf(login), audit);
      throw new UnauthenticatedError(refusal);
    }
    const { passwordHash, userId } = found;
    const user = { userId, login: found.login, method: 'password' as const };
    const cookies = await this.#db.inTransaction(async (tx) => {
      if (!(await createPasswordRepository(tx).hold(userId, passwordHash))) throw new UnauthenticatedError(refusal);
      return this.#sessions.begin(tx, user, visit, audit);
    });
    await this.#limits.succeed(attempt);
    return cookies;
  }

  async hasPassword({ login }: Session): Promise<boolean> {
    return (await createPasswordRepository(this.#db).find(login)) !== null;
  }

  /**
   * Ends all sessions of the user, and begins a new one. Throws UnauthenticatedError if the current password is wrong,
   * TooManyRequestsError, and InvalidRequestError.
   */
  async change(
    session: Session,
    passwords: { readonly present: string; readonly next: string },
    visit: Visit,
    audit: AuditTrail,
  ): Promise<BegunSession> {
    const { login, userId } = session;
    // The user is signed in, so attempts from elsewhere do not count for this one.
    const attempt = { login, address: visit.address, browserId: `session ${userId}`, gone: never };
    await this.#limits.count(attempt);
    const found = await createPasswordRepository(this.#db).find(login);
    const isRight = await verifyPassword(passwords.present, found?.passwordHash ?? null, 'known');
    if (!found || !isRight) throw new UnauthenticatedError('The current password is wrong');
    assertPasswordAllowed(login, passwords.next);
    const next = await hashPassword(passwords.next);
    const cookies = await this.#db.inTransaction(async (tx) => {
      await this.#sessions.hold(tx, session);
      if (!(await createPasswordRepository(tx).hold(userId, found.passwordHash)))
        throw new UnauthenticatedError('The current password is wrong');
      await createPasswordRepository(tx).set(userId, next);
      await recordOfPerson(tx, audit, { login, object: login, details: {} });
      // The trigger has ended the previous session of the browser.
      return this.#sessions.begin(tx, { userId, login, method: 'password' }, { ...visit, cookie: null }, audit);
    });
    await this.#limits.succeed(attempt);
    return cookies;
  }

  /**
   * Sets the password of a user who has none, in a session that a sign-in link began. Ends all sessions and links of the user, and begins a
   * new session. Throws ForbiddenError, UnauthenticatedError and InvalidRequestError.
   */
  async setFirst(session: Session, password: string, visit: Visit, audit: AuditTrail): Promise<BegunSession> {
    const { login, method, userId } = session;
    if (method !== 'link') throw new ForbiddenError('The current password is needed');
    assertPasswordAllowed(login, password);
    const hash = await hashPassword(password);
    return this.#db.inTransaction(async (tx) => {
      await this.#sessions.hold(tx, session);
      if (!(await createPasswordRepository(tx).insert(userId, hash)))
        throw new ForbiddenError('You have a password already; the current one is needed');
      await this.#sessions.removeOthers(tx, session);
      await recordOfPerson(tx, audit, { login, object: login, details: {} });
      return this.#sessions.begin(tx, { userId, login, method: 'password' }, visit, audit);
    });
  }

  async #recordRefusal(object: string, { source }: AuditTrail): Promise<void> {
    const event = { action: 'session.begin', organization: null, object, outcome: 'refused' } as const;
    await createAuditRepository(this.#db).insert(source, { ...event, details: { method: 'password' } });
  }
}

/** The key is in no row, so that no dictionary finds a login from its digest. */
const digestKey = randomBytes(32);

/** Replaces an unknown login in the log: the typed text may be a password. The same text has the same digest until the process ends. */
function digestOf(login: string): string {
  return `unknown:${createHmac('sha256', digestKey).update(login).digest('hex').slice(0, 12)}`;
}
