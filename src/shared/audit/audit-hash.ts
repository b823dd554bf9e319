import { createHash } from 'node:crypto';

/** An event in the form that is hashed: all columns as text, in the order of the table, without its number. */
export interface HashedEvent {
  readonly number: number;
  readonly organizationId: string;
  readonly columns: readonly (string | null)[];
}

/** The content that the hash of a batch covers. */
export interface HashedBatch {
  readonly organizationId: string;
  readonly batch: number;
  readonly month: string;
  readonly throughNumber: number;
  readonly numbers: readonly number[];
  /** Concatenated hashes of the events, in the order of `numbers`. */
  readonly eventHashes: Buffer;
  readonly previousHash: Buffer;
}

export const hashBytes = 32;
/** The hash before the first batch of a chain. */
export const firstHash = Buffer.alloc(hashBytes);

/** SHA-256 of the event without its number, so that an event with another event's number is recognized. */
export function hashEvent({ columns, organizationId }: HashedEvent): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([organizationId, ...columns]))
    .digest();
}

/** SHA-256 of the batch and, through the previous batch's hash, of all earlier batches. */
export function hashBatch(batch: HashedBatch): Buffer {
  const { eventHashes, previousHash, ...rest } = batch;
  const head = [rest.organizationId, rest.batch, rest.month, rest.throughNumber, rest.numbers];
  return createHash('sha256').update(JSON.stringify(head)).update(eventHashes).update(previousHash).digest();
}

/** Returns the key of a batch's hash in the blob store. The key contains everything, so a late put changes nothing. */
export function headKey(organizationId: string, batch: number, hash: Buffer): string {
  return `${headPrefix(organizationId)}${String(batch).padStart(12, '0')}-${hash.toString('hex')}`;
}

/** The prefix of the heads of all chains. */
export const headsPrefix = 'audit/heads/';

export function headPrefix(organizationId: string): string {
  return `${headsPrefix}${organizationId}/`;
}

/** Returns the chain, the batch and the hash in a key from `headKey`; null for other keys. */
export function readHeadKey(
  key: string,
): { readonly organizationId: string; readonly batch: number; readonly hash: string } | null {
  const [, organizationId, batch, hash] = /\/([0-9a-f-]{36})\/(\d{12})-([0-9a-f]{64})$/.exec(key) ?? [];
  return organizationId && batch && hash ? { organizationId, batch: Number(batch), hash } : null;
}
