import { isKmsUrl, type KmsKey, parseKmsUrl } from '../platform/kms/kms-url.ts';
import { MasterKeyError } from './key-ring.ts';

/** One member of HOLDFAST_MASTER_KEYS: the key itself, or where it is wrapped. */
export type MasterKeyEntry =
  | { readonly id: string; readonly bytes: Buffer; readonly kms: null }
  | { readonly id: string; readonly bytes: null; readonly kms: KmsKey };

/**
 * Parses `id:base64` (32 bytes) and `id:URL of a KMS key`, comma separated. Throws MasterKeyError, which names the invalid key
 * and shows none.
 */
export function parseMasterKeys(text: string): readonly MasterKeyEntry[] {
  const entries = new Map<string, MasterKeyEntry>();
  for (const [index, pair] of text.split(',').entries()) {
    const at = pair.indexOf(':');
    // Without an id, the text may be a key, so do not show it.
    if (at < 1 || pair.startsWith('//', at + 1))
      throw new MasterKeyError(`Master key ${index + 1} of the list is not of the form id:base64 or id:URL`);
    const id = pair.slice(0, at).trim();
    if (entries.has(id)) throw new MasterKeyError(`Master key id ${JSON.stringify(id)} occurs twice`);
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
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length !== 32)
    throw new MasterKeyError(`Master key ${JSON.stringify(id)} has ${bytes.length} bytes; it must be 32, in base64`);
  if (bytes.toString('base64') !== text)
    throw new MasterKeyError(`Master key ${JSON.stringify(id)} is not valid base64`);
  return { id, bytes, kms: null };
}
