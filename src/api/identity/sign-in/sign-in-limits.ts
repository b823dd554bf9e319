import { createHash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { AttemptLimiter } from '../../../shared/identity/attempt-limiter.ts';
import type { AttemptLimit } from '../../../shared/identity/attempt-repository.ts';
import { createSignInPaceRepository, maxPaceSeconds } from '../../../shared/identity/sign-in-pace-repository.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { TooManyRequestsError, UnavailableError } from '../../../shared/platform/errors/errors.ts';
import { addressGroup } from '../../platform/server/client-address.ts';

const quarterHour = 15 * 60;
const limits = {
  /** A browser that has signed in with the login before. Only its own attempts count. */
  browser: { name: 'login-browser', attempts: 5, perSeconds: quarterHour, blockSeconds: quarterHour },
  /** One address that tries one login. */
  pair: { name: 'login-address', attempts: 5, perSeconds: quarterHour, blockSeconds: quarterHour },
  /** One address that tries many logins. */
  address: { name: 'address', attempts: 50, perSeconds: quarterHour, blockSeconds: quarterHour },
  /** Attempts of a network within a day: it waits behind networks with fewer attempts. Refuses nothing. */
  day: { name: 'login-network', attempts: 1_000_000, perSeconds: 24 * 3600, blockSeconds: 0 },
} satisfies Record<string, AttemptLimit>;

/** Longer than the interval between attempts. */
const maxWaitMs = (maxPaceSeconds + 8) * 1000;
/** Each waiting attempt holds a connection. Half of the slots are for networks that have not tried the login before. */
const maxWaiting = 256;

export interface Attempt {
  readonly login: string;
  readonly address: string;
  /** Null unless the login has signed in with the browser before. */
  readonly browserId: string | null;
  readonly gone: AbortSignal;
}

/**
 * Limits guesses of passwords, also for logins that do not exist. Attempts are counted for all replicas. Attempts from many addresses slow
 * each other down and lock nobody out: a known browser has its own counter, and otherwise a network's next attempt comes after those of
 * networks that have tried less.
 */
export class SignInLimits {
  readonly #browser: AttemptLimiter;
  readonly #pair: AttemptLimiter;
  readonly #address: AttemptLimiter;
  readonly #day: AttemptLimiter;
  readonly #paces: ReturnType<typeof createSignInPaceRepository>;
  #waiting = 0;

  constructor(db: Queryable) {
    this.#browser = new AttemptLimiter(db, limits.browser);
    this.#pair = new AttemptLimiter(db, limits.pair);
    this.#address = new AttemptLimiter(db, limits.address);
    this.#day = new AttemptLimiter(db, limits.day);
    this.#paces = createSignInPaceRepository(db);
  }

  /**
   * Call before the password is compared, so that parallel attempts count too. Waits in the queue. Throws TooManyRequestsError, and
   * UnavailableError if the client has left.
   */
  async count(attempt: Attempt): Promise<void> {
    const keys = keysOf(attempt);
    if (keys.browser !== null) {
      await this.#browser.count(keys.browser);
      return;
    }
    await this.#pair.count(keys.pair);
    await this.#address.count(keys.group);
    await this.#waitForRate(keys.name, await this.#day.count(keys.day), attempt.gone);
  }

  async succeed(attempt: Attempt): Promise<void> {
    const { browser, day, group, name, pair } = keysOf(attempt);
    if (browser !== null) return this.#browser.forget(browser);
    await Promise.all([
      this.#pair.forget(pair),
      this.#day.forget(day),
      this.#address.takeBack(group),
      this.#paces.giveBack(name),
    ]);
  }

  async #waitForRate(name: string, tried: number, gone: AbortSignal): Promise<void> {
    const until = performance.now() + maxWaitMs;
    let waitMs = await this.#paces.take(name);
    if (waitMs === 0) return;
    if (this.#waiting >= (tried > 1 ? maxWaiting / 2 : maxWaiting)) throw tooMany(waitMs);
    this.#waiting++;
    try {
      for (;;) {
        const inMs = waitMs + delayMs(tried);
        if (performance.now() + inMs > until) throw tooMany(waitMs);
        await setTimeout(inMs, undefined, { signal: gone }).catch(() => {
          throw new UnavailableError('The client has disconnected');
        });
        waitMs = await this.#paces.take(name);
        if (waitMs === 0) return;
      }
    } finally {
      this.#waiting--;
    }
  }
}

/** The first waiting attempt, in any process, gets the next slot: it comes from a network with the fewest attempts. */
function delayMs(tried: number): number {
  return Math.min(tried - 1, 8) * 400 + Math.random() * 300;
}

function tooMany(waitMs: number): TooManyRequestsError {
  return new TooManyRequestsError(
    'Too many attempts to sign in to this account; please try again, or use a browser in which you have signed in before, or a passkey',
    { retryAfterSeconds: Math.max(Math.ceil(waitMs / 1000), 1) },
  );
}

function keysOf({ address, browserId, login }: Attempt) {
  // The typed login may be long, or a password.
  const name = createHash('sha256').update(login.toLowerCase()).digest('base64url');
  const group = addressGroup(address);
  // For IPv6, a /48: one client can easily get all of its addresses.
  const network = group.includes(':') ? group.split(':', 3).join(':') : group;
  return {
    name,
    group,
    pair: `${name} ${group}`,
    day: `${name} ${network}`,
    browser: browserId === null ? null : `${name} ${browserId}`,
  };
}
