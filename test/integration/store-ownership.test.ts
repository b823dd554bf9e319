import { mkdtempSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { runDoctor } from '../../src/cli/doctor/run-doctor.ts';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { ownsStore, takeStore } from '../../src/shared/state/blobs/store-ownership.ts';
import { dropOldAudit } from '../../src/workers/audit/audit-retention.ts';
import { storeAuditHeads } from '../../src/workers/audit/chain-audit.ts';
import { exportAudit } from '../../src/workers/audit/export-audit.ts';
import { secondStoreTasks } from '../../src/workers/state/second-store-tasks.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { runAdminCommand, runAdminWith } from '../support/admin.ts';
import { letBlobsAge, storedKeys } from '../support/blob-rows.ts';
import { chainAll } from '../support/chain-all.ts';
import { query } from '../support/database.ts';
import { exportState } from '../support/stack-state.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { complete, saveState } from '../support/update-calls.ts';

/** One bucket, which both databases use. */
let dataDir: string;
let original: TestDatabase;
let clone: TestDatabase | null;
beforeEach(async () => {
  dataDir = mkdtempSync(path.join(tmpdir(), 'holdfast-owner-'));
  original = await createTestDatabase();
  clone = null;
});
afterEach(async () => {
  await original[Symbol.asyncDispose]();
  await clone?.[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true, force: true });
});

const openApp = (database: TestDatabase): Promise<TestApp> =>
  createTestApp({
    database,
    dataDir,
    settings: { HOLDFAST_INLINE_BYTES: '1', blobGraceSeconds: 1, HOLDFAST_BLOB_RETENTION_SECONDS: '1' },
  });

const ageNonce = (app: TestApp) =>
  query(app, `update installation set store_nonce_at = store_nonce_at - interval '2 minutes'`);
const storedNonce = async (app: TestApp) => (await query(app, 'select store_nonce as nonce from installation'))[0];

/** A stack with a state, deleted for good. Returns the keys that only its state needs. */
async function deleteState(app: TestApp, stack: TestStack): Promise<void> {
  await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
  await query(app, 'delete from stacks where deleted_at is not null');
}

/** Returns how many objects were deleted. */
async function sweepAll(app: TestApp): Promise<number> {
  await letBlobsAge(app, 12);
  return sweepBlobs(app.context);
}

/** The original with one state, and a clone that was made before the original's nonce changed. */
async function writeAndClone(): Promise<TestStack> {
  let stack: TestStack;
  {
    await using app = await openApp(original);
    stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(saveState(app, update, 3));
    await ok(complete(app, update));
    await sweepBlobs(app.context);
  }
  clone = await createTestDatabase(original);
  await using app = await openApp(original);
  await ageNonce(app);
  await sweepBlobs(app.context);
  return stack;
}

test('a clone of the database deletes nothing that the original needs', async () => {
  const stack = await writeAndClone();
  {
    await using app = await openApp(clone as TestDatabase);
    const objects = await storedKeys(app);
    await deleteState(app, stack);
    expect(await sweepAll(app)).toBe(0);
    expect(await storedKeys(app)).toEqual(objects);
    expect(await app.context.metrics.registry.metrics()).toMatch(/^holdfast_blob_sweeps_refused_total 1$/m);
  }
  await using app = await openApp(original);
  await exportState(app, stack);
  await deleteState(app, stack);
  expect(await sweepAll(app)).toBeGreaterThan(0);
});

/** Adds blobs whose objects are due to be deleted. */
const addDeletions = (app: TestApp) =>
  query(
    app,
    `insert into blobs (key, stored_bytes, pending_deletion_since, delete_at)
     select 'checkpoints/' || n, 1, now(), now() - interval '1 minute' from generate_series(1, 450) n`,
  );

/** The store with other methods. */
const replaced = (blobs: BlobStore, methods: Partial<BlobStore>): BlobStore =>
  new Proxy(blobs, { get: (_, name: keyof BlobStore) => methods[name] ?? blobs[name]?.bind(blobs) });

