import { AttemptLimiter } from '../../../shared/identity/attempt-limiter.ts';
import { createProviderRepository } from '../../../shared/identity/provider-repository.ts';
import type { Config } from '../../../shared/platform/config/config.ts';
import { hashToken, mintToken } from '../../../shared/platform/crypto/secret-token.ts';
import type { Database } from '../../../shared/platform/db/database.ts';
import { ForbiddenError, NotFoundError, UnauthenticatedError } from '../../../shared/platform/errors/errors.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import { addressGroup } from '../../platform/server/client-address.ts';
import { type Claims, type OidcChecks, OidcClient } from './oidc-client.ts';
import { OidcPeople } from './oidc-people.ts';
import type { RefusalLog } from './refusal-log.ts';
import type { BegunSession, SessionService, Visit } from './session-service.ts';

export const callbackPath = '/sign-in/provider/callback';

const kind = 'provider';
export const flowSeconds = 900;
/** Sign-ins that begin are limited, because each takes a row until it ends. */
const beginnings = { name: 'provider', attempts: 300, perSeconds: 900, blockSeconds: 60 };

interface Flow extends OidcChecks {
  readonly next: string;
}

export class OidcService {
  readonly #db: Database;
  readonly #sessions: SessionService;
  readonly #refusals: RefusalLog;
  readonly #limiter: AttemptLimiter;
  readonly #client: OidcClient | null;
  readonly #people: OidcPeople | null;
  /** Null: there is none. */
  readonly name: string | null;

  /** Throws ConfigError, CertificateFileError. */
  constructor(
    { config, db, logger }: { readonly config: Config; readonly db: Database; readonly logger: Logger },
    sessions: SessionService,
    refusals: RefusalLog,
  ) {
    this.#db = db;
    this.#sessions = sessions;
    this.#refusals = refusals;
    this.#limiter = new AttemptLimiter(db, beginnings);
    const { oidc } = config;
    this.name = oidc?.name ?? null;
    this.#client = oidc && new OidcClient(oidc, new URL(callbackPath, config.publicUrl).href, logger);
    this.#people = oidc && new OidcPeople(oidc, logger);
  }

  /**
   * `cookie` identifies the browser when it comes back. Throws NotFoundError without a provider, UnavailableError, TooManyRequestsError.
   */
  async begin(next: string, address: string): Promise<{ readonly address: string; readonly cookie: string }> {
    if (!this.#client) throw new NotFoundError('This server has no identity provider');
    await this.#limiter.count(addressGroup(address));
    const begun = await this.#client.begin();
    const { token, hash } = mintToken('hff-');
    const flow: Flow = { ...begun.checks, next };
    await createProviderRepository(this.#db).insertFlow(hash, kind, JSON.stringify(flow), flowSeconds);
    return { address: begun.address, cookie: token };
  }

  /** Only the browser that began a sign-in can end it, and only once. Throws UnauthenticatedError, ForbiddenError, UnavailableError. */
  async finish(
    { flowCookie, search }: { readonly flowCookie: string | null; readonly search: string },
    visit: Visit,
    audit: AuditTrail,
  ): Promise<{ readonly cookies: BegunSession; readonly next: string }> {
    const [client, people] = [this.#client, this.#people];
    if (!client || !people) throw new NotFoundError('This server has no identity provider');
    const data =
      flowCookie === null ? null : await createProviderRepository(this.#db).takeFlow(hashToken(flowCookie), kind);
    if (data === null)
      throw new UnauthenticatedError('This sign-in was not started in this browser, took too long, or has ended');
    const flow = JSON.parse(data) as Flow;
    const claims = await client.finish(search, flow);
    try {
      const cookies = await people.admit(this.#db, claims, audit, (tx, user) =>
        this.#sessions.begin(tx, user, visit, audit),
      );
      return { cookies, next: flow.next };
    } catch (error) {
      if (error instanceof ForbiddenError) await this.#noteRefusal(claims, error, audit);
      throw error;
    }
  }

  /** Logs the subject, by which an operator can link the person. */
  async #noteRefusal(
    { iss: issuer, sub: subject }: Claims,
    { message }: ForbiddenError,
    audit: AuditTrail,
  ): Promise<void> {
    // The person learns the reason even if the database no longer answers.
    const found = await createProviderRepository(this.#db)
      .findIdentity(issuer, subject)
      .catch(() => null);
    const details = { issuer, subject, reason: message };
    await this.#refusals.note({ method: 'provider', login: found?.login ?? null, details }, audit);
  }
}
