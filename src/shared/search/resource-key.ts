import { hash } from 'node:crypto';
import { parseUrn, providerUrn, rootStackType } from '../state/deployments/urn.ts';

/** First 132 bits of SHA-256, in base64url: 22 characters. */
export function shortHash(data: string | Buffer): string {
  // `slice` would keep the whole string in memory, plus an object for the slice.
  wholeHash.write(hash('sha256', data, 'base64url'), 'latin1');
  return wholeHash.toString('latin1', 0, shortHashLength);
}
export const shortHashLength = 22;
const wholeHash = Buffer.alloc(43);

/**
 * Returns the parts of a URN that a rename of the stack does not change: its type, with the types of its parents, and its name. The
 * root's name contains the stack's name and is omitted.
 */
export function withoutStack(urn: string): string {
  const parts = parseUrn(urn);
  if (parts === null) return urn;
  return parts.type === rootStackType ? parts.type : `${parts.type}::${parts.name}`;
}

/** Identifies a resource within its stack. */
export function resourceKey(urn: string): string {
  return shortHash(withoutStack(urn));
}

/** Identifies a replaced resource that is still to be deleted. Its replacement has the same URN. */
export function deletedKey(urn: string, id: string): string {
  return shortHash(`${withoutStack(urn)}\n${id}`);
}

/** Returns the key of the provider named by a reference `<urn>::<id>`; null if it names none. */
export function providerKey(reference: string): string | null {
  const urn = providerUrn(reference);
  return urn === '' ? null : resourceKey(urn);
}
