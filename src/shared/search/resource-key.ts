import { hash } from 'node:crypto';
import { parseUrn, providerUrn, rootStackType } from '../state/deployments/urn.ts';

/** The first 132 bits of SHA-256 in base64url, i.e. 22 characters. */
export function shortHash(data: string | Buffer): string {
  // `slice` would keep the whole string in memory, plus an object for the slice.
  wholeHash.write(hash('sha256', data, 'base64url'), 'latin1');
  return wholeHash.toString('latin1', 0, shortHashLength);
}
export const shortHashLength = 22;
const wholeHash = Buffer.alloc(43);

/**
 * A rename of the stack keeps these parts of a URN: its type, with the types of its parents, and its name. The root's name contains the
 * stack's name and is omitted.
 */
export function withoutStack(urn: string): string {
  const parts = parseUrn(urn);
  if (parts === null) return urn;
  return parts.type === rootStackType ? parts.type : `${parts.type}::${parts.name}`;
}

/** Unique within the stack. */
export function resourceKey(urn: string): string {
  return shortHash(withoutStack(urn));
}

/** For a replaced resource that is still to be deleted. Its replacement has the same URN. */
export function deletedKey(urn: string, id: string): string {
  return shortHash(`${withoutStack(urn)}\n${id}`);
}

/** The reference has the form `<urn>::<id>`; null if it names no provider. */
export function providerKey(reference: string): string | null {
  const urn = providerUrn(reference);
  return urn === '' ? null : resourceKey(urn);
}
