import { createHmac, randomBytes } from 'node:crypto';
import { sameHash } from '../../../shared/platform/crypto/secret-token.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import type { EncryptedSecrets } from '../../../shared/secrets/encrypted-secrets.ts';
import type { DerivedKeys } from '../../../shared/secrets/key-ring.ts';

/** A browser is known for this long after its last sign-in. */
export const knownBrowserSeconds = 180 * 24 * 3600;
/** The most recent logins count. */
const maxLogins = 4;
const markPattern = /^([0-9a-z]{1,9})\.([0-9A-Za-z_-]{22})\.([0-9A-Za-z_-]{43})$/;

/**
 * A cookie with a signed mark for each login identifies a browser: an attacker who guesses passwords cannot forge a mark, even with a copy
 * of the database. A mark grants no access, so it may outlive the session and the password.
 */
export class KnownBrowsers {
  readonly #secrets: EncryptedSecrets;
  #keys: DerivedKeys | null = null;

  constructor(secrets: EncryptedSecrets) {
    this.#secrets = secrets;
  }

  /** Null if this login has not signed in with the browser. `marks`: the value of its cookie. */
  async idFor(db: Queryable, login: string, marks: string | null): Promise<string | null> {
    if (marks === null) return null;
    const keys = await this.#readKeys(db);
    for (const mark of split(marks)) {
      const id = readMark(keys, login, mark);
      if (id !== null) return id;
    }
    return null;
  }

  /** The new value of the cookie. */
  async remember(db: Queryable, login: string, marks: string | null): Promise<string> {
    const keys = await this.#readKeys(db);
    const present = split(marks ?? '');
    const others = present.filter((mark) => readMark(keys, login, mark) === null);
    const before = present.map((mark) => readMark(keys, login, mark)).find((id) => id !== null);
    const id = before ?? randomBytes(16).toString('base64url');
    const since = Math.floor(Date.now() / 1000).toString(36);
    const signature = sign(keys[0], login, { id, since }).toString('base64url');
    return [`${since}.${id}.${signature}`, ...others].slice(0, maxLogins).join('~');
  }

  async #readKeys(db: Queryable): Promise<DerivedKeys> {
    this.#keys ??= await this.#secrets.deriveKeys(db, 'known browsers');
    return this.#keys;
  }
}

function split(marks: string): readonly string[] {
  return marks.split('~', maxLogins).filter((mark) => markPattern.test(mark));
}

/** Null if the mark is for another login, too old, or made up. */
function readMark(keys: DerivedKeys, login: string, mark: string): string | null {
  const [, since = '', id = '', signature = ''] = markPattern.exec(mark) ?? [];
  const ageSeconds = Date.now() / 1000 - Number.parseInt(since, 36);
  if (!(ageSeconds < knownBrowserSeconds)) return null;
  const given = Buffer.from(signature, 'base64url');
  return keys.some((key) => sameHash(given, sign(key, login, { id, since }))) ? id : null;
}

function sign(key: Buffer, login: string, { id, since }: { readonly id: string; readonly since: string }): Buffer {
  return createHmac('sha256', key).update(`${since}\n${id}\n${login.toLowerCase()}`).digest();
}
