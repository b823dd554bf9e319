import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { operatorSource } from '../../src/shared/audit/audit-event.ts';
import { createAuditRepository } from '../../src/shared/audit/audit-repository.ts';
import { type BlobStore, BlobStoreUnavailableError } from '../../src/shared/platform/blobs/blob-store.ts';
import { storeAuditHeads } from '../../src/workers/audit/chain-audit.ts';
import { exportAudit } from '../../src/workers/audit/export-audit.ts';
import { encodeVersions } from '../../src/workers/state/encode-versions.ts';
import { Scrubber } from '../../src/workers/state/scrub.ts';
import { chainAll } from '../support/chain-all.ts';
import { query } from '../support/database.ts';
import { createEncoder, importVersions, makeDue, versionsOf } from '../support/encode-versions.ts';
import { createEncodingApp } from '../support/encoding-app.ts';
import { createStack, type TestStack } from '../support/state.ts';
import type { TestApp } from '../support/test-app.ts';

/** Keys that the store refuses to read and to write, as S3 does with an object of another owner. */
let isDenied: (key: string) => boolean = () => false;
let isAway = false;
let written: string[] = [];

function withFaults(store: BlobStore): BlobStore {
  const deny = (key: string): void => {
    if (isAway || isDenied(key)) throw new BlobStoreUnavailableError('denied', `access denied to ${key}`);
  };
  const faulty: Partial<BlobStore> = {
    put: async (key, ...others) => {
      deny(key);
      written.push(key);
      return store.put(key, ...others);
    },
    open: async (key, ...others) => {
      deny(key);
      return store.open(key, ...others);
    },
    check: async (timeoutMs) => {
      if (isAway) throw new BlobStoreUnavailableError('unreachable', 'the store is away');
      return store.check(timeoutMs);
    },
  };
  return new Proxy(store, {
    get: (object, name) => {
      const value: unknown = Reflect.get(faulty, name) ?? Reflect.get(object, name);
      return typeof value === 'function' ? value.bind(object) : value;
    },
  });
}

let app: TestApp;
let stop: () => Promise<void>;

beforeAll(async () => {
  ({ app, stop } = await createEncodingApp(withFaults));
});
afterAll(() => stop());
afterEach(() => {
  isDenied = () => false;
  isAway = false;
});

async function postponed(name: string): Promise<number> {
  const { values } = await app.context.metrics.tasksPostponed.get();
  return values.find(({ labels }) => labels.name === name)?.value ?? 0;
}

/** A stack with versions in blobs, and the keys of these. */
async function stackInBlobs(): Promise<{ stack: TestStack; keys: Set<string> }> {
  const stack = await createStack(app);
  written = [];
  await importVersions(app, stack, 4);
  return { stack, keys: new Set(written) };
}

const codecsOf = async (stack: TestStack) => (await versionsOf(app, stack)).map(({ codec }) => codec);

test('older versions are encoded, though the blobs of a stack cannot be read', async () => {
  const bad = await stackInBlobs();
  const good = await stackInBlobs();
  isDenied = (key) => bad.keys.has(key);
  await makeDue(app);
  expect(await encodeVersions(app.context, { encoder: createEncoder(app) })).toBeGreaterThan(0);
  expect(await codecsOf(good.stack)).toContain('chunks');
  expect(await codecsOf(bad.stack)).not.toContain('chunks');
  expect(await postponed('encode-versions')).toBeGreaterThan(0);
  isDenied = () => false;
  await makeDue(app, bad.stack);
  await encodeVersions(app.context, { encoder: createEncoder(app) });
  expect(await codecsOf(bad.stack)).toContain('chunks');
});

test('a store that is away ends the run, and nothing is postponed', async () => {
  await stackInBlobs();
  await makeDue(app);
  const before = await postponed('encode-versions');
  isAway = true;
  await expect(encodeVersions(app.context, { encoder: createEncoder(app) })).rejects.toThrow('the store is away');
  expect(await postponed('encode-versions')).toBe(before);
});

test('documents are checked, though the first that is due cannot be read', async () => {
  const bad = await stackInBlobs();
  const good = await stackInBlobs();
  const due = (stack: TestStack, days: number) =>
    query(
      app,
      `update checkpoints set checked_at = now() - make_interval(days => $2) where stack_id in (select s.id from stacks s
         join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id where o.name = $1)`,
      [stack.organization, days],
    );
  await due(bad.stack, 90);
  await due(good.stack, 60);
  isDenied = (key) => bad.keys.has(key);
  await new Scrubber(app.context, { bytesPerSecond: 1e9, periodSeconds: 30 * 86_400 }).run(1_000);
  const [left] = await query<{ count: number }>(
    app,
    `select count(*)::int as count from checkpoints c join stacks s on s.id = c.stack_id join projects p on p.id = s.project_id
       join organizations o on o.id = p.organization_id
     where o.name = $1 and c.checked_at < now() - interval '30 days'`,
    [good.stack.organization],
  );
  expect(left).toEqual({ count: 0 });
  expect(await postponed('scrub')).toBeGreaterThan(0);
});

test('the audit log of an organization is exported and its head stored, though those of another cannot be written', async () => {
  const ids: string[] = [];
  for (const name of ['first', 'second', 'third']) {
    const { id } = await app.context.identity.ensureOrganization(name);
    ids.push(id);
    await createAuditRepository(app.context.db).insert(operatorSource('somebody'), {
      action: 'stack.tags',
      organization: name,
      object: 'a',
      details: {},
    });
  }
  await chainAll(app);
  const [bad] = ids.toSorted() as [string];
  isDenied = (key) => key.includes(bad);
  const chains = async (column: string) =>
    (await query<{ id: string }>(app, `select organization_id as id from audit_chains where ${column} = batch`)).map(
      ({ id }) => id,
    );
  for (const [write, column] of [
    [exportAudit, 'exported_batch'],
    [storeAuditHeads, 'stored_batch'],
  ] as const) {
    await expect(write(app.context)).rejects.toThrow('access denied');
    const done = await chains(column);
    expect(ids.filter((id) => !done.includes(id))).toEqual([bad]);
  }
  isDenied = () => false;
  for (const write of [exportAudit, storeAuditHeads]) expect(await write(app.context)).toBe(1);
});
