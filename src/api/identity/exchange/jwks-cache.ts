import { createLocalJWKSet, errors, type FlattenedJWSInput, type JSONWebKeySet, type JWTHeaderParameters } from 'jose';
import { LRUCache } from 'lru-cache';
import { UnavailableError } from '../../../shared/platform/errors/errors.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import { type Outgoing, OutgoingError } from '../../../shared/platform/outgoing/outgoing.ts';

/** The issuer cannot be reached, or its documents cannot be used, and no recent key matches. */
class IssuerUnavailableError extends UnavailableError {
  override readonly name = 'IssuerUnavailableError';
  override readonly code = 'issuer-unavailable';
}

type Keys = ReturnType<typeof createLocalJWKSet>;
/** Throws JOSEError if no key matches, and IssuerUnavailableError. */
export type KeyOfToken = (header: JWTHeaderParameters, token: FlattenedJWSInput) => ReturnType<Keys>;

interface Entry {
  keys: Keys | null;
  /** Time of the last fetch, by the monotonic clock. */
  fetchedAt: number;
  triedAt: number;
  failure: Error | null;
  pending: Promise<void> | null;
}

export interface JwksCacheOptions {
  readonly outgoing: Pick<Outgoing, 'call'>;
  readonly logger: Logger;
  /** Keys are used for this long after the last successful fetch. */
  readonly outageMs: number;
  /** Age from which keys are fetched again. */
  readonly freshMs?: number;
  /** Minimum time between two fetches for missing keys; half as long after a failed fetch. */
  readonly coolDownMs?: number;
}

const capacity = 1_000;
const maxDocumentBytes = 256 * 1024;
const maxKeys = 100;
const fetchMs = 5_000;
/** The kept members of a key. Private ones make the key unusable. */
const keyMembers = [
  ...['kty', 'use', 'key_ops', 'alg', 'kid', 'ext', 'crv', 'x', 'y', 'n', 'e'],
  ...['d', 'p', 'q', 'dp', 'dq', 'qi'],
];
const maxMemberChars = 4_096;
const maxOperations = 20;

/**
 * Keys come from the issuers' discovery documents. They are kept in memory, and fetched again when they are old or when a token names a
 * missing key. Regardless of the number of tokens, an issuer gets one request at a time, and no more than the cool-down allows.
 */
export class JwksCache {
  readonly #options: Required<JwksCacheOptions>;
  readonly #entries = new LRUCache<string, Entry>({ max: capacity });
  /** Issuers that have provided no keys yet never displace an issuer that has. */
  readonly #untried = new LRUCache<string, Entry>({ max: capacity });

  constructor(options: JwksCacheOptions) {
    this.#options = { freshMs: 600_000, coolDownMs: 10_000, ...options };
  }

  of(url: string): KeyOfToken {
    return async (header, token) => {
      const entry = this.#entryOf(url);
      await this.#refresh(url, entry, this.#options.freshMs);
      try {
        return await this.#usable(url, entry)(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        // The issuer may have rotated its keys.
        const { keys } = entry;
        await this.#refresh(url, entry, 0);
        if (entry.keys === keys) throw entry.failure ? unavailable(url, entry) : error;
        return await this.#usable(url, entry)(header, token);
      }
    };
  }

  /** Recent enough keys, without a request to the issuer. */
  cached(url: string): KeyOfToken {
    return async (header, token) => this.#usable(url, this.#entries.get(url))(header, token);
  }

  #entryOf(url: string): Entry {
    const known = this.#entries.get(url) ?? this.#untried.get(url);
    if (known) return known;
    const never = Number.NEGATIVE_INFINITY;
    const entry = { keys: null, fetchedAt: never, triedAt: never, failure: null, pending: null };
    this.#untried.set(url, entry);
    return entry;
  }

  #usable(url: string, entry: Entry | undefined): Keys {
    const { freshMs, outageMs } = this.#options;
    if (entry?.keys && performance.now() - entry.fetchedAt <= freshMs + outageMs) return entry.keys;
    throw unavailable(url, entry);
  }

  /** Does nothing if a fetch was tried moments ago. Does not throw. */
  async #refresh(url: string, entry: Entry, maxAgeMs: number): Promise<void> {
    const now = performance.now();
    if (!entry.pending) {
      const { coolDownMs } = this.#options;
      const waitMs = entry.failure ? coolDownMs / 2 : coolDownMs;
      if (now - entry.fetchedAt < maxAgeMs || now - entry.triedAt < waitMs) return;
      entry.triedAt = now;
      entry.pending = this.#fetchInto(url, entry).finally(() => {
        entry.pending = null;
      });
    }
    await entry.pending;
  }

  async #fetchInto(url: string, entry: Entry): Promise<void> {
    const { logger } = this.#options;
    try {
      const document = await this.#getJson(`${url.replace(/\/$/, '')}/.well-known/openid-configuration`);
      // Required by OpenID Connect Discovery 4.3: otherwise one issuer could speak for another.
      if (document['issuer'] !== url) throw new Error(`the discovery document is of another issuer`);
      const address = document['jwks_uri'];
      if (typeof address !== 'string') throw new Error('the discovery document has no jwks_uri');
      const { keys } = await this.#getJson(address);
      if (!Array.isArray(keys) || keys.length > maxKeys)
        throw new Error(`the keys are not a list of at most ${maxKeys}`);
      entry.keys = createLocalJWKSet({ keys: keys.map(smallKey) } as JSONWebKeySet);
      entry.fetchedAt = performance.now();
      entry.failure = null;
      this.#untried.delete(url);
      this.#entries.set(url, entry);
    } catch (error) {
      entry.failure = error as Error;
      const refused = error instanceof OutgoingError && error.reason === 'refused';
      logger.warn(
        { issuer: url, reason: (error as Error).message, refused },
        'the keys of an issuer could not be fetched',
      );
    }
  }

  async #getJson(address: string): Promise<Readonly<Record<string, unknown>>> {
    const { body, status } = await this.#options.outgoing.call(address, {
      headers: { accept: 'application/json' },
      timeoutMs: fetchMs,
      maxBytes: maxDocumentBytes,
    });
    if (status !== 200) throw new Error(`${address} answered with status ${status}`);
    const value: unknown = JSON.parse(body.toString('utf8'));
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('not a JSON object');
    return value as Readonly<Record<string, unknown>>;
  }
}

/** Keeps only known members, with null in place of large values; such a key matches no token. */
function smallKey(key: unknown): unknown {
  if (typeof key !== 'object' || key === null) return key;
  const isShort = (value: unknown): boolean => typeof value === 'string' && value.length <= maxMemberChars;
  const isSmall = (value: unknown): boolean =>
    typeof value === 'boolean' ||
    isShort(value) ||
    (Array.isArray(value) && value.length <= maxOperations && value.every(isShort));
  const members = Object.entries(key).filter(([name]) => keyMembers.includes(name));
  return Object.fromEntries(members.map(([name, value]) => [name, isSmall(value) ? value : null]));
}

function unavailable(url: string, entry: Entry | undefined): IssuerUnavailableError {
  const message = `The issuer ${url} did not provide its keys; please retry`;
  return new IssuerUnavailableError(message, { cause: entry?.failure, retryAfterSeconds: 5 });
}
