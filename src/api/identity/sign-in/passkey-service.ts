import { isIP } from 'node:net';
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { AttemptLimiter } from '../../../shared/identity/attempt-limiter.ts';
import {
  createPasskeyRepository,
  type ListedPasskeyRow,
  type PasskeyRow,
} from '../../../shared/identity/passkey-repository.ts';
import { createProviderRepository } from '../../../shared/identity/provider-repository.ts';
import type { Config } from '../../../shared/platform/config/config.ts';
import { hashToken, mintToken } from '../../../shared/platform/crypto/secret-token.ts';
import type { Database } from '../../../shared/platform/db/database.ts';
import {
  ConflictError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
  UnauthenticatedError,
} from '../../../shared/platform/errors/errors.ts';
import { recordOfPerson } from '../../audit/personal-events.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { Session } from '../../platform/http/request.ts';
import { addressGroup } from '../../platform/server/client-address.ts';
import type { RefusalLog } from './refusal-log.ts';
import type { BegunSession, SessionService, Visit } from './session-service.ts';

export type { ListedPasskeyRow };

/** How long a person may take to confirm. */
export const passkeySeconds = 300;
/** An older session cannot add a passkey: an unattended browser must not give permanent access. */
const freshSeconds = 15 * 60;
const maxPasskeys = 20;
const beginnings = { name: 'passkey', attempts: 300, perSeconds: 900, blockSeconds: 60 };
const refusal = 'The passkey was not accepted';

/** The cookie identifies the response. */
export interface PasskeyQuestion {
  readonly options: object;
  readonly cookie: string;
}

/** WebAuthn: a PIN, a finger or a face unlocks the authenticator. */
export class PasskeyService {
  readonly #db: Database;
  readonly #sessions: SessionService;
  readonly #refusals: RefusalLog;
  readonly #limiter: AttemptLimiter;
  readonly #origin: string;
  readonly #rpId: string;
  /** False if the public URL is an IP address: browsers have passkeys only for names. */
  readonly isAvailable: boolean;

  constructor(
    { config, db }: { readonly config: Config; readonly db: Database },
    sessions: SessionService,
    refusals: RefusalLog,
  ) {
    const { hostname, origin } = new URL(config.publicUrl);
    this.#db = db;
    this.#sessions = sessions;
    this.#refusals = refusals;
    this.#limiter = new AttemptLimiter(db, beginnings);
    this.#origin = origin;
    this.#rpId = hostname;
    this.isAvailable = isIP(hostname.replace(/^\[|\]$/g, '')) === 0;
  }

  list({ userId }: Session): Promise<readonly ListedPasskeyRow[]> {
    return createPasskeyRepository(this.#db).list(userId);
  }

  /** Throws ForbiddenError if the person has not signed in recently. */
  async beginAdding(session: Session): Promise<PasskeyQuestion> {
    this.#assertMayAdd(session);
    const present = await this.list(session);
    assertPasskeyLimit(present);
    const { generateRegistrationOptions } = await webauthn();
    const options = await generateRegistrationOptions({
      rpName: 'Holdfast',
      rpID: this.#rpId,
      userName: session.login,
      userDisplayName: session.displayName || session.login,
      userID: new Uint8Array(userHandle(session.userId)),
      attestationType: 'none',
      excludeCredentials: present.map(({ credentialId }) => ({ id: credentialId })),
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    });
    return { options, cookie: await this.#keep('passkey-add', { challenge: options.challenge, session: session.id }) };
  }

  async add(
    session: Session,
    { flowCookie, name, response }: { flowCookie: string | null; name: string; response: object },
    audit: AuditTrail,
  ): Promise<void> {
    this.#assertMayAdd(session);
    const kept = await this.#take('passkey-add', flowCookie);
    if (kept['session'] !== session.id)
      throw new ForbiddenError('You began adding this passkey in another session; start over');
    const { verifyRegistrationResponse } = await webauthn();
    const verified = await verifyRegistrationResponse({
      response: response as RegistrationResponseJSON,
      expectedChallenge: kept.challenge,
      expectedOrigin: this.#origin,
      expectedRPID: this.#rpId,
      requireUserVerification: true,
    }).catch((cause: unknown) => {
      throw new InvalidRequestError(refusal, { cause });
    });
    if (!verified.verified) throw new InvalidRequestError(refusal);
    const { counter, id, publicKey, transports = [] } = verified.registrationInfo.credential;
    const shown = name.trim().slice(0, 60).toWellFormed().replaceAll('\0', '') || 'passkey';
    await this.#db.inTransaction(async (tx) => {
      await this.#sessions.hold(tx, session);
      const passkeys = createPasskeyRepository(tx);
      // Several additions may have begun before the maximum was reached.
      const present = await passkeys.list(session.userId);
      assertPasskeyLimit(present);
      const added = await passkeys.insert({
        credentialId: id,
        userId: session.userId,
        publicKey: Buffer.from(publicKey),
        counter,
        transports,
        name: shown,
      });
      if (!added) throw new ConflictError('This passkey is already in use');
      // As for the first password: from now on, the user needs no link to sign in.
      if (session.method === 'link' && present.length === 0) await this.#sessions.removeOthers(tx, session);
      await recordOfPerson(tx, audit, { login: session.login, object: session.login, details: { name: shown } });
    });
  }

