import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { AppContext } from '../../shared/context.ts';
import {
  type CredentialRepository,
  createCredentialRepository,
  type LeaseQuestion,
} from '../../shared/identity/credential-repository.ts';
import {
  createFailedLookupRepository,
  type FailedLookupRepository,
} from '../../shared/identity/failed-lookup-repository.ts';
import type { CallerRow, IdentityRepository } from '../../shared/identity/identity-repository.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import { hashToken, tokenForm } from '../../shared/platform/crypto/secret-token.ts';
import { TooManyRequestsError, UnavailableError } from '../../shared/platform/errors/errors.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';
import type { Metrics } from '../../shared/platform/telemetry/metrics.ts';
import { addressGroup, clientAddress } from '../server/client-address.ts';
import { FailureLevels, type Source } from './failure-levels.ts';
import { LookupBatches } from './lookup-batches.ts';
import { RejectedTokenLog } from './rejected-credential-log.ts';

interface CredentialGuardOptions {
  readonly config: Pick<Config, 'trustedProxies' | 'wrongTokensPerMinute'>;
  readonly identity: Pick<IdentityRepository, 'findCaller'>;
  readonly credentials: CredentialRepository;
  readonly failures: Pick<FailedLookupRepository, 'report'>;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

type Credential = 'token' | 'lease';
/** What anybody may know of a token: its prefix. Those of operators' own making have none. */
type Kind = 'hf-' | 'lease-' | 'other';

interface Refusable {
  readonly credential: Credential;
  readonly kind: Kind;
  readonly request: IncomingMessage;
}

/** One credential of one call. */
interface Attempt<Question> extends Refusable {
  /** Never the credential itself. */
  readonly key: string;
  readonly question: Question;
  readonly batches: LookupBatches<Question>;
  /** Whether this process has seen it valid: worth a look, whoever else comes from its address. */
  readonly isKnown: boolean;
}

export interface LeaseAttempt extends LeaseQuestion {
  /** Names update and stack. */
  readonly path: string;
  readonly isKnown: boolean;
}

/** A token that was made just now is refused for this long at most, if somebody has tried it before. */
const refusedMs = 2_000;
const refusedCapacity = 20_000;
const knownCapacity = 20_000;
const knownMs = 24 * 3600 * 1000;
/** The same limit for all addresses together, per kind. */
const allAddresses = 10;

const batchMs = 200;
/** Ours have 256 random bits: to look many up gives nobody a chance to guess one. */
const roomForOurs = { everyMs: batchMs, total: 2_000, perSource: 500 };
/** Those of operators may be guessed: 50 a second from one address. */
const roomForOthers = { everyMs: batchMs, total: 200, perSource: 10 };
const retryAfterSeconds = 1;

/**
 * Decides which credentials are worth asking Postgres about, and asks; whether one is valid is always Postgres's word. Those
 * whose form, checksum or hash says that they are wrong cost nothing. Of sources with many wrong ones, those never seen valid
 * here are looked up together, a few statements a second, so that a valid one is let in from there as well.
 */
export class CredentialGuard {
  readonly #options: CredentialGuardOptions;
  readonly #levels: FailureLevels;
  readonly #log: RejectedTokenLog;
  readonly #refused = recentKeys(refusedCapacity, refusedMs);
  readonly #knownTokens = recentKeys(knownCapacity, knownMs);
  readonly #ourTokens: LookupBatches<Buffer>;
  readonly #otherTokens: LookupBatches<Buffer>;
  readonly #leases: LookupBatches<LeaseQuestion & { readonly key: string }>;

