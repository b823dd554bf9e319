import { createHash } from 'node:crypto';
import { reencryptConfig } from '../../shared/diy/history-info.ts';
import { type DocumentSecrets, reencryptDocument } from '../../shared/diy/reencrypt-document.ts';

/** Decrypts ciphertexts of a stack; null for each ciphertext that is not its own. */
export type Decrypt = (ciphertexts: readonly string[]) => Promise<readonly (Buffer | null)[]>;

/** The size of a batch in bytes of the document, approximately. */
const batchBytes = 1024 * 1024;
/** Maximum size of remembered ciphertexts, in characters. */
const maxKnown = 32 * 1024 * 1024;

/** Moves the secrets of one stack from the keys of the source to the keys of the local stack. No plaintext leaves memory. */
export class StackSecrets {
  readonly #decrypt: Decrypt;
  readonly #encrypt: (plaintexts: readonly Buffer[]) => Promise<readonly Buffer[]>;
  readonly #provider: object;
  /** Known ciphertexts: an unchanged secret keeps its ciphertext from version to version, and is decrypted once. */
  readonly #known = new Map<string, string>();
  #knownSize = 0;
  #kept = 0;

  constructor(parts: {
    readonly decrypt: Decrypt;
    readonly encrypt: (plaintexts: readonly Buffer[]) => Promise<readonly Buffer[]>;
    /** Replaces the secrets provider of the service. */
    readonly provider: object;
  }) {
    this.#decrypt = parts.decrypt;
    this.#encrypt = parts.encrypt;
    this.#provider = parts.provider;
  }

  /** Secrets looked like secrets of the service, but it could not decrypt them. They are kept unchanged. */
  takeKept(): number {
    const kept = this.#kept;
    this.#kept = 0;
    return kept;
  }

  document(document: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    return reencryptDocument(
      inBatches(document),
      { provider: ofService(this.#provider), reencrypt: this.#reencrypt },
      noSecrets(),
    );
  }

  config(stored: string): Promise<string> {
    return reencryptConfig(stored, this.#reencrypt);
  }

  readonly #reencrypt = async (ciphertexts: readonly string[]): Promise<readonly (string | null)[]> => {
    const asked = [...new Set(ciphertexts)].filter((each) => isOfService(each) && !this.#known.has(each));
    const plaintexts = asked.length === 0 ? [] : await this.#decrypt(asked);
    const found = asked.flatMap((ciphertext, at) => {
      const plaintext = plaintexts[at] ?? null;
      return plaintext === null ? [] : [{ ciphertext, plaintext }];
    });
    this.#kept += asked.length - found.length;
    const encrypted = found.length === 0 ? [] : await this.#encrypt(found.map(({ plaintext }) => plaintext));
    const fresh = new Map(
      found.map(({ ciphertext }, at) => [ciphertext, (encrypted[at] as Buffer).toString('base64')]),
    );
    const replaced = ciphertexts.map((each) => fresh.get(each) ?? this.#known.get(each) ?? null);
    this.#remember(fresh);
    return replaced;
  };

  #remember(fresh: ReadonlyMap<string, string>): void {
    for (const [ciphertext, encrypted] of fresh) {
      this.#knownSize += ciphertext.length + encrypted.length;
      this.#known.set(ciphertext, encrypted);
    }
    if (this.#knownSize <= maxKnown) return;
    this.#known.clear();
    this.#knownSize = 0;
  }
}

/** The hash of a document with decrypted secrets, independent of the service: equal at both ends of a move. */
export async function hashDecrypted(document: AsyncIterable<Buffer>, decrypt: Decrypt): Promise<string> {
  const hash = createHash('sha256');
  const change = { provider: ofService({ type: 'service' }), reencrypt: toPlaintexts(decrypt) };
  const plain = reencryptDocument(inBatches(document), change, noSecrets());
  for await (const chunk of plain) hash.update(chunk);
  return hash.digest('hex');
}

/** The hash of a configuration with decrypted secrets. */
export async function hashDecryptedConfig(stored: string, decrypt: Decrypt): Promise<string> {
  return createHash('sha256')
    .update(await reencryptConfig(stored, toPlaintexts(decrypt)))
    .digest('hex');
}

/** Replaces the secrets provider of a service. Other providers, and their secrets, are kept. */
function ofService(provider: object) {
  return async ({ type }: { readonly type: string }) => (type === 'service' ? provider : null);
}

function toPlaintexts(decrypt: Decrypt) {
  return async (ciphertexts: readonly string[]): Promise<readonly (string | null)[]> => {
    const asked = [...new Set(ciphertexts)].filter(isOfService);
    const plaintexts = asked.length === 0 ? [] : await decrypt(asked);
    const known = new Map(asked.map((each, at) => [each, plaintexts[at]?.toString('base64') ?? null]));
    return ciphertexts.map((each) => known.get(each) ?? null);
  };
}

/** Ciphertexts of passphrases and KMS keys, which the CLI decrypts itself, begin with their format, as in `v1:`. */
function isOfService(ciphertext: string): boolean {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(ciphertext);
}

function noSecrets(): DocumentSecrets {
  return { provider: null, reencrypted: 0, kept: 0 };
}

async function* inBatches(document: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of document) {
    held.push(chunk);
    bytes += chunk.length;
    if (bytes < batchBytes) continue;
    yield Buffer.concat(held);
    [held, bytes] = [[], 0];
  }
  if (bytes > 0) yield Buffer.concat(held);
}

/** The address in states at which the CLI decrypts their secrets. */
export function serverUrl({ publicUrl }: { readonly publicUrl: string }): string {
  return publicUrl.replace(/\/+$/, '');
}
