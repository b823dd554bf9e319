import { createIdentityRepository, type RequestedTarget } from '../../../shared/identity/identity-repository.ts';
import {
  createSessionRepository,
  type ListedSessionRow,
  type SessionLimits,
} from '../../../shared/identity/session-repository.ts';
import type { SignInMethod } from '../../../shared/identity/sign-in-method.ts';
import { hashToken, mintToken } from '../../../shared/platform/crypto/secret-token.ts';
import type { Database } from '../../../shared/platform/db/database.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { NotFoundError, UnauthenticatedError } from '../../../shared/platform/errors/errors.ts';
import type { ReadOnlyMode } from '../../../shared/platform/read-only/read-only-mode.ts';
import { isUuid } from '../../../shared/platform/schema/uuid.ts';
import type { EncryptedSecrets } from '../../../shared/secrets/encrypted-secrets.ts';
import { recordOfPerson } from '../../audit/personal-events.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { Caller, Session } from '../../platform/http/request.ts';
import { KnownBrowsers } from './known-browsers.ts';

export type { ListedSessionRow };

export interface Visit {
  readonly address: string;
  readonly userAgent: string;
  /** The browser's session cookie, which the sign-in replaces. */
  readonly cookie: string | null;
  /** The cookie that identifies the browser. */
  readonly marks: string | null;
}

/** Values of the cookies after a sign-in. */
export interface BegunSession {
  readonly session: string;
  readonly browser: string;
}

export interface SignedIn {
  readonly userId: string;
  readonly login: string;
  readonly method: SignInMethod;
}

const maxUserAgentChars = 256;
const tokenPattern = /^hfs-[0-9A-Za-z]{49}$/;

/** The database stores the hash of the cookie's value. */
export class SessionService {
  readonly #db: Database;
  readonly #limits: SessionLimits;
  readonly #readOnly: ReadOnlyMode;
  readonly browsers: KnownBrowsers;

  constructor(parts: {
    readonly config: { readonly sessions: SessionLimits };
    readonly db: Database;
    readonly readOnly: ReadOnlyMode;
    readonly secrets: EncryptedSecrets;
  }) {
    this.browsers = new KnownBrowsers(parts.secrets);
    this.#db = parts.db;
    this.#limits = parts.config.sessions;
    this.#readOnly = parts.readOnly;
  }

  async find(cookie: string | null): Promise<Session | null> {
    if (cookie === null || !tokenPattern.test(cookie)) return null;
    const sessions = this.#sessions(this.#db);
    const session = await sessions.find(hashToken(cookie));
    if (session?.isStale && !this.#readOnly.isFenced) await sessions.touch(session.id);
    return session;
  }

  /** Throws UnauthenticatedError. Does not count as a use of the session. */
  async confirm(cookie: string | null): Promise<void> {
    if (cookie === null || !(await this.#sessions(this.#db).find(hashToken(cookie))))
      throw new UnauthenticatedError('Your session has ended; sign in again');
  }

  /** Finds the caller in the same way as for a token. Throws UnauthenticatedError if the session has ended. */
  async getCaller({ id }: Session, target: RequestedTarget): Promise<Caller> {
    const identity = createIdentityRepository(this.#db);
    const found = await identity.findSessionCaller(id, target);
    if (found) return found;
    await this.#sessions(this.#db).ensureToken(id);
    const caller = await identity.findSessionCaller(id, target);
    if (!caller) throw new UnauthenticatedError('Your session has ended; sign in again');
    return caller;
  }

  /**
   * Call in the transaction that verified the credential. Ends the browser's previous session; the value of the cookie is always new.
   * Throws UnauthenticatedError if the user was deactivated meanwhile.
   */
  async begin(tx: Queryable, user: SignedIn, visit: Visit, audit: AuditTrail): Promise<BegunSession> {
    const { token, hash } = mintToken('hfs-');
    const sessions = this.#sessions(tx);
    const { login, method, userId } = user;
    const userAgent = visit.userAgent.slice(0, maxUserAgentChars).toWellFormed().replaceAll('\0', '');
    const id = await sessions.insert({ userId, hash, method, userAgent, address: visit.address });
    if (id === null) throw new UnauthenticatedError('This user was deactivated');
    if (visit.cookie !== null && tokenPattern.test(visit.cookie)) {
      const before = await sessions.find(hashToken(visit.cookie));
      if (before) await sessions.remove(before.userId, before.id);
    }
    audit.identify({ userId, login, signIn: method });
    await recordOfPerson(tx, audit, { login, object: login, details: { method, session: id } });
    return { session: token, browser: await this.browsers.remember(tx, login, visit.marks) };
  }

  list({ userId }: Session): Promise<readonly ListedSessionRow[]> {
    return this.#sessions(this.#db).list(userId);
  }

  async end(session: Session, id: string, audit: AuditTrail): Promise<void> {
    const { login, userId } = session;
    await this.#db.inTransaction(async (tx) => {
      if (!isUuid(id) || !(await this.#sessions(tx).remove(userId, id)))
        throw new NotFoundError('This session has already ended');
      await recordOfPerson(tx, audit, { login, object: login, details: { session: id } });
    });
  }

  async endAll({ login, userId }: Session, audit: AuditTrail): Promise<void> {
    await this.#db.inTransaction(async (tx) => {
      const ended = await this.#sessions(tx).removeAll(userId);
      await recordOfPerson(tx, audit, { login, object: login, details: { all: true, ended } });
    });
  }

  async endOthers(session: Session, audit: AuditTrail): Promise<void> {
    const { login } = session;
    await this.#db.inTransaction(async (tx) => {
      await this.hold(tx, session);
      const ended = await this.removeOthers(tx, session);
      await recordOfPerson(tx, audit, { login, object: login, details: { others: true, ended } });
    });
  }

  /** Ends the user's other sessions, and removes all links that could begin one. Returns the number of ended sessions. */
  removeOthers(tx: Queryable, { id, userId }: Session): Promise<number> {
    return this.#sessions(tx).removeOthers(userId, id);
  }

  /** Locks the session until the end of the transaction. Throws UnauthenticatedError. */
  async hold(tx: Queryable, { id }: Session): Promise<void> {
    if (!(await this.#sessions(tx).hold(id))) throw new UnauthenticatedError('Your session has ended; sign in again');
  }

  #sessions(db: Queryable) {
    return createSessionRepository(db, this.#limits);
  }
}
