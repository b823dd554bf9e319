import { createHash } from 'node:crypto';
import { type AttemptLimit, AttemptLimiter } from '../../shared/platform/db/attempt-limiter.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { addressGroup } from '../server/client-address.ts';

const quarterHour = 15 * 60;
const limits = {
  /** One address that tries one login. Checked first, so that it cannot lock the login for others. */
  pair: { name: 'login-address', attempts: 5, perSeconds: quarterHour, blockSeconds: quarterHour },
  /** One address that tries many logins. */
  address: { name: 'address', attempts: 50, perSeconds: quarterHour, blockSeconds: quarterHour },
  /** Many addresses that try one login. */
  login: { name: 'login', attempts: 100, perSeconds: 3600, blockSeconds: 3600 },
} satisfies Record<string, AttemptLimit>;

/** Limits attempts to guess passwords, the same for logins that do not exist. Counted for all replicas. */
export class SignInLimits {
  readonly #pair: AttemptLimiter;
  readonly #address: AttemptLimiter;
  readonly #login: AttemptLimiter;

  constructor(db: Queryable) {
    this.#pair = new AttemptLimiter(db, limits.pair);
    this.#address = new AttemptLimiter(db, limits.address);
    this.#login = new AttemptLimiter(db, limits.login);
  }

  /** Counts an attempt before the password is compared, so that parallel ones count too. Throws TooManyRequestsError. */
  async count(login: string, address: string): Promise<void> {
    const { group, name, pair } = keysOf(login, address);
    await this.#pair.count(pair);
    await this.#address.count(group);
    await this.#login.count(name);
  }

  /** The attempt has succeeded. */
  async succeed(login: string, address: string): Promise<void> {
    const { group, name, pair } = keysOf(login, address);
    await Promise.all([this.#pair.forget(pair), this.#address.takeBack(group), this.#login.takeBack(name)]);
  }
}

function keysOf(login: string, address: string) {
  // Hashed, because what is typed as a login may be long, or a password.
  const name = createHash('sha256').update(login.toLowerCase()).digest('base64url');
  const group = addressGroup(address);
  return { name, group, pair: `${name} ${group}` };
}
