import { createHmac } from 'node:crypto';
import { sameHash } from '../../shared/platform/crypto/secret-token.ts';
import { ForbiddenError } from '../../shared/platform/errors/errors.ts';
import type { DerivedKeys } from '../../shared/secrets/key-ring.ts';

/** The CLI uses an address immediately. */
export const addressSeconds = 3600;

export const archiveUrlPurpose = 'archive URLs';

type Purpose = 'upload' | 'download';

/** In forged addresses, parameters are missing or repeated. */
export interface AddressQuery {
  readonly expires?: unknown;
  readonly signature?: unknown;
}

/**
 * The CLI uploads and downloads archives of policy packs under these addresses, and sends no token there. So an address has a signature,
 * which is checked without the database. The database's clock decides whether it has expired.
 */
export class ArchiveUrls {
  readonly #publicUrl: string;
  readonly #readKeys: () => Promise<DerivedKeys>;
  #keys: Promise<DerivedKeys> | null = null;

  constructor(publicUrl: string, readKeys: () => Promise<DerivedKeys>) {
    this.#publicUrl = publicUrl.replace(/\/+$/, '');
    this.#readKeys = readKeys;
  }

  /** `since`: now, by the clock of the database. */
  async create(purpose: Purpose, versionId: string, since: Date): Promise<string> {
    const expires = Math.floor(since.getTime() / 1000) + addressSeconds;
    const [key] = await this.#findKeys();
    const signature = sign(key, purpose, versionId, expires);
    return `${this.#publicUrl}/policy-packs/${versionId}?expires=${expires}&signature=${signature}`;
  }

  /** Returns when the address expires, in seconds. Throws ForbiddenError unless it was created for this purpose. */
  async check(purpose: Purpose, versionId: string, { expires, signature }: AddressQuery): Promise<number> {
    const seconds = /^\d{1,11}$/.test(String(expires)) ? Number(expires) : 0;
    // Compared as text: many spellings decode to the same bytes, but only one was issued.
    const given = Buffer.from(String(signature));
    const keys = await this.#findKeys();
    if (!keys.some((key) => sameHash(given, Buffer.from(sign(key, purpose, versionId, seconds)))))
      throw new ForbiddenError('This URL is not valid');
    return seconds;
  }

  #findKeys(): Promise<DerivedKeys> {
    this.#keys ??= this.#readKeys().catch((error: unknown) => {
      this.#keys = null;
      throw error;
    });
    return this.#keys;
  }
}

function sign(key: Buffer, purpose: Purpose, versionId: string, expires: number): string {
  return createHmac('sha256', key).update(`${purpose}\n${versionId}\n${expires}`).digest('base64url');
}

export function addressExpired(): ForbiddenError {
  return new ForbiddenError('This URL has expired. Run the command again');
}
