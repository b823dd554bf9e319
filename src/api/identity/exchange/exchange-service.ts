import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { type AuditSource, serverSource } from '../../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../../shared/audit/audit-repository.ts';
import { createIdentityRepository } from '../../../shared/identity/identity-repository.ts';
import { createTokenRepository } from '../../../shared/identity/token-repository.ts';
import { createExchangeRepository } from '../../../shared/identity/trust/exchange-repository.ts';
import {
  createIssuerRepository,
  type IssuerRow,
  type PolicyRow,
} from '../../../shared/identity/trust/issuer-repository.ts';
import { decideTrust } from '../../../shared/identity/trust/trust-policy.ts';
import { mintToken } from '../../../shared/platform/crypto/secret-token.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { TooManyRequestsError, UnavailableError } from '../../../shared/platform/errors/errors.ts';
import type { ApiContext } from '../../platform/api-context.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import { addressGroup, clientAddress } from '../../platform/server/client-address.ts';
import type { Authenticator } from '../credentials/authenticator.ts';
import { ExchangeError, refusedGrant } from './exchange-errors.ts';
import type { ExchangeRequest } from './exchange-request.ts';
import { exchangedToken, tokenName } from './exchanged-token.ts';
import { claimedIssuer, type IdToken, keysOf, verifyIdToken } from './id-token.ts';
import { JwksCache } from './jwks-cache.ts';
import { RefusalLimit } from './refusal-limit.ts';

export interface ExchangedToken {
  readonly token: string;
  readonly expiresInSeconds: number;
}

/** Another exchange of the same id token was committed meanwhile. */
class ExchangedMeanwhileError extends Error {
  override readonly name = 'ExchangedMeanwhileError';
}

/**
 * For this time, an id token may be exchanged again if the first token has not been used. The CLI repeats the call if the response was
 * lost: four attempts within 7 s, plus their waiting times.
 */
const repeatSeconds = 60;
const remembered = 10_000;

/** An organization's tokens of CI runs, and how long they count after they have ended, in seconds. */
const maxTokens = 10_000;
const endedSeconds = 3_600;
const retryAfterSeconds = 60;

/** Exchanges id tokens of CI systems for tokens, by the policies of organizations. */
export class ExchangeService {
  readonly #context: ApiContext;
  readonly #credentials: Authenticator;
  readonly #keys: JwksCache;
  /** Issuers by organization and URL: enough to recognize a valid token without a query. */
  readonly #accepted = new LRUCache<string, IssuerRow>({ max: remembered });
  readonly #refusals = new RefusalLimit();

  constructor(context: ApiContext, credentials: Authenticator) {
    this.#context = context;
    this.#credentials = credentials;
    const { config, lifecycle, logger, outgoing } = context;
    lifecycle.onClose('work', 'refused exchanges', () => this.#refusals.close());
    this.#keys = new JwksCache({ outgoing, logger, outageMs: config.issuerOutageMs });
  }

  /** Throws ExchangeError, TooManyRequestsError, UnavailableError. */
  exchange(request: IncomingMessage, asked: () => ExchangeRequest, audit: AuditTrail): Promise<ExchangedToken> {
    const { config, logger } = this.#context;
    return this.#credentials.exchange(
      request,
      () => this.#isVouchedFor(asked()),
      async () => {
        try {
          const address = addressGroup(clientAddress(request, config.trustedProxies));
          return await this.#exchange(asked(), address, audit);
        } catch (error) {
          if (error instanceof ExchangeError) logger.info({ reason: error.reason }, 'an id token was not accepted');
          throw error;
        }
      },
    );
  }

