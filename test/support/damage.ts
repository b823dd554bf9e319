import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { query } from './database.ts';
import type { TestApp } from './test-app.ts';

/** Can be damaged without the server's knowledge. */
export interface StoredBytes {
  readonly id: string;
  readonly bytes: Buffer;
  /** Null when stored in the row. */
  readonly blobKey: string | null;
  /** Overwrites the stored bytes. */
  overwrite(bytes: Buffer): Promise<void>;
  /** Restores the stored bytes and clears the server's record of the damage. */
  restore(): Promise<void>;
  /** Only for documents in the blob store. */
  remove(): Promise<void>;
}

/** The stored bytes of a checkpoint, or of an update's snapshot. */
export async function storedBytes(
  app: TestApp,
  id: string,
  table: 'checkpoints' | 'journal_snapshots' = 'checkpoints',
): Promise<StoredBytes> {
  const key = table === 'checkpoints' ? 'id' : 'update_id';
  const [row] = await query<{ inline_bytes: Buffer | null; blob_key: string | null }>(
    app,
    `select inline_bytes, blob_key from ${table} where ${key} = $1`,
    [id],
  );
  if (!row) throw new Error(`There is no row ${id} in ${table}`);
  const file = row.blob_key === null ? null : await blobFile(app, row.blob_key);
  const bytes = file === null ? (row.inline_bytes as Buffer) : await readFile(file);
  const overwrite = async (other: Buffer): Promise<void> => {
    if (file !== null) await writeFile(file, other);
    else await query(app, `update ${table} set inline_bytes = $2 where ${key} = $1`, [id, other]);
  };
  return {
    id,
    bytes,
    blobKey: row.blob_key,
    overwrite,
    restore: async () => {
      await overwrite(bytes);
      if (table === 'checkpoints') await forgetDamage(app, id);
    },
    remove: async () => rm(file as string),
  };
}

/** Id of the stack's newest checkpoint. */
export async function headOf(app: TestApp, stack: { organization: string }): Promise<string> {
  const [row] = await query<{ checkpoint_id: string }>(
    app,
    `select s.checkpoint_id from stacks s join projects p on p.id = s.project_id
     join organizations o on o.id = p.organization_id where o.name = $1`,
    [stack.organization],
  );
  if (!row?.checkpoint_id) throw new Error('The stack has no checkpoint');
  return row.checkpoint_id;
}

export function flipBit(bytes: Buffer, position: number, bit: number): Buffer {
  const flipped = Buffer.from(bytes);
  flipped[position] = (flipped[position] as number) ^ (1 << bit);
  return flipped;
}

/** Positions spread over all of `length` bytes, including both ends. */
export function spread(length: number, count: number): number[] {
  return Array.from({ length: count }, (_, at) => Math.floor((at * (length - 1)) / (count - 1)));
}

export async function blobFile(app: TestApp, key: string): Promise<string> {
  const name = key.replaceAll('/', '~');
  const files = await readdir(path.join(app.dataDir, 'blobs'), { recursive: true });
  const file = files.find((found) => path.basename(found) === name);
  if (file === undefined) throw new Error(`There is no file of ${key}`);
  return path.join(app.dataDir, 'blobs', file);
}

async function forgetDamage(app: TestApp, id: string): Promise<void> {
  await query(app, 'update checkpoints set damaged_at = null where id = $1', [id]);
}

/** A response as a strict HTTP client reads it. */
export interface StrictAnswer {
  readonly status: number;
  /** Whether the response had a well-formed end. */
  readonly isWhole: boolean;
  readonly isChunked: boolean;
  /** Inflated; null when it is not complete gzip. */
  readonly body: Buffer | null;
}

/** GET over its own socket, with or without gzip. */
export function getStrictly(url: string, auth: string, encoding: 'gzip' | 'identity'): Promise<StrictAnswer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: auth, accept: 'application/vnd.pulumi+9', 'accept-encoding': encoding };
    const request = get(url, { headers, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', () => {});
      response.on('close', () => {
        const bytes = Buffer.concat(parts);
        resolve({
          status: response.statusCode as number,
          isWhole: response.complete,
          isChunked: response.headers['transfer-encoding'] === 'chunked',
          body: response.headers['content-encoding'] === 'gzip' ? gunzipOrNull(bytes) : bytes,
        });
      });
    });
    request.on('error', reject);
  });
}

function gunzipOrNull(bytes: Buffer): Buffer | null {
  try {
    return gunzipSync(bytes);
  } catch {
    return null;
  }
}