test('a sweep during which another copy takes the store over ends with what it deletes at once', async () => {
  await using app = await openApp(original);
  await addDeletions(app);
  expect(await ownsStore(app.context)).toBe(true);
  const [owner] = (await app.context.blobs.list('owners/')).blobs;
  const deleted: string[] = [];
  const { blobs } = app.context;
  const takenOver = replaced(blobs, {
    delete: async (key) => {
      if (deleted.length === 0) await blobs.put(owner?.key ?? '', bytesOf(Buffer.from('another'))());
      deleted.push(key);
    },
  });
  expect(await sweepBlobs({ ...app.context, blobs: takenOver })).toBe(deleted.length);
  expect(deleted).toHaveLength(16);
});

test('a sweep that was frozen while it renewed its ownership, until a restored database had taken over, deletes nothing', async () => {
  await writeAndClone();
  await using app = await openApp(original);
  await addDeletions(app);
  await ageNonce(app);
  const { blobs } = app.context;
  const frozen: string[] = [];
  const deleted: string[] = [];
  const late = replaced(blobs, {
    put: async (key, body, options) => {
      frozen.push(key);
      await using restored = await openApp(clone as TestDatabase);
      expect(await runAdminCommand(restored, 'take-over')).toMatchObject({ code: 0 });
      return blobs.put(key, body, options);
    },
    delete: async (key) => void deleted.push(key),
  });
  expect(await sweepBlobs({ ...app.context, blobs: late })).toBe(0);
  expect([frozen, deleted]).toEqual([[expect.stringMatching(/^owners\//)], []]);
}, 120_000);

test.each([
  [
    'the copy queue',
    async (app: TestApp) => {
      await query(
        app,
        `insert into blob_copies_due (key, is_deletion, bytes) select 'audit/gone-' || n, true, 0 from generate_series(1, 40) n`,
      );
    },
    async (context: TestApp['context']) => {
      const { blobs } = context;
      const [task] = secondStoreTasks(context, { main: blobs, second: blobs });
      await task?.run(new AbortController().signal, { position: null, holder: 'test' });
    },
  ],
  [
    'dropped audit batches',
    async (app: TestApp) => {
      const { auth, path: stackPath } = await createStack(app);
      for (const at of ['1', '2', '3']) {
        await ok(app.call('PATCH', `${stackPath}/tags`, { auth, body: { at } }));
        await chainAll(app);
        await storeAuditHeads(app.context);
      }
      await query(app, 'delete from audit_events');
      await query(
        app,
        `update audit_batches set month = date_trunc('month', now() at time zone 'UTC' - interval '4 months')::date`,
      );
    },
    async (context: TestApp['context']) => {
      const { config } = context;
      await dropOldAudit({ ...context, config: { ...config, audit: { ...config.audit, retentionDays: 45 } } });
    },
  ],
])(
  'deletions by %s that were frozen while they renewed the ownership, until a restored database had taken over, delete nothing',
  async (_, prepare, run) => {
    await writeAndClone();
    await using app = await openApp(original);
    await prepare(app);
    await ageNonce(app);
    const { blobs } = app.context;
    let isFrozen = false;
    const deleted: string[] = [];
    const late = replaced(blobs, {
      put: async (key, body, options) => {
        if (!isFrozen) {
          isFrozen = true;
          await using restored = await openApp(clone as TestDatabase);
          expect(await runAdminCommand(restored, 'take-over')).toMatchObject({ code: 0 });
        }
        return blobs.put(key, body, options);
      },
      delete: async (key) => void deleted.push(key),
    });
    await run({ ...app.context, blobs: late as typeof blobs });
    expect([isFrozen, deleted]).toEqual([true, []]);
  },
  120_000,
);

test('a sweep whose database fails deletes no more, although the store works', async () => {
  await using app = await openApp(original);
  await addDeletions(app);
  const { blobRows, blobs } = app.context;
  const deleted: string[] = [];
  const failing = replaced(blobs, { delete: async (key) => void deleted.push(key) });
  const noteDeleted = async (): Promise<never> => {
    throw new Error('the database is away');
  };
  const sweep = sweepBlobs({ ...app.context, blobs: failing, blobRows: { ...blobRows, noteDeleted } });
  await expect(sweep).rejects.toThrow('the database is away');
  expect(deleted).toHaveLength(16);
});

test('a clone drops its own audit events, and leaves the heads of the original', async () => {
  {
    await using app = await openApp(original);
    const { auth, path: stackPath } = await createStack(app);
    for (const at of ['1', '2', '3']) {
      await ok(app.call('PATCH', `${stackPath}/tags`, { auth, body: { at } }));
      await chainAll(app);
      await storeAuditHeads(app.context);
    }
  }
  await writeAndClone();
  const isOld = `update audit_batches set month = date_trunc('month', now() at time zone 'UTC' - interval '4 months')::date`;
  const dropAll = async (app: TestApp): Promise<{ before: number; after: number }> => {
    const { config } = app.context;
    await query(app, 'delete from audit_events');
    await query(app, isOld);
    const heads = async () => (await app.context.blobs.list('audit/heads/')).blobs.length;
    const before = await heads();
    await dropOldAudit({ ...app.context, config: { ...config, audit: { ...config.audit, retentionDays: 45 } } });
    return { before, after: await heads() };
  };
  const dropAgain = async (app: TestApp, isAway: boolean): Promise<string[]> => {
    const { blobs, config } = app.context;
    const listed: string[] = [];
    const counting: BlobStore = new Proxy(blobs, {
      get: (_, name: keyof BlobStore) =>
        name !== 'list'
          ? blobs[name]?.bind(blobs)
          : async (prefix: string, after?: string) => {
              listed.push(prefix);
              if (isAway) throw new Error('denied');
              return blobs.list(prefix, after);
            },
    });
    const audit = { ...config.audit, retentionDays: 45 };
    await dropOldAudit({ ...app.context, blobs: counting, config: { ...config, audit } }).catch((error: Error) => {
      if (!isAway || error.message !== 'denied') throw error;
    });
    return listed;
  };
  {
    await using app = await openApp(clone as TestDatabase);
    const { after, before } = await dropAll(app);
    expect(before).toBeGreaterThan(1);
    expect(after).toBe(before);
    // A copy that owns the store later deletes them then.
    await takeStore(app.context);
    expect(await dropAgain(app, true)).not.toEqual([]);
  }
  await using app = await openApp(original);
  await takeStore(app.context);
  await query(app, 'delete from audit_events');
  await query(app, isOld);
  // Heads that cannot be deleted are deleted by the next run.
  expect(await dropAgain(app, true)).not.toEqual([]);
  const { after, before } = await dropAll(app);
  expect(after).toBeLessThan(before);
  expect(await query(app, 'select 1 from audit_batches')).toEqual([]);
  // Nothing was dropped since.
  expect(await dropAgain(app, false)).toEqual([]);
});

test('a clone writes no audit events and heads among those of the original', async () => {
  const stack = await writeAndClone();
  for (const [database, isOwner] of [
    [clone as TestDatabase, false],
    [original, true],
  ] as const) {
    await using app = await openApp(database);
    await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { at: '1' } }));
    await chainAll(app);
    const written = async () => (await app.context.blobs.list('audit/')).blobs.map(({ key }) => key).toSorted();
    const before = await written();
    const warnings: unknown[] = [];
    const logger = { warn: (text: unknown) => warnings.push(text) } as unknown as typeof app.context.logger;
    expect([(await exportAudit({ ...app.context, logger })) > 0, (await storeAuditHeads(app.context)) > 0]).toEqual([
      isOwner,
      isOwner,
    ]);
    if (!isOwner) expect(await written()).toEqual(before);
    expect(warnings).toEqual(
      isOwner ? [] : [expect.stringContaining('another copy of this database owns the blob store')],
    );
  }
});

test('commands refuse the store of another database, and leave no mark there', async () => {
  const other = mkdtempSync(path.join(tmpdir(), 'holdfast-other-'));
  {
    await using database = await createTestDatabase();
    await using app = await createTestApp({ database, dataDir: other });
    // The databases of tests are copies of one.
    await query(app, 'update installation set id = gen_random_uuid()');
    expect((await runAdminCommand(app, 'reconcile')).code).toBe(0);
  }
  await writeAndClone();
  await using app = await openApp(original);
  const marks = async () => readdir(path.join(other, 'blobs'), { recursive: true });
  const before = await marks();
  const wrong = { HOLDFAST_DATA_DIR: other };
  for (const words of [['audit', 'verify'], ['reconcile']]) {
    const { code, stderr } = await runAdminWith(wrong, app, ...words);
    expect([words, code, stderr]).toEqual([words, 1, expect.stringContaining('not the blob store of this database')]);
    expect((await runAdminCommand(app, ...words)).code).toBe(0);
  }
  // As after a restore, which may begin with a new store.
  await query(app, 'update installation set outgoing_held_since = clock_timestamp()');
  const { code, stderr } = await runAdminWith(wrong, app, 'reconcile');
  expect([code, stderr]).toEqual([1, expect.stringContaining('that of another installation')]);
  expect(await marks()).toEqual(before);
  rmSync(other, { recursive: true, force: true });
}, 120_000);

test('the command lets the clone delete, and the original no longer', async () => {
  const stack = await writeAndClone();
  {
    await using app = await openApp(clone as TestDatabase);
    const { code, stdout } = await runAdminCommand(app, 'take-over');
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('owns the blob store') });
    await deleteState(app, stack);
    expect(await sweepAll(app)).toBeGreaterThan(0);
  }
  await using app = await openApp(original);
  expect(await ownsStore(app.context)).toBe(false);
  await takeStore(app.context);
  expect(await ownsStore(app.context)).toBe(true);
});

