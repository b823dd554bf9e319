import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import { createBlobRepository } from '../../src/shared/state/checkpoints/blob-repository.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

interface Plan {
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly 'Temp Written Blocks': number;
}

/** Runs the statements of a repository and adds up the pages that they touch. */
function countPages(): { readonly rows: ReturnType<typeof createBlobRepository>; readonly pages: () => number } {
  let pages = 0;
  const explain = async (query: { sql: string; values: unknown[] }) => {
    const statement = query.sql.replace(/\$slonik_(\d+)/g, '$$$1');
    const { rows } = await client.query(`explain (analyze, buffers, format json) ${statement}`, query.values);
    const { Plan: plan } = rows[0]['QUERY PLAN'][0] as { Plan: Plan };
    pages += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'] + plan['Temp Written Blocks'];
    return [];
  };
  const queryable = { any: explain, query: explain } as unknown as Queryable;
  return { rows: createBlobRepository(queryable), pages: () => pages };
}

/** Adds blobs that checkpoints refer to. */
async function addLive(count: number): Promise<void> {
  await client.query('set session_replication_role = replica');
  await client.query(
    `with added as (
       insert into blobs (key, unreferenced_since)
       select 'checkpoints/aa/' || md5(random()::text) || n, null from generate_series(1, $1) n returning key
     )
     insert into checkpoints (stack_id, sha256, size_bytes, stored_bytes, codec, resource_count, blob_key)
     select gen_random_uuid(), '', 1, 1, 'zstd', 0, key from added`,
    [count],
  );
  await client.query('set session_replication_role = origin');
  await client.query('analyze blobs, checkpoints');
}

async function pagesOfOneSweep(): Promise<number> {
  const { rows, pages } = countPages();
  await rows.clipWaits(3600);
  await rows.lockUnreferenced(86_400, 200);
  await rows.listDeletions(200);
  return pages();
}

test('a sweep that finds nothing reads no more pages, however many blobs are in use', async () => {
  await addLive(100);
  const few = await pagesOfOneSweep();
  await addLive(30_000);
  const many = await pagesOfOneSweep();
  expect(many).toBeLessThanOrEqual(few + 10);
});

test('marking a batch as pending deletion costs the same per blob, however many others are in use', async () => {
  await addLive(30_000);
  await client.query(
    `insert into blobs (key, unreferenced_since) select 'checkpoints/bb/' || n, now() - interval '2 days' from generate_series(1, 200) n`,
  );
  const keys = Array.from({ length: 200 }, (_, index) => `checkpoints/bb/${index + 1}`);
  const { rows, pages } = countPages();
  await rows.lockUnreferenced(86_400, 200);
  await rows.markForDeletion(keys);
  // Index lookups in three tables and the changed rows; scanning the tables alone would touch over a thousand pages.
  expect(pages() / keys.length).toBeLessThan(50);
  const { rows: left } = await client.query('select 1 from blobs where pending_deletion_since is not null');
  expect(left).toHaveLength(200);
});
