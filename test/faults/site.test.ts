import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { holdfastOutput } from '../../testkit/admin-command.ts';
import { type PostgresPair, startPostgresPair } from '../../testkit/postgres-pair.ts';

let pair: PostgresPair;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-sites-'));
  pair = await startPostgresPair();
  await run(pair.primaryUrl, 'migrate');
});
afterAll(async () => {
  await pair?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

function run(databaseUrl: string, ...words: string[]): Promise<string> {
  const settings = { HOLDFAST_DATA_DIR: join(folder, 'data'), HOLDFAST_SECOND_STORE: join(folder, 'second') };
  return holdfastOutput({ databaseUrl }, settings, ...words);
}

const site = async (databaseUrl: string, ...words: string[]) =>
  JSON.parse(await run(databaseUrl, 'admin', 'site', ...words, '--json'));

/** As after the first site has moved its blobs. */
async function noteMove(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(`insert into blob_places (phase, main_id, main_url) values ('settled', gen_random_uuid(), $1)`, [
    join(folder, 'moved'),
  ]);
  await client.end();
}

test('a site with a streaming standby is demoted, and the standby promoted once nothing else writes', async () => {
  const { primaryUrl, standbyUrl } = pair;
  expect(await site(primaryUrl, 'status')).toMatchObject({
    role: 'primary',
    postgres: { standbys: [{ state: 'streaming', sync: 'sync' }] },
  });
  expect(await site(standbyUrl, 'status')).toMatchObject({ role: 'standby', postgres: { isReceiving: true } });
  await expect(site(standbyUrl, 'promote', '--yes')).rejects.toThrow('The primary of this Postgres still runs');
  expect(await site(primaryUrl, 'demote')).toMatchObject({ runningUpdates: 0, readOnly: expect.anything() });
  await noteMove(primaryUrl);
  await pair.primary.kill();
  expect(await site(standbyUrl, 'promote', '--yes')).toMatchObject({ role: 'primary', term: 1, readOnly: null });
  const { phase, location } = JSON.parse(await run(standbyUrl, 'blobs', 'status', '--json'));
  expect([phase, location]).toEqual(['settled', join(folder, 'data', 'blobs')]);
  await pair.primary.start();
  expect(await site(primaryUrl, 'status')).toMatchObject({ role: 'replaced', term: 0 });
}, 600_000);
