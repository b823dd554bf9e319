import { isKmsUrl, type KmsKey, parseKmsUrl } from '../platform/kms/kms-url.ts';
import { MasterKeyError } from './key-ring.ts';

const keyBytes = 32;

/** The key itself, or the KMS that wraps it. */
export type MasterKeyEntry =
  | { readonly id: string; readonly bytes: Buffer; readonly kms: null }
  | { readonly id: string; readonly bytes: null; readonly kms: KmsKey };

/**
 * `id:base64` (32 bytes) and `id:URL of a KMS key`, separated by commas. Throws MasterKeyError, which names the invalid key but never
 * contains a key.
 */
export function parseMasterKeys(text: string): readonly MasterKeyEntry[] {
  const entries = new Map<string, MasterKeyEntry>();
  for (const [index, pair] of text.split(',').entries()) {
    const at = pair.indexOf(':');
    // Without an id, the text may be a key and is not shown. A URL without an id has // there, and so does one key in 4,096.
    if (at < 1 || (pair.startsWith('//', at + 1) && keyOf(pair.slice(at + 1).trim()) === null))
      throw new MasterKeyError(
        `Master key ${index + 1} in HOLDFAST_MASTER_KEYS is not of the form id:base64 or id:URL`,
      );
    const id = pair.slice(0, at).trim();
    if (entries.has(id))
      throw new MasterKeyError(`Master key ${JSON.stringify(id)} occurs twice in HOLDFAST_MASTER_KEYS`);
    entries.set(id, entryOf(id, pair.slice(at + 1).trim()));
  }
  return [...entries.values()];
}

function entryOf(id: string, text: string): MasterKeyEntry {
  if (isKmsUrl(text)) {
    const kms = parseKmsUrl(text);
    if (typeof kms === 'string') throw new MasterKeyError(`Master key ${JSON.stringify(id)}: ${kms}`);
    return { id, bytes: null, kms };
  }
  const bytes = keyOf(text);
  if (bytes) return { id, bytes, kms: null };
  const { length } = Buffer.from(text, 'base64');
  throw new MasterKeyError(
    length === keyBytes
      ? `Master key ${JSON.stringify(id)} is not valid base64`
      : `Master key ${JSON.stringify(id)} has ${length} bytes; it must be ${keyBytes}, in base64`,
  );
}

/** Null if the text is not a key in base64. */
function keyOf(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === keyBytes && bytes.toString('base64') === text ? bytes : null;
}