test('a process that ends between the database and the store loses nothing', async () => {
  await using app = await openApp(original);
  expect(await ownsStore(app.context)).toBe(true);
  for (let round = 0; round < 3; round++) {
    await query(
      app,
      `update installation set store_nonce_before = store_nonce, store_nonce = gen_random_uuid(), store_nonce_at = now()`,
    );
    expect(await ownsStore(app.context)).toBe(true);
  }
});

test('a nonce is replaced after a minute, and also if the clock was set back', async () => {
  await using app = await openApp(original);
  const nonces: unknown[] = [];
  const look = async (): Promise<void> => {
    expect(await ownsStore(app.context)).toBe(true);
    nonces.push((await storedNonce(app))?.['nonce']);
  };
  await look();
  await look();
  await ageNonce(app);
  await look();
  await query(app, `update installation set store_nonce_at = now() + interval '1 hour'`);
  await look();
  expect(nonces[1]).toBe(nonces[0]);
  expect(new Set(nonces).size).toBe(3);
});

test('many processes at once all own the store of their database', async () => {
  await using app = await openApp(original);
  for (let round = 0; round < 5; round++) {
    expect(await Promise.all(Array.from({ length: 8 }, () => ownsStore(app.context)))).not.toContain(false);
    await ageNonce(app);
  }
});

