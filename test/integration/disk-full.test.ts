import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { SmallDisk } from '../support/small-disk.ts';
import { exportState } from '../support/stack-state.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { createTestApp } from '../support/test-app.ts';
import { cancel, complete, saveVerbatim } from '../support/update-calls.ts';

// The file store; S3 with a full disk is covered by the cluster fault tests.

const disk = SmallDisk.mount(64 * 1024 * 1024);
afterAll(() => disk?.[Symbol.dispose]());
const withDisk = disk ? test : test.skip;

withDisk(
  'a full disk rejects writes with a retryable error, stores nothing partially, and writes work again once there is space',
  async () => {
    const { directory } = disk as SmallDisk;
    await using app = await createTestApp({ dataDir: directory, settings: { HOLDFAST_INLINE_BYTES: '1' } });
    const filesBelow = (folder: string) =>
      readdirSync(path.join(directory, 'blobs', folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => name);
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(saveVerbatim(app, update, 1, deployment(1)));
    const kept = (await exportState(app, stack)).text;
    const stored = filesBelow('blobs');
    expect(stored).toHaveLength(1);

    // Too much for the rest of a page, both in the process itself and through the queue.
    const large = [200_000, 400_000].map((bytes) => deployment(1, randomBytes(bytes).toString('base64')));
    const other = await createStack(app);
    disk?.fill();
    try {
      for (const document of large) {
        const refused = await saveVerbatim(app, update, 2, document);
        expect([refused.status, refused.headers['retry-after']]).toEqual([503, expect.any(String)]);
      }
      const imported = await app.call('POST', `${other.path}/import`, { auth: other.auth, body: large[0] as object });
      expect(imported.status).toBe(503);
      expect((await exportState(app, stack)).text).toBe(kept);
      expect(await query(app, `select 1 from updates where kind = 'import'`)).toEqual([]);
      expect(filesBelow('unfinished')).toEqual([]);
      expect(filesBelow('blobs')).toEqual(stored);
      // Calls that need no space still work.
      await ok(cancel(app, other, await startUpdate(app, other)));
    } finally {
      disk?.freeCapacity();
    }
    await ok(saveVerbatim(app, update, 2, large[1] as object));
    expect(JSON.parse((await exportState(app, stack)).text)).toEqual(large[1]);
    await ok(complete(app, update));
  },
);
