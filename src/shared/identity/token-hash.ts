import { createHash } from 'node:crypto';
import { sql } from '../platform/db/sql.ts';

/**
 * Encrypted tokens are stored as the hash of their hash, so that the release before, which knows neither scopes nor grants that deny,
 * does not find them. A trigger encrypts them (migration 0022).
 */
function sealed(hash: Buffer): Buffer {
  return createHash('sha256').update(hash).digest();
}

/** Condition that a row `t` of api_tokens is the token with this hash, or had it before a rotation and is still known by it. */
export function isToken(hash: Buffer) {
  const stored = sql.array([hash, sealed(hash)], 'bytea');
  return sql.fragment`(
    t.token_hash = any (${stored}) and t.is_sealed = (t.token_hash <> ${sql.binary(hash)})
    or t.previous_hash = any (${stored}) and t.previous_until > now())`;
}

/** The hashes as they may be stored. */
export function storedHashes(hashes: readonly Buffer[]): Buffer[] {
  return hashes.flatMap((hash) => [hash, sealed(hash)]);
}

/** Which of the hashes is stored as `stored`. */
export function findStored(hashes: readonly Buffer[], stored: readonly Buffer[]): Buffer[] {
  const found = new Set(stored.map((hash) => hash.toString('latin1')));
  return hashes.filter((hash) => [hash, sealed(hash)].some((each) => found.has(each.toString('latin1'))));
}
