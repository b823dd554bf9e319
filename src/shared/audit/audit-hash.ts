import { createHash } from 'node:crypto';

/** The hashed form: all columns as text, in the order of the table, without the number. */
export interface HashedEvent {
  readonly number: number;
  readonly organizationId: string;
  readonly columns: readonly (string | null)[];
}

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

/** Excludes the number, so that an event with another event's number is recognized. */
export function hashEvent({ columns, organizationId }: HashedEvent): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([organizationId, ...columns]))
    .digest();
}

/** Covers, through the previous batch's hash, all earlier batches. */
export function hashBatch(batch: HashedBatch): Buffer {
  const { eventHashes, previousHash, ...rest } = batch;
  const head = [rest.organizationId, rest.batch, rest.month, rest.throughNumber, rest.numbers];
  return createHash('sha256').update(JSON.stringify(head)).update(eventHashes).update(previousHash).digest();
}

/** The key in the blob store contains everything, so a late put changes nothing. */
export function headKey(organizationId: string, batch: number, hash: Buffer): string {
  return `${headPrefix(organizationId)}${String(batch).padStart(12, '0')}-${hash.toString('hex')}`;
}

export const headsPrefix = 'audit/heads/';

export function headPrefix(organizationId: string): string {
  return `${headsPrefix}${organizationId}/`;
}

/** Null if the key is not from `headKey`. */
export function readHeadKey(
  key: string,
): { readonly organizationId: string; readonly batch: number; readonly hash: string } | null {
  const [, organizationId, batch, hash] = /\/([0-9a-f-]{36})\/(\d{12})-([0-9a-f]{64})$/.exec(key) ?? [];
  return organizationId && batch && hash ? { organizationId, batch: Number(batch), hash } : null;
}