  constructor(options: CredentialGuardOptions) {
    this.#options = options;
    const { credentials, failures, logger } = options;
    this.#levels = new FailureLevels({ report: failures.report, logger });
    this.#log = new RejectedTokenLog(logger);
    const askTokens = async (hashes: readonly Buffer[]): Promise<ReadonlySet<string>> => {
      this.#countLookup('token', 'batch');
      return new Set((await credentials.listTokens(hashes)).map(keyOfToken));
    };
    this.#ourTokens = new LookupBatches({ ask: askTokens, ...roomForOurs });
    this.#otherTokens = new LookupBatches({ ask: askTokens, ...roomForOthers });
    this.#leases = new LookupBatches({
      ask: async (leases) => {
        this.#countLookup('lease', 'batch');
        const found = new Set((await credentials.listLeases(leases)).map(pairOf));
        return new Set(leases.filter((lease) => found.has(pairOf(lease))).map(({ key }) => key));
      },
      ...roomForOurs,
    });
  }

  /** The owner of an API token; null when it is wrong. Throws TooManyRequestsError when that is not even asked. */
  async findCaller(request: IncomingMessage, token: string, organization: string | null): Promise<CallerRow | null> {
    const form = tokenForm(token, 'hf-');
    if (form === 'faulty') return this.#refuse({ request, credential: 'token', kind: 'hf-' }, 'malformed');
    const hash = hashToken(token);
    const key = keyOfToken(hash);
    const kind = form === 'other' ? 'other' : 'hf-';
    const batches = kind === 'hf-' ? this.#ourTokens : this.#otherTokens;
    const isKnown = this.#knownTokens.has(key);
    const caller = await this.#find({ credential: 'token', kind, request, key, question: hash, batches, isKnown }, () =>
      this.#options.identity.findCaller(hash, organization),
    );
    if (caller) this.#knownTokens.set(key, true);
    else this.#knownTokens.delete(key);
    return caller;
  }

  /** What `find` finds by a lease, dead or alive; null when there is no such lease. Throws UnavailableError when that is not asked. */
  findByLease<T>(request: IncomingMessage, lease: LeaseAttempt, find: () => Promise<T | null>): Promise<T | null> {
    const { updateId, hash, path, isKnown } = lease;
    const key = hashToken(`${hash.toString('base64')} ${path}`).toString('latin1');
    const question = { updateId, hash, key };
    return this.#find(
      { credential: 'lease', kind: 'lease-', request, key, question, batches: this.#leases, isKnown },
      find,
    );
  }

  /** Notes a lease that cannot be one of ours. */
  refuseLease(request: IncomingMessage): void {
    this.#refuse({ request, credential: 'lease', kind: 'lease-' }, 'malformed');
  }

  close(): Promise<void> {
    return this.#levels.close();
  }

  async #find<Found, Question>(attempt: Attempt<Question>, find: () => Promise<Found | null>): Promise<Found | null> {
    const { credential, key, isKnown } = attempt;
    if (this.#refused.has(key)) return this.#refuse(attempt, 'remembered');
    const sources = this.#sourcesOf(attempt);
    const ended = isKnown ? null : this.#levels.admit(sources);
    const beganAt = performance.now();
    if (!isKnown && !ended && !(await this.#askTogether(attempt))) {
      this.#levels.note(sources);
      this.#refused.set(key, true, { start: beganAt });
      return this.#refuse(attempt, 'unknown');
    }
    let failed = false;
    try {
      this.#countLookup(credential, 'single');
      const found = await find();
      failed = found === null;
      if (found) return found;
      this.#refused.set(key, true, { start: beganAt });
      return this.#refuse(attempt, 'unknown');
    } finally {
      if (ended) ended(failed);
      else if (failed) this.#levels.note(sources);
    }
  }

  async #askTogether<Question>(attempt: Attempt<Question>): Promise<boolean> {
    const { batches, credential, key, question } = attempt;
    const answer = batches.ask(this.#addressOf(attempt.request), key, question);
    if (answer !== null) return answer;
    this.#refuse(attempt, 'too-many');
    // A lease that lives must not hear 403; and all releases of the CLI repeat these calls after a 503.
    if (credential === 'lease') throw new UnavailableError('Too many unknown leases at once', { retryAfterSeconds });
    throw new TooManyRequestsError('Too many unknown API tokens at once, from this address or in all', {
      retryAfterSeconds,
    });
  }

  #sourcesOf({ kind, request }: Refusable): Source[] {
    const { wrongTokensPerMinute: perMinute } = this.#options.config;
    return [
      { name: `address ${this.#addressOf(request)}`, perMinute },
      { name: `kind ${kind}`, perMinute: perMinute * allAddresses },
    ];
  }

  #addressOf(request: IncomingMessage): string {
    return addressGroup(clientAddress(request, this.#options.config.trustedProxies));
  }

  #refuse({ credential, kind, request }: Refusable, reason: 'malformed' | 'remembered' | 'unknown' | 'too-many'): null {
    this.#options.metrics.credentialsRefused.labels(credential, reason).inc();
    this.#log.note({ address: this.#addressOf(request), credential, kind, reason });
    return null;
  }

  #countLookup(credential: Credential, way: 'single' | 'batch'): void {
    this.#options.metrics.credentialLookups.labels(credential, way).inc();
  }
}

/** The guard of one process; closed with the context. */
export function createCredentialGuard(context: AppContext): CredentialGuard {
  const { db, lifecycle } = context;
  const credentials = createCredentialRepository(db);
  const guard = new CredentialGuard({ ...context, credentials, failures: createFailedLookupRepository(db) });
  lifecycle.onClose('work', 'failed lookups', () => guard.close());
  return guard;
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