test('an empty bucket, as after a move, belongs to the database that finds it', async () => {
  await using app = await openApp(original);
  expect(await ownsStore(app.context)).toBe(true);
  const owners = async () => (await app.context.blobs.list('owners/')).blobs.map(({ key }) => key);
  for (const key of await owners()) await app.context.blobs.delete(key);
  expect(await ownsStore(app.context)).toBe(true);
  expect(await owners()).toHaveLength(1);
});

test('a process whose settings name another store does not start, unless its database was restored or takes it over', async () => {
  await using app = await openApp(original);
  expect(await ownsStore(app.context)).toBe(true);
  await using empty = await createTestApp({ database: original });
  await ageNonce(app);
  expect(await ownsStore(app.context)).toBe(true);
  const openElsewhere = (): Promise<TestApp> => createTestApp({ database: original, dataDir: empty.dataDir });
  await expect(openElsewhere()).rejects.toThrow('is not the blob store of this database');
  const found = await runDoctor(() => empty.context.config, 60_000);
  expect(found.find(({ name }) => name === 'blob-location')).toMatchObject({
    status: 'fail',
    seen: expect.stringContaining('is not the blob store of this database'),
  });
  await query(app, 'update installation set outgoing_held_since = now()');
  await (await openElsewhere())[Symbol.asyncDispose]();
  await query(app, 'update installation set outgoing_held_since = null');
  await takeStore(empty.context);
  await (await openElsewhere())[Symbol.asyncDispose]();
});
