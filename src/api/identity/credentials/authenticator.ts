import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { AppContext } from '../../../shared/context.ts';
import type { CallerRow, IdentityRepository, RequestedTarget } from '../../../shared/identity/identity-repository.ts';
import {
  createRateCounterRepository,
  type RateCounterRepository,
} from '../../../shared/identity/rate-counter-repository.ts';
import type { Config } from '../../../shared/platform/config/config.ts';
import { hashToken, tokenForm } from '../../../shared/platform/crypto/secret-token.ts';
import { AppError, TooManyRequestsError, UnavailableError } from '../../../shared/platform/errors/errors.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import type { Metrics } from '../../../shared/platform/telemetry/metrics.ts';
import { SharedRateCounters, type Source } from '../../platform/rates/shared-rate-counters.ts';
import { addressGroup, clientAddress } from '../../platform/server/client-address.ts';
import { type CredentialRepository, createCredentialRepository, type LeaseQuestion } from './credential-repository.ts';
import { LookupBatches } from './lookup-batches.ts';
import { RejectedCredentialLog } from './rejected-credential-log.ts';

interface AuthenticatorOptions {
  readonly config: Pick<Config, 'trustedProxies' | 'invalidTokensPerMinute'>;
  readonly identity: Pick<IdentityRepository, 'findCaller'>;
  readonly credentials: CredentialRepository;
  readonly failures: Pick<RateCounterRepository, 'report'>;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

type Credential = 'token' | 'lease' | 'id-token';
/** A token's prefix. Tokens that operators create have none. */
type Kind = 'hf-' | 'lease-' | 'other';

interface CredentialUse {
  readonly credential: Credential;
  readonly kind: Kind;
  readonly request: IncomingMessage;
}

/** The use of one credential in one call. */
interface Attempt<Query> extends CredentialUse {
  /** Never the credential itself. */
  readonly key: string;
  readonly query: Query;
  readonly batches: LookupBatches<Query>;
  /** This process has seen the credential valid: it gets its own lookup even if its address is exhausted. */
  readonly isKnown: boolean;
}

export interface LeaseAttempt extends LeaseQuestion {
  /** Contains the update and the stack. */
  readonly path: string;
  readonly isKnown: boolean;
}

/** A token that was tried before its creation is refused for at most this long. */
const refusedMs = 2_000;
const refusedCapacity = 20_000;
const knownCapacity = 20_000;
const knownMs = 24 * 3600 * 1000;
/** The limit for all addresses together, per kind, as a multiple of the limit of one. */
const allAddressesFactor = 10;

const batchMs = 200;
/** Tokens that Holdfast creates have 256 random bits, so nobody can guess one even with many lookups. */
const generatedTokenLimits = { everyMs: batchMs, total: 2_000, perSource: 500 };
/** Tokens that operators create may be guessable: 50 lookups per second from one address. */
const operatorTokenLimits = { everyMs: batchMs, total: 200, perSource: 10 };
const retryAfterSeconds = 1;

/**
 * Decides which credentials to look up; only Postgres decides whether a credential is valid. A wrong format, checksum or hash costs no
 * query. If a source has sent many wrong credentials, those that this process has never seen valid are looked up in batches, a few
 * statements per second, so that a valid one still gets in.
 */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #counters: SharedRateCounters;
  readonly #log: RejectedCredentialLog;
  readonly #refused = recentKeys(refusedCapacity, refusedMs);
  readonly #knownTokens = recentKeys(knownCapacity, knownMs);
  readonly #generatedTokens: LookupBatches<Buffer>;
  readonly #operatorTokens: LookupBatches<Buffer>;
  readonly #leases: LookupBatches<LeaseQuestion & { readonly key: string }>;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    const { credentials, failures, logger } = options;
    this.#counters = new SharedRateCounters({ report: failures.report, logger });
    this.#log = new RejectedCredentialLog(logger);
    const findTokens = async (hashes: readonly Buffer[]): Promise<ReadonlySet<string>> => {
      this.#countLookup('token', 'batch');
      return new Set((await credentials.listTokens(hashes)).map(keyOfToken));
    };
    this.#generatedTokens = new LookupBatches({ lookUp: findTokens, ...generatedTokenLimits });
    this.#operatorTokens = new LookupBatches({ lookUp: findTokens, ...operatorTokenLimits });
    this.#leases = new LookupBatches({
      lookUp: async (leases) => {
        this.#countLookup('lease', 'batch');
        const found = new Set((await credentials.listLeases(leases)).map(pairOf));
        return new Set(leases.filter((lease) => found.has(pairOf(lease))).map(({ key }) => key));
      },
      ...generatedTokenLimits,
    });
  }

  /** The holder of an API token and what they may do at `target`. Throws TooManyRequestsError if too many lookups wait. */
  async findCaller(request: IncomingMessage, token: string, target: RequestedTarget): Promise<CallerRow | null> {
    const form = tokenForm(token, 'hf-');
    if (form === 'faulty') return this.#refuse({ request, credential: 'token', kind: 'hf-' }, 'malformed');
    const hash = hashToken(token);
    const key = keyOfToken(hash);
    const kind = form === 'other' ? 'other' : 'hf-';
    const batches = kind === 'hf-' ? this.#generatedTokens : this.#operatorTokens;
    const isKnown = this.#knownTokens.has(key);
    const caller = await this.#find({ credential: 'token', kind, request, key, query: hash, batches, isKnown }, () =>
      this.#options.identity.findCaller(hash, target),
    );
    if (caller) this.#knownTokens.set(key, true);
    else this.#knownTokens.delete(key);
    return caller;
  }

  /** The result of `find` for a lease, live or dead. Throws UnavailableError if too many lookups wait. */
  findByLease<T>(request: IncomingMessage, lease: LeaseAttempt, find: () => Promise<T | null>): Promise<T | null> {
    const { updateId, hash, path, isKnown } = lease;
    const key = hashToken(`${hash.toString('base64')} ${path}`).toString('latin1');
    const query = { updateId, hash, key };
    return this.#find(
      { credential: 'lease', kind: 'lease-', request, key, query, batches: this.#leases, isKnown },
      find,
    );
  }

  /** Records a lease whose format shows that Holdfast did not issue it. */
  refuseLease(request: IncomingMessage): void {
    this.#refuse({ request, credential: 'lease', kind: 'lease-' }, 'malformed');
  }

  /**
   * Runs the exchange of an id token. A refused exchange counts like a wrong token of the address, and so does one whose issuer cannot be
   * reached. When the address has sent too many, exchanges run only if `isVouchedFor`, which must be cheap, resolves to true. Throws
   * TooManyRequestsError.
   */
  async exchange<T>(
    request: IncomingMessage,
    isVouchedFor: () => Promise<boolean>,
    exchange: () => Promise<T>,
  ): Promise<T> {
    const use = { request, credential: 'id-token', kind: 'other' } as const;
    // Not counted per kind: wrong tokens from many addresses would lock out all pipelines.
    const [source] = this.#sourcesOf(use) as [Source, Source];
    const finish = this.#counters.admit([source]);
    let failed = false;
    try {
      if (!finish && !(await isVouchedFor())) {
        this.#refuse(use, 'too-many');
        throw new TooManyRequestsError('Too many rejected id tokens from this address', {
          retryAfterSeconds,
        });
      }
      return await exchange();
    } catch (error) {
      const isRefused = error instanceof AppError && error.status === 400;
      if (isRefused) this.#refuse(use, 'unknown');
      failed = isRefused || (error instanceof AppError && error.code === 'issuer-unavailable');
      throw error;
    } finally {
      if (finish) finish(failed);
      else if (failed) this.#counters.note([source]);
    }
  }

  close(): Promise<void> {
    return this.#counters.close();
  }

  async #find<Found, Query>(attempt: Attempt<Query>, find: () => Promise<Found | null>): Promise<Found | null> {
    const { credential, key, isKnown } = attempt;
    if (this.#refused.has(key)) return this.#refuse(attempt, 'remembered');
    const sources = this.#sourcesOf(attempt);
    const finish = isKnown ? null : this.#counters.admit(sources);
    const startedAt = performance.now();
    if (!isKnown && !finish && !(await this.#lookUpInBatch(attempt))) {
      this.#counters.note(sources);
      this.#refused.set(key, true, { start: startedAt });
      return this.#refuse(attempt, 'unknown');
    }
    let failed = false;
    try {
      this.#countLookup(credential, 'single');
      const found = await find();
      failed = found === null;
      if (found) return found;
      this.#refused.set(key, true, { start: startedAt });
      return this.#refuse(attempt, 'unknown');
    } finally {
      if (finish) finish(failed);
      else if (failed) this.#counters.note(sources);
    }
  }

  async #lookUpInBatch<Query>(attempt: Attempt<Query>): Promise<boolean> {
    const { batches, credential, key, query } = attempt;
    const lookup = batches.lookUp(this.#addressOf(attempt.request), key, query);
    if (lookup !== null) return lookup;
    this.#refuse(attempt, 'too-many');
    // A live lease must not get 403, and all CLI releases retry these calls after a 503.
    if (credential === 'lease') throw new UnavailableError('Too many unknown leases at once', { retryAfterSeconds });
    throw new TooManyRequestsError('Too many unknown API tokens at once, from this address or in total', {
      retryAfterSeconds,
    });
  }

  #sourcesOf({ kind, request }: CredentialUse): Source[] {
    const { invalidTokensPerMinute: perMinute } = this.#options.config;
    return [
      { name: `address ${this.#addressOf(request)}`, perMinute },
      { name: `kind ${kind}`, perMinute: perMinute * allAddressesFactor },
    ];
  }

  #addressOf(request: IncomingMessage): string {
    return addressGroup(clientAddress(request, this.#options.config.trustedProxies));
  }

  #refuse(
    { credential, kind, request }: CredentialUse,
    reason: 'malformed' | 'remembered' | 'unknown' | 'too-many',
  ): null {
    this.#options.metrics.credentialsRejected.labels(credential, reason).inc();
    this.#log.note({ address: this.#addressOf(request), credential, kind, reason });
    return null;
  }

  #countLookup(credential: Credential, mode: 'single' | 'batch'): void {
    this.#options.metrics.credentialLookups.labels(credential, mode).inc();
  }
}

/** Closed with the context. */
export function createAuthenticator(context: AppContext): Authenticator {
  const { db, lifecycle } = context;
  const credentials = createCredentialRepository(db);
  const authenticator = new Authenticator({
    ...context,
    credentials,
    failures: createRateCounterRepository(db, 'failedLookups'),
  });
  lifecycle.onClose('work', 'failed lookups', () => authenticator.close());
  return authenticator;
}

/** Keys by the time they were last added, on the monotonic clock. `has` does not renew them. */
function recentKeys(max: number, ttl: number): LRUCache<string, true> {
  return new LRUCache({ max, ttl, ttlResolution: 0 });
}

function keyOfToken(hash: Buffer): string {
  return hash.toString('latin1');
}

function pairOf({ updateId, hash }: LeaseQuestion): string {
  return `${updateId} ${hash.toString('latin1')}`;
}