  /** Verifies the signature by keys in memory. */
  async #isVouchedFor({ idToken, organization }: ExchangeRequest): Promise<boolean> {
    try {
      const issuer = this.#accepted.get(JSON.stringify([organization, claimedIssuer(idToken)]));
      if (!issuer) return false;
      await verifyIdToken(idToken, issuer, keysOf(issuer, this.#keys, 'cached'), new Date());
      return true;
    } catch {
      return false;
    }
  }

  async #exchange(asked: ExchangeRequest, address: string, audit: AuditTrail): Promise<ExchangedToken> {
    const { idToken, organization } = asked;
    const url = claimedIssuer(idToken);
    const issuer = await createIssuerRepository(this.#context.db).findTrusted(organization, url);
    if (!issuer) throw refusedGrant(`${organization} does not trust the issuer ${url}`);
    // Outside a transaction, because it may wait for the issuer.
    const verified = await verifyIdToken(idToken, issuer, keysOf(issuer, this.#keys, 'any'), issuer.now);
    this.#accepted.set(JSON.stringify([organization, url]), issuer);
    const give = () => this.#give(issuer, verified, asked, address, audit);
    try {
      return await give().catch((error: unknown) => {
        if (error instanceof ExchangedMeanwhileError) return give();
        throw error;
      });
    } catch (error) {
      if (error instanceof ExchangeError) await this.#recordRefusal(issuer, verified, asked, error, audit);
      throw error;
    }
  }

  #give(
    issuer: IssuerRow,
    verified: IdToken,
    asked: ExchangeRequest,
    address: string,
    audit: AuditTrail,
  ): Promise<ExchangedToken> {
    const { token, hash } = mintToken('hf-');
    const suffix = randomBytes(4).toString('hex');
    return this.#context.db.inTransaction(async (tx) => {
      const held = await createIssuerRepository(tx).hold(issuer.id);
      const isSame = held && held.audience === issuer.audience && held.jwks === issuer.jwks;
      if (!isSame) throw new UnavailableError('The issuer was changed meanwhile; please retry');
      const policy = await this.#allowing(tx, held, verified, asked);
      const exchanges = createExchangeRepository(tx);
      const key = digest([held.organizationId, held.url, verified.identity]);
      const request = digest([asked.kind, asked.owner, asked.scope, asked.lifetimeSeconds, address]);
      const earlier = held.replay === 'once' ? await exchanges.lock(key, repeatSeconds) : null;
      let made: { readonly id: string; readonly expiresAt: Date | null } | null;
      if (earlier) {
        const isRepeat = earlier.isRecent && earlier.request.equals(request);
        made = isRepeat ? await exchanges.replaceUnused(earlier.tokenId, hash) : null;
        if (!made) throw refusedGrant('it was exchanged before');
      } else {
        await assertFewTokens(tx, held.organizationId);
        made = await createTokenRepository(tx).insert(exchangedToken({ asked, held, policy, verified, hash, suffix }));
        const isFirst = await exchanges.insert({ key, request, tokenId: made.id, expiresAt: verified.endsAt });
        if (!isFirst && held.replay === 'once') throw new ExchangedMeanwhileError();
        if (!(await createIdentityRepository(tx).isTokenOf(made.id, held.organizationId)))
          throw refusedGrant(`${asked.owner ?? 'the owner'} is not an active member of the organization`);
      }
      const expiresInSeconds = Math.floor(((made.expiresAt ?? held.now).getTime() - held.now.getTime()) / 1000);
      await audit.recordAs(
        tx,
        { signIn: 'id-token', tokenId: made.id, grantedBy: `policy:${policy.id}` },
        {
          organization: asked.organization,
          object: made.id,
          details: {
            issuer: held.name,
            kind: policy.tokenKind,
            name: tokenName(verified.claims, suffix),
            subject: String(verified.claims.sub),
            scopes: policy.scopes,
            expiresInSeconds,
            ...(asked.admin ? { admin: true } : {}),
            ...(earlier ? { repeated: true } : {}),
          },
        },
      );
      return { token, expiresInSeconds };
    });
  }

  async #allowing(tx: Queryable, issuer: IssuerRow, { claims }: IdToken, asked: ExchangeRequest): Promise<PolicyRow> {
    const policies = await createIssuerRepository(tx).listPolicies(issuer.id);
    const result = decideTrust(policies, claims, asked);
    if ('allowedBy' in result) return result.allowedBy;
    const { deniedBy } = result;
    throw refusedGrant(
      deniedBy ? `the policy ${deniedBy.id} denies it` : `no policy of ${issuer.name} allows this type of token`,
    );
  }

  /** Records only refusals of tokens with a valid signature, and only a few per issuer, so that strangers cannot fill the log. */
  async #recordRefusal(
    issuer: IssuerRow,
    { claims }: IdToken,
    { kind, organization, scope }: ExchangeRequest,
    { reason }: ExchangeError,
    audit: AuditTrail,
  ): Promise<void> {
    const subject = String(claims.sub);
    const record = async (source: AuditSource, more: object): Promise<void> => {
      const details = { ...more, issuer: issuer.name };
      await createAuditRepository(this.#context.db)
        .insert(source, { action: 'token.exchange', outcome: 'refused', organization, object: issuer.name, details })
        .catch((error: unknown) =>
          this.#context.logger.error({ err: error }, 'a refused exchange could not be recorded'),
        );
    };
    const recorded = this.#refusals.take(issuer.id, subject, reason, (leftOut) =>
      record(serverSource, { reason: 'refusals that were only counted', leftOut }),
    );
    if (recorded === null) return;
    const source = { ...audit.source, signIn: 'id-token' } as const;
    if (recorded === 'refusal') await record(source, { reason, subject, kind, scope: scope.slice(0, 200) });
    else await record(source, { reason: 'further refusals of this minute are only counted' });
  }
}

/** The limit exists because ending the trust in an issuer ends its tokens in one transaction, for which others wait. */
async function assertFewTokens(tx: Queryable, organizationId: string): Promise<void> {
  if ((await createIssuerRepository(tx).countTokens(organizationId, endedSeconds, maxTokens)) >= maxTokens)
    throw new TooManyRequestsError(
      `This organization has ${maxTokens} tokens of CI runs that are valid or have ended within the last hour, the maximum: give them a shorter life`,
      { retryAfterSeconds },
    );
}

function digest(parts: readonly unknown[]): Buffer {
  return createHash('sha256').update(JSON.stringify(parts)).digest();
}
