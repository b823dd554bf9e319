import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectRetentionCommand,
  PutObjectRetentionCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { expect, test } from '@jest/globals';
import { findBackups, pruneBackups } from '../../src/shared/backup/backup-list.ts';
import { backupKeys } from '../../src/shared/backup/manifest.ts';
import { backUp } from '../../src/shared/backup/run-backup.ts';
import { readSmall } from '../../src/shared/backup/stored-bytes.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { S3BlobStore } from '../../src/shared/platform/blobs/s3-blob-store.ts';
import { damageEach, damageOf, openPlain } from '../support/backup-damage.ts';
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
    const location = `s3://backups/nightly/holdfast?endpoint=${endpoint}&region=${region}`;
    const source = { databaseUrl: app.database.url, dataDir: app.dataDir, settings: credentials };
    for (const keep of ['9', '1']) {
      const { code, stderr } = await runBackup(source, 'create', '--to', location, '--keep', keep);
      expect([code, stderr]).toEqual([0, '']);
    }
    const listed = await runBackup(source, 'list', '--from', location);
    expect(listed.stdout.trim().split('\n')).toHaveLength(1);
    const verified = await runBackup({ dataDir: home, settings: credentials }, 'verify', '--from', location);
    expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining('no faults')]);

    const settings = {
      ...credentials,
      HOLDFAST_S3_BUCKET: 'restored',
      HOLDFAST_S3_ENDPOINT: endpoint,
      HOLDFAST_S3_REGION: region,
    };
    const options = { bucket: 'restored', endpoint, region, forcePathStyle: true, requestTimeoutMs: 60_000 };
    const blobs = new S3BlobStore({ ...options, accessKeyId, secretAccessKey });
    await using database = await createEmptyDatabase();
    const restored = await runBackup(
      { databaseUrl: database.url, dataDir: home, settings },
      'restore',
      '--from',
      location,
    );
    expect([restored.code, restored.stderr]).toEqual([0, '']);
    await using copy = await createTestApp({
      database: { url: database.url, ownerUrl: database.url, [Symbol.asyncDispose]: async () => {} },
      overrides: { blobs },
    });
    const exported = (of: typeof app) => ok(of.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect((await exported(copy)).text).toBe((await exported(app)).text);
    rmSync(home, { recursive: true, force: true });
  });

  test('damaged objects in a bucket are found and named', async () => {
    const { createBucket, endpoint, ...access } = server();
    await createBucket('damaged');
    await using app = await createTestApp();
    await createStack(app);
    const options = { endpoint, forcePathStyle: true, requestTimeoutMs: 60_000, bucket: 'damaged', ...access };
    const [target, other] = ['one/', 'other/'].map((prefix) => new S3BlobStore({ ...options, prefix }));
    if (!target || !other) throw new Error('there are two');
    const { blobs } = app.context;
    await blobs.put('audit/some', once(Buffer.from('bytes')));
    for (const each of [target, other]) await backUp({ source: app.context, recipients: [], target: each });
    const found = await damageEach(target, await openPlain(target), {
      other: { store: other, manifest: await openPlain(other) },
      perKind: 3,
    });
    expect(found.filter(({ isNamed }) => !isNamed)).toEqual([]);
    expect(found.length).toBeGreaterThan(20);
    await target.close();
    await other.close();
  });

  test('a prune leaves what an object lock protects, and each backup locks the blobs that it needs', async () => {
    const { accessKeyId, endpoint, region, secretAccessKey } = server();
    const credentials = { accessKeyId, secretAccessKey };
    const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
    await client.send(new CreateBucketCommand({ Bucket: 'locked', ObjectLockEnabledForBucket: true }));
    await using app = await createTestApp();
    await createStack(app);
    const { blobs } = app.context;
    await blobs.put('audit/some', once(Buffer.from('bytes')));
    const options = {
      endpoint,
      region,
      ...credentials,
      bucket: 'locked',
      forcePathStyle: true,
      requestTimeoutMs: 60_000,
    };
    const open = (days: number) => new S3BlobStore({ ...options, lock: { mode: 'GOVERNANCE', days } });
    const [short, long] = [open(1), open(30)];
    const inDays = async (key: string) =>
      Math.round((Number((await short.stat(key))?.lockedUntil) - Date.now()) / 86_400_000);
    await backUp({ source: app.context, recipients: [], target: short });
    expect(await inDays('blobs/audit/some')).toBe(1);
    const second = await backUp({ source: app.context, recipients: [], target: long });
    expect(await inDays(backupKeys.manifest(second.id))).toBe(30);
    expect(await inDays('blobs/audit/some')).toBeGreaterThanOrEqual(30);

    const unlocked = new S3BlobStore(options);
    await backUp({ source: app.context, recipients: [], target: unlocked });
    const pruned = await pruneBackups(short, 1);
    expect(pruned).toMatchObject({ backups: [], blobs: 0, locked: [expect.any(String), second.id] });
    expect(await findBackups(short)).toHaveLength(3);
    for (const each of [short, long, unlocked]) await each.close();
    client.destroy();
  });

  test('a compliance lock cannot be shortened, and protects each object also from users who may bypass governance', async () => {
    const { accessKeyId, endpoint, region, secretAccessKey } = server();
    const credentials = { accessKeyId, secretAccessKey };
    const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
    await client.send(new CreateBucketCommand({ Bucket: 'compliance', ObjectLockEnabledForBucket: true }));
    await using app = await createTestApp();
    const { blobs } = app.context;
    await blobs.put('audit/some', once(Buffer.from('bytes')));
    const target = new S3BlobStore({
      ...{ endpoint, region, ...credentials, bucket: 'compliance', forcePathStyle: true, requestTimeoutMs: 60_000 },
      lock: { mode: 'COMPLIANCE', days: 30 },
    });
    const { id } = await backUp({ source: app.context, recipients: [], target });
    for (const key of [backupKeys.manifest(id), 'blobs/audit/some']) {
      const object = { Bucket: 'compliance', Key: key };
      const { Retention } = await client.send(new GetObjectRetentionCommand(object));
      expect(Retention).toMatchObject({ Mode: 'COMPLIANCE' });
      expect(Number(Retention?.RetainUntilDate)).toBeGreaterThan(Date.now() + 29 * 86_400_000);
      // The bucket of this server keeps no versions: on AWS, a delete marker would hide the version that stays.
      const bypassing = { ...object, BypassGovernanceRetention: true };
      const soon = new Date(Date.now() + 86_400_000);
      for (const command of [
        new DeleteObjectCommand(bypassing),
        new PutObjectRetentionCommand({ ...bypassing, Retention: { Mode: 'COMPLIANCE', RetainUntilDate: soon } }),
        new PutObjectRetentionCommand({
          ...bypassing,
          Retention: { Mode: 'GOVERNANCE', RetainUntilDate: Retention?.RetainUntilDate },
        }),
      ])
        await expect(client.send(command as DeleteObjectCommand)).rejects.toMatchObject({ name: 'AccessDenied' });
      expect(await readSmall(target, key)).not.toHaveLength(0);
    }
    expect(await damageOf(target)).toEqual([]);
    await target.close();
    client.destroy();
  });
});