  async remove(session: Session, credentialId: string, audit: AuditTrail): Promise<void> {
    const { login, userId } = session;
    await this.#db.inTransaction(async (tx) => {
      await this.#sessions.hold(tx, session);
      const isRemoved = await createPasskeyRepository(tx).remove(userId, credentialId.replaceAll('\0', ''));
      if (!isRemoved) throw new NotFoundError('The passkey does not exist');
      await recordOfPerson(tx, audit, { login, object: login, details: { credentialId } });
    });
  }

  async beginSignIn(address: string): Promise<PasskeyQuestion> {
    await this.#limiter.count(addressGroup(address));
    const { generateAuthenticationOptions } = await webauthn();
    const options = await generateAuthenticationOptions({ rpID: this.#rpId, userVerification: 'required' });
    return { options, cookie: await this.#keep('passkey', { challenge: options.challenge }) };
  }

  /** Throws UnauthenticatedError. */
  async signIn(
    { flowCookie, response }: { readonly flowCookie: string | null; readonly response: { readonly id: string } },
    visit: Visit,
    audit: AuditTrail,
  ): Promise<BegunSession> {
    const { challenge } = await this.#take('passkey', flowCookie);
    const found = await createPasskeyRepository(this.#db).find(response.id.replaceAll('\0', ''));
    const isKnown = found?.isActive === true && isHandleOf(found.userId, response);
    const next = isKnown ? await this.#verify(found, response, challenge) : null;
    if (!found || next === null) {
      await this.#refusals.note({ method: 'passkey', login: found?.login ?? null }, audit);
      throw new UnauthenticatedError(refusal);
    }
    return this.#db.inTransaction(async (tx) => {
      if (!(await createPasskeyRepository(tx).use(found, next))) throw new UnauthenticatedError(refusal);
      const user = { userId: found.userId, login: found.login, method: 'passkey' as const };
      return this.#sessions.begin(tx, user, visit, audit);
    });
  }

  /** Returns the new counter; null: the response is not valid. */
  async #verify(
    { counter, credentialId, publicKey }: PasskeyRow,
    response: object,
    challenge: string,
  ): Promise<number | null> {
    const { verifyAuthenticationResponse } = await webauthn();
    const verified = await verifyAuthenticationResponse({
      response: response as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: this.#origin,
      expectedRPID: this.#rpId,
      credential: { id: credentialId, publicKey: new Uint8Array(publicKey), counter },
      requireUserVerification: true,
    }).catch(() => null);
    return verified?.verified ? verified.authenticationInfo.newCounter : null;
  }

  #assertMayAdd({ ageSeconds }: Session): void {
    if (ageSeconds > freshSeconds)
      throw new ForbiddenError('To add a passkey, sign out and in again: you have been signed in for too long');
  }

  async #keep(kind: string, data: object): Promise<string> {
    const { token, hash } = mintToken('hff-');
    await createProviderRepository(this.#db).insertFlow(hash, kind, JSON.stringify(data), passkeySeconds);
    return token;
  }

  async #take(kind: string, cookie: string | null): Promise<{ readonly challenge: string } & Record<string, unknown>> {
    const data = cookie === null ? null : await createProviderRepository(this.#db).takeFlow(hashToken(cookie), kind);
    if (data === null)
      throw new UnauthenticatedError('This was not started in this browser, took too long, or has ended');
    return JSON.parse(data) as { challenge: string };
  }
}

/** Loaded when needed: it takes 5 MB of the heap. */
function webauthn(): Promise<typeof import('@simplewebauthn/server')> {
  return import('@simplewebauthn/server');
}

function assertPasskeyLimit(present: readonly unknown[]): void {
  if (present.length >= maxPasskeys) throw new ConflictError(`You have ${maxPasskeys} passkeys; remove one first`);
}

/** Authenticators know the user by it. */
function userHandle(userId: string): Buffer {
  return Buffer.from(userId.replaceAll('-', ''), 'hex');
}

/** True also if the response names no user. */
function isHandleOf(userId: string, credential: object): boolean {
  const { userHandle: given } = (credential as { response?: { userHandle?: unknown } }).response ?? {};
  if (given === undefined || given === null) return true;
  return typeof given === 'string' && Buffer.from(given, 'base64url').equals(userHandle(userId));
}
