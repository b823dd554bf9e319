import { readdirSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from '@jest/globals';
import { deploymentOf } from '../../bench/support/raw-client.ts';
import { copyBlobs } from '../../src/shared/backup/backup-content.ts';
import { backUp } from '../../src/shared/backup/run-backup.ts';
import { BlobStoreUnavailableError } from '../../src/shared/platform/blobs/blob-store.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { MemoryBlobs } from '../support/memory-blobs.ts';
import { createStack, gzipped, ok, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

// A blob that is opened and not read to its end must be closed: a leaked descriptor lives until it is garbage
// collected, a leaked connection to S3 forever.

const app = testApp({ settings: { HOLDFAST_INLINE_BYTES: '1' } });

const onLinux = process.platform === 'linux' ? test : test.skip;

/** A stack whose state is a blob of more than one chunk. */
async function createLargeStack(): Promise<TestStack> {
  const stack = await createStack(app);
  const body = gzipped(deploymentOf(3_000_000));
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...body }));
  return stack;
}

function openBlobs(): string[] {
  const targets = readdirSync('/proc/self/fd').map((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`);
    } catch {
      // The descriptor used to list the folder.
      return '';
    }
  });
  return targets.filter((target) => target.startsWith(app.dataDir));
}

const untilClosed = () => until(() => openBlobs().length === 0, 'all blobs are closed');

onLinux('a rename leaves no blob open', async () => {
  const stack = await createLargeStack();
  await ok(app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'other' } }));
  await untilClosed();
});

onLinux('a rename that is refused leaves no blob open', async () => {
  const stack = await createLargeStack();
  await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
  const refused = await app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'other' } });
  expect(refused.status).toBe(409);
  await untilClosed();
});

onLinux('an export whose client has gone leaves no blob open', async () => {
  const stack = await createLargeStack();
  const head = await app.context.states.readHead(stack);
  expect(openBlobs()).toHaveLength(1);
  // As Fastify does with the response.
  Readable.from(head?.state.bytes ?? []).destroy();
  await untilClosed();
});

onLinux('an export that is not read to its end leaves no blob open', async () => {
  const stack = await createLargeStack();
  const head = await app.context.states.readHead(stack);
  for await (const chunk of head?.state.bytes ?? []) {
    expect(chunk.length).toBeGreaterThan(0);
    break;
  }
  await untilClosed();
});

onLinux('an export that is only asked for its head leaves no blob open', async () => {
  const stack = await createLargeStack();
  const answer = await app.call('HEAD', `${stack.path}/export`, { auth: stack.auth });
  expect([200, 404]).toContain(answer.status);
  await untilClosed();
});

/** A store that takes no copy of a blob, and says so before it reads the bytes. */
class FullBlobs extends MemoryBlobs {
  override async put(key: string, body: AsyncIterable<Buffer>): Promise<{ storedBytes: number }> {
    if (!key.startsWith('backups/')) throw new BlobStoreUnavailableError('faulty', 'no space left on device');
    return super.put(key, body);
  }
}

onLinux('a backup whose target is full leaves no blob open, and neither does a restore', async () => {
  const { blobs } = app.context;
  await blobs.put('audit/x', once(Buffer.from('x')));
  const full = 'no space left on device';
  await expect(backUp({ source: app.context, recipients: [], target: new FullBlobs() })).rejects.toThrow(full);
  expect(openBlobs().filter((file) => file.includes('audit~x'))).toEqual([]);

  const backups = await FileBlobStore.open({ directory: path.join(app.dataDir, 'backups') });
  const manifest = await backUp({ source: app.context, recipients: [], target: backups });
  const restoring = copyBlobs(backups, new FullBlobs(), manifest, { onProgress: () => {}, decrypt: null });
  await expect(restoring).rejects.toThrow(full);
  expect(openBlobs().filter((file) => file.includes('/blobs~'))).toEqual([]);
  await backups.close();
});
