import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { openBlobStore } from '../../src/shared/platform/blobs/blob-stores.ts';
import { runBlobs, seedBlobs, smallBlobs, Traffic } from '../support/blob-move.ts';
import { query } from '../support/database.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { describeOnS3 } from './s3-under-test.ts';

const blobsBefore = 400;

await describeOnS3('versitygw', (server) => {
  test('blobs move from files to a bucket, to another bucket and back to files, and no write or export fails', async () => {
    const { accessKeyId, createBucket, endpoint, region, secretAccessKey } = server();
    const keys = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };
    await using first = await createTestApp({ settings: smallBlobs });
    const profiles = path.join(first.dataDir, 'profiles');
    writeFileSync(profiles, `[two]\naws_access_key_id=${accessKeyId}\naws_secret_access_key=${secretAccessKey}\n`);
    const credentials = { ...keys, AWS_SHARED_CREDENTIALS_FILE: profiles };
    Object.assign(process.env, credentials);
    await createBucket('one');
    await createBucket('two');
    const shared = { database: first.database, dataDir: first.dataDir };
    await using second = await createTestApp({ ...shared, settings: smallBlobs });
    const settings = {
      ...smallBlobs,
      HOLDFAST_S3_BUCKET: 'one',
      HOLDFAST_S3_ENDPOINT: endpoint,
      HOLDFAST_S3_REGION: region,
    };
    await seedBlobs(first, blobsBefore);
    const traffic = await Traffic.start([first, second], 2, { pauseMs: 50 });
    const move = async (to: string, env: Record<string, string>, ...finish: string[]): Promise<void> => {
      for (const [command, ...words] of [
        ['copy', '--to', to],
        ['verify', '--json'],
        ['switch'],
        ['finish', ...finish],
      ] as [string, ...string[]][]) {
        await traffic.goOn();
        const { code, stderr, stdout } = await runBlobs(first, { ...credentials, ...env }, command, ...words);
        expect([command, code, stderr.trim()]).toEqual([command, 0, expect.not.stringContaining('holdfast:')]);
        if (command !== 'verify') continue;
        const { compared, faults, lost } = JSON.parse(stdout);
        expect([faults, lost]).toEqual([[], []]);
        expect(compared).toBeGreaterThanOrEqual(blobsBefore);
      }
      await traffic.goOn();
    };

    await move(`s3://one?endpoint=${endpoint}&region=${region}`, {}, '--empty');
    await using left = await openBlobStore({ kind: 'files', directory: path.join(first.dataDir, 'blobs') }).then(
      closing,
    );
    expect(await countBlobs(left)).toBe(0);
    // Servers with the settings of the new place, and servers with the old ones, run at once.
    await using third = await createTestApp({ ...shared, settings });
    traffic.apps.push(third);
    await traffic.goOn();
    const unknown = await runBlobs(first, { ...credentials, ...settings }, 'copy', '--to', 's3://two?profile=three');
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('blob store')]);
    await move(`s3://two/holdfast/blobs?endpoint=${endpoint}&profile=two`, settings);
    const back = path.join(first.dataDir, 'back');
    await move(back, settings, '--empty');
    await traffic.stop();

    expect(traffic.failures).toEqual([]);
    expect(traffic.writes).toBeGreaterThan(40);
    expect(existsSync(path.join(back, 'blobs'))).toBe(true);
    await using place = await openBlobStore({ kind: 'files', directory: back }).then(closing);
    expect(await place.findAbsent(await neededBlobs(first))).toEqual([]);
  });
});

/** Keys of all blobs that a state needs. */
async function neededBlobs(app: TestApp): Promise<string[]> {
  const rows = await query<{ key: string }>(
    app,
    'select distinct blob_key as key from checkpoints where blob_key is not null',
  );
  return rows.map(({ key }) => key);
}

async function countBlobs(store: BlobStore): Promise<number> {
  return (await store.list('checkpoints/')).blobs.length;
}

function closing(store: BlobStore): BlobStore & AsyncDisposable {
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}
