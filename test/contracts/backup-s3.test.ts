import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { S3BlobStore } from '../../src/shared/platform/blobs/s3-blob-store.ts';
import { runBackup } from '../support/backups.ts';
import { createEmptyDatabase } from '../support/empty-database.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { createTestApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';
import { describeOnS3 } from './s3-under-test.ts';

await describeOnS3('versitygw', (server) => {
  test('backups in a bucket are made, verified, pruned and restored into another bucket', async () => {
    const { accessKeyId, createBucket, endpoint, region, secretAccessKey } = server();
    await createBucket('backups');
    await createBucket('restored');
    const home = mkdtempSync(path.join(tmpdir(), 'holdfast-backup-s3-'));
    await using app = await createTestApp();
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const body = deployment(3_000, 'x'.repeat(2_000));
    await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body }));
    await ok(complete(app, update));

    const credentials = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };
    const place = `s3://backups/nightly/holdfast?endpoint=${endpoint}&region=${region}`;
    const source = { databaseUrl: app.database.url, dataDir: app.dataDir, settings: credentials };
    for (const keep of ['9', '1']) {
      const { code, stderr } = await runBackup(source, 'create', '--to', place, '--keep', keep);
      expect([code, stderr]).toEqual([0, '']);
    }
    const listed = await runBackup(source, 'list', '--from', place);
    expect(listed.stdout.trim().split('\n')).toHaveLength(1);
    const verified = await runBackup({ dataDir: home, settings: credentials }, 'verify', '--from', place);
    expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining('no faults')]);

    const settings = {
      ...credentials,
      HOLDFAST_S3_BUCKET: 'restored',
      HOLDFAST_S3_ENDPOINT: endpoint,
      HOLDFAST_S3_REGION: region,
      HOLDFAST_S3_PATH_STYLE: 'true',
    };
    const options = { bucket: 'restored', endpoint, region, forcePathStyle: true, requestTimeoutMs: 10_000 };
    const blobs = new S3BlobStore({ ...options, accessKeyId, secretAccessKey });
    await using database = await createEmptyDatabase();
    const restored = await runBackup(
      { databaseUrl: database.url, dataDir: home, settings },
      'restore',
      '--from',
      place,
    );
    expect([restored.code, restored.stderr]).toEqual([0, '']);
    await using copy = await createTestApp({
      database: { url: database.url, ownerUrl: database.url, [Symbol.asyncDispose]: async () => {} },
      overrides: { blobs },
    });
    const exported = (of: typeof app) => ok(of.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect((await exported(copy)).text).toBe((await exported(app)).text);
    rmSync(home, { recursive: true, force: true });
  }, 240_000);
});
