import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';

/** Bytes that a server stores: rows with their indexes, and blobs. */
export interface Footprint {
  readonly tables: number;
  readonly blobs: number;
}

/** Inspects the data directory of an embedded server. */
export class DataFolder {
  readonly #dataDir: string;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /** Measures the storage, after a vacuum of the tables. */
  async footprint(): Promise<Footprint> {
    const tables = [
      'journal_entries',
      'journal_snapshots',
      'checkpoints',
      'updates',
      'blobs',
      'version_chunks',
      'checkpoint_chunks',
    ];
    for (const table of tables) await this.query(`vacuum ${table}`);
    const sizes = tables.map((table) => `pg_total_relation_size('${table}')`).join(' + ');
    const [row] = await this.query(`select (${sizes})::float8 as bytes`);
    return { tables: row?.['bytes'] as number, blobs: await this.#blobBytes() };
  }

  /** Counts journal entries, journal snapshots and unreferenced blobs. */
  async leftovers(): Promise<number> {
    const [row] = await this.query(`
      select (select count(*) from journal_entries)::int + (select count(*) from journal_snapshots)::int
        + (select count(*) from blobs b where not exists (select 1 from checkpoints c where c.blob_key = b.key)
          and not exists (select 1 from version_chunks p where p.blob_key = b.key))::int as count`);
    return row?.['count'] as number;
  }

  /** Bytes of the event rows of these updates, as stored, without their index. */
  async eventRowBytes(updateIds: readonly string[]): Promise<number> {
    const [row] = await this.query(
      'select coalesce(sum(pg_column_size(e.*)), 0)::float8 as bytes from engine_events e where update_id = any($1::uuid[])',
      [updateIds],
    );
    return row?.['bytes'] as number;
  }

  /** Bytes of the segments of these updates: compressed events, and the rows that point at them. */
  async segmentBytes(updateIds: readonly string[]): Promise<{ segments: number; stored: number; index: number }> {
    const [row] = await this.query(
      `select count(*)::integer as segments, coalesce(sum(stored_bytes), 0)::float8 as stored,
         coalesce(sum(pg_column_size(g.*) - coalesce(octet_length(inline_bytes), 0)), 0)::float8 as index
       from event_segments g where update_id = any($1::uuid[])`,
      [updateIds],
    );
    return row as { segments: number; stored: number; index: number };
  }

  async databaseUrl(): Promise<string> {
    const folder = path.join(this.#dataDir, 'postgres');
    const password = (await readFile(path.join(folder, 'password'), 'utf8')).trim();
    const port = (await readFile(path.join(folder, 'cluster', 'postmaster.pid'), 'utf8')).split('\n')[3];
    return `postgres://holdfast:${password}@127.0.0.1:${port}/postgres`;
  }

  async #blobBytes(): Promise<number> {
    // Not its parent, which also contains temporary uploads.
    const folder = path.join(this.#dataDir, 'blobs', 'blobs');
    let bytes = 0;
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (entry.isFile()) bytes += await sizeOf(path.join(entry.parentPath, entry.name));
    }
    return bytes;
  }

  /** Runs a statement in the server's database. */
  async query(statement: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({
      connectionString: await this.databaseUrl(),
      // Sessions without a name keep events from being archived.
      application_name: 'bench',
    });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(statement, [...values])).rows;
    } finally {
      await client.end();
    }
  }
}

/** 0 if the sweep has just deleted the file. */
async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
