import { randomBytes, randomUUID } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { type FindingKind, type FsckReport, findingKinds } from '../../src/cli/fsck/finding.ts';
import { fsck } from '../../src/cli/fsck/fsck.ts';
import { mainKinds } from '../../src/cli/fsck/main-kinds.ts';
import { createStorageRepository } from '../../src/shared/access/quotas/storage-repository.ts';
import { runAdminWith } from '../support/admin.ts';
import { insertEvents, pack, sampleEvent } from '../support/archived-events.ts';
import { chainAll } from '../support/chain-all.ts';
import { blobFile, flipBit, headOf, storedBytes } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { keyRingOf } from '../support/key-ring.ts';
import { PolicyCalls, smallArchive } from '../support/policy-packs.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { stackId } from '../support/state-index.ts';
import { masterKeys, testApp } from '../support/test-app.ts';
import { append, complete } from '../support/update-calls.ts';
import { createHook } from '../support/webhooks.ts';

// Each kind of damage is made by hand in an installation that is sound, found, and repaired or left alone.

const app = testApp({
  settings: { HOLDFAST_INLINE_BYTES: '350', HOLDFAST_DELETED_STACK_DAYS: '7', reconcileObjectsPerSecond: 1e9 },
});
const ring = keyRingOf(masterKeys);
/** With versions in rows and in the blob store, tags, secrets, a webhook, archived events and a running update. */
let stack: TestStack;
let running: RunningUpdate;
/** With an ended update whose journal is kept, and an index. */
let other: TestStack;
let journaled: string;
/** Has the same state as `other`. */
let twin: TestStack;
let deleted: string;
let ids: { stack: string; other: string };
const orphan = 'checkpoints/orphan';

const run = (fixes: boolean, parts: Partial<Parameters<typeof fsck>[1]> = {}): Promise<FsckReport> =>
  fsck(app.context, { fixes, sample: null, ring, ...parts });
const put = (key: string) =>
  app.context.blobs.put(
    key,
    (async function* () {
      yield Buffer.from('x');
    })(),
  );
const sql = (text: string, values: readonly unknown[] = []) => query(app, text, values);

beforeAll(async () => {
  stack = await createStack(app);
  await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { zone: 'eu' } }));
  await importState(stack, 1, 'small');
  await importState(stack, 60, 'large');
  await ok(app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body: { plaintext: 'c2VjcmV0' } }));
  await createHook(app, stack, 'stack', { payloadUrl: 'https://hooks.example.com/x', secret: 'a secret of a hook' });
  await new PolicyCalls(app, stack).publish({ archive: smallArchive });
  const ended = await startUpdate(app, stack);
  await ok(complete(app, ended));
  await insertEvents(
    app,
    ended.id,
    Array.from({ length: 80 }, (_, at) => sampleEvent(at)),
  );
  await pack(app, ended.id);
  other = await createStack(app);
  const update = await startUpdate(app, other, { journal: true });
  journaled = update.id;
  await ok(append(app, update, creation(1, 'saved', other)));
  await ok(complete(app, update));
  await sql(
    `insert into drift_runs (update_id, stack_id, organization_id, number, state)
     select id, stack_id, organization_id, number, 'done' from updates where id = $1`,
    [journaled],
  );
  await importState(other, 1, 'twin');
  twin = await createStack(app);
  await importState(twin, 1, 'twin');
  const gone = await createStack(app);
  deleted = await stackId(app, gone);
  await ok(app.call('DELETE', gone.path, { auth: gone.auth }));
  ids = { stack: await stackId(app, stack), other: await stackId(app, other) };
  await sql('insert into blobs (key) values ($1)', [orphan]);
  await app.context.indexer.index(ids.other);
  await sql('delete from state_index_due where stack_id = $1', [ids.other]);
  await sql(
    'insert into organization_quotas (organization_id, kept_bytes) select id, 1000000 from organizations where name = $1',
    [twin.organization],
  );
  running = await startUpdate(app, stack, { journal: true });
  await ok(append(app, running, creation(1, 'running', stack)));
  await chainAll(app);
});

function importState({ auth, path }: TestStack, count: number, note: string) {
  return ok(app.call('POST', `${path}/import`, { auth, body: deployment(count, note) }));
}

/** Changes a column of one row. Returns what changes it back. */
async function change(table: string, column: string, value: string, where: string): Promise<() => Promise<unknown>> {
  const [row] = await sql(`select ${column}::text as before from ${table} where ${where}`);
  if (!row) throw new Error(`No row of ${table} where ${where}`);
  const [type] = await sql(
    `select format_type(atttypid, null) as name from pg_attribute where attrelid = $1::regclass and attname = $2`,
    [table, column],
  );
  await sql(`update ${table} set ${column} = ${value} where ${where}`);
  return () =>
    sql(`update ${table} set ${column} = $1::text::${String(type?.['name'])} where ${where}`, [row['before']]);
}

/** Columns that say when or how often something was written, or how it is compressed. */
const passing =
  '{checked_at,damaged_at,changed_at,updated_at,edition,indexed_at,measured_at,took_ms,unreferenced_since,compacted_at,ended_at,next_compaction_at,compaction_attempts,compaction_claim,compaction_claimed_until}';

const counts = ['runs', 'failed', 'cancelled', 'previews', 'failed_previews', 'waits', 'run_ms', 'waited_ms'];
const sums = counts.map((name) => `sum(d.${name})::bigint`).join(', ');
const keys = `organization_id, day, project_name, ${counts.join(', ')}`;
/** The sums of projects with what is still to be added: changes may cancel each other out. */
const projectDays = `select concat_ws(' ', 'project days', organization_id, day, project_name, ${sums}) as line
  from (select ${keys} from project_days union all select ${keys} from project_day_changes) d
  group by organization_id, day, project_name having (${sums}) <> (${counts.map(() => 0).join(', ')})`;
const deliveryKeys = 'organization_id, day, project_name, kind, seconds';
const projectDeliveries = `select concat_ws(' ', 'project deliveries', ${deliveryKeys}, sum(count)) as line
  from (select ${deliveryKeys}, count from project_day_deliveries
    union all select ${deliveryKeys}, count from project_day_delivery_changes) d
  group by ${deliveryKeys} having sum(count) <> 0`;

const organizationSums = 'sum(stacks), sum(state_bytes), sum(journal_bytes), sum(event_bytes)';
const stackCounts = `select concat_ws(' ', 'sums', organization_id, ${organizationSums}) as line from stack_counts
  group by organization_id having (${organizationSums}) <> (0, 0, 0, 0)`;

/** All rows of all tables, with the sums of projects and organizations as they will be. */
async function rows(): Promise<string[]> {
  const tables = await sql(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
     and relname !~ '^(audit_|project_day|stack_counts|maintenance_runs|rate_counters|failed_lookups|api_tokens|users)' order by 1`,
  );
  const each = tables.map(
    ({ name }) => `select '${String(name)} ' || (to_jsonb(t) - $1::text[])::text as line from ${String(name)} t`,
  );
  return (await sql([...each, projectDays, projectDeliveries, stackCounts].join(' union all '), [passing]))
    .map(({ line }) => String(line))
    .sort();
}

const kindsOf = ({ counts }: FsckReport): string[] => [...counts.keys()].sort();

interface Damage {
  /** Makes the damage. Returns what undoes it, unless the repair does. */
  readonly make: () => Promise<unknown>;
  readonly object: RegExp;
  /** Kinds of findings that the damage leads to as well. */
  readonly also?: readonly FindingKind[];
  /** The damage has added rows that the repair keeps. */
  readonly keepsRows?: true;
}

const ofOther = () => `stack_id = '${ids.other}'`;
const isOther = () => `id = '${ids.other}'`;

const damages: Record<string, Damage & { readonly kind: FindingKind }> = {
  'a stack that lists do not show': {
    kind: 'listing',
    make: () => sql(`delete from stack_listings where stack_id = $1`, [ids.stack]),
    object: /org.*\/proj\/dev$/,
  },
  'a stack that lists show under a tag that it does not have': {
    kind: 'listing',
    make: () =>
      sql(
        `insert into stack_listings select organization_id, 'none', project_name, stack_name, '', stack_id from stack_listings
         where stack_id = $1 and tag_name = ''`,
        [ids.stack],
      ),
    object: /^proj\/dev under the tag none$/,
  },
  'a stack of which lists show another last update': {
    kind: 'listing',
    make: () => sql(`update stacks set last_status = 'failed' where id = $1`, [ids.other]),
    object: /org.*\/proj\/dev$/,
  },
  'a stack that is not in the order of changes': {
    kind: 'change-listing',
    make: () => sql(`delete from stack_changes where stack_id = $1`, [ids.stack]),
    object: /org.*\/proj\/dev$/,
  },
  'a stack that lists show as failed although it is not': {
    kind: 'change-listing',
    make: () => sql(`update stack_changes set trouble = 'failed' where stack_id = $1`, [ids.stack]),
    object: /org.*\/proj\/dev$/,
  },
  'a stack that does not exist in the order of changes': {
    kind: 'change-listing',
    make: () =>
      sql(
        `insert into stack_changes select gen_random_uuid(), organization_id, 'p', 'ghost', now() from stack_changes limit 1`,
      ),
    object: /^p\/ghost$/,
  },
  'a deleted stack that is in no list': {
    kind: 'restorable',
    make: () => sql(`update stacks set restorable_in = null where id = $1`, [deleted]),
    object: /org.*\/proj\/dev$/,
  },
  'a stack that an ended update locks': {
    kind: 'lock',
    make: () => sql(`update stacks set active_update_id = $2 where id = $1`, [ids.other, journaled]),
    object: /org.*\/proj\/dev$/,
  },
  'a stack that its running update does not lock': {
    kind: 'lock',
    make: () => sql(`update stacks set active_update_id = null where id = $1`, [ids.stack]),
    object: /org.*\/proj\/dev$/,
  },
  'a stack with a version below that of its newest update': {
    kind: 'version',
    make: () => sql(`update stacks set stack_version = 1 where id = $1`, [ids.other]),
    object: /org.*\/proj\/dev$/,
  },
  'a stack with the state of an earlier version': {
    kind: 'head',
    make: async () => {
      const [earlier] = await sql(`select checkpoint_id as id from updates where id = $1`, [journaled]);
      const undo = await change('stacks', 'checkpoint_id', `'${String(earlier?.['id'])}'`, isOther());
      return async () => {
        await undo();
        await sql('delete from state_index_due where stack_id = $1', [ids.other]);
      };
    },
    object: /org.*\/proj\/dev$/,
  },
  'an update that begins at the state of another stack': {
    kind: 'foreign-state',
    make: async () => change('updates', 'base_checkpoint_id', `'${await headOf(app, twin)}'`, `id = '${journaled}'`),
    object: /^update /,
  },
  'an update that counts for no organization': {
    kind: 'update-organization',
    make: () => sql(`update updates set organization_id = null where id = $1`, [journaled]),
    object: /^update /,
  },
  'a drift run that counts for no organization': {
    kind: 'update-organization',
    make: () => sql(`update drift_runs set organization_id = null where update_id = $1`, [journaled]),
    object: /^update /,
  },
  'a journal of another stack': {
    kind: 'update-stack',
    make: () => sql(`update journals set stack_id = $2 where update_id = $1`, [journaled, ids.stack]),
    object: /^update /,
  },
  'an approval of a stack that does not exist': {
    kind: 'approval',
    make: async () => {
      const body = { commit: 'a'.repeat(40), kind: 'update' };
      await ok(app.call('POST', `${other.path}/approvals`, { auth: other.auth, body }));
      await sql(`update update_approvals set stack_id = gen_random_uuid()`);
    },
    object: /^approval /,
  },
  'a journal that lacks an entry': {
    kind: 'journal-counter',
    make: async () => {
      const [lost] = await sql(`delete from journal_entries where update_id = $1 returning *`, [running.id]);
      await sql(`delete from journal_entries where update_id = $1 and sequence_id = $2`, [
        running.id,
        lost?.['sequence_id'],
      ]);
      return async () => {
        await sql(`delete from journal_entries where update_id = $1`, [running.id]);
        for (const [at, entry] of creation(1, 'running', stack).entries())
          await sql(`insert into journal_entries values ($1, $2, $3)`, [running.id, at + 1, JSON.stringify(entry)]);
      };
    },
    object: /^update /,
  },
  'a journal that counts as running after its update': {
    kind: 'journal-open',
    make: () => sql(`update journals set ended_at = null, compacted_at = null where update_id = $1`, [journaled]),
    object: /^update /,
  },
  'a journal that nobody has replayed': {
    kind: 'journal-waiting',
    make: () =>
      sql(`update journals set compacted_at = null, ended_at = now() - interval '2 hours' where update_id = $1`, [
        journaled,
      ]),
    object: /^update /,
  },
  'a journal that could not be replayed': {
    kind: 'journal-invalid',
    make: () => change('journals', 'compaction_error', `'entry 2 is invalid'`, `update_id = '${journaled}'`),
    object: /^update /,
  },
  'a state with a flipped bit and no copy': {
    kind: 'document-damaged',
    make: async () => {
      const [first] = await sql(`select checkpoint_id as id from updates where stack_id = $1 and stack_version = 1`, [
        ids.stack,
      ]);
      const stored = await storedBytes(app, String(first?.['id']));
      await stored.overwrite(flipBit(stored.bytes, stored.bytes.length >> 1, 2));
      return () => stored.restore();
    },
    object: /org.*\/proj\/dev, version 1$/,
  },
  'a state with a flipped bit and a copy': {
    kind: 'document-damaged',
    make: async () => {
      const stored = await storedBytes(app, await headOf(app, twin));
      await stored.overwrite(flipBit(stored.bytes, stored.bytes.length >> 1, 2));
    },
    object: /org.*\/proj\/dev, version 1$/,
  },
  'a snapshot of a journal with wrong bytes': {
    kind: 'snapshot-damaged',
    make: () =>
      sql(
        `insert into journal_snapshots (update_id, entries, sha256, size_bytes, codec, inline_bytes)
         select $1, 1, sha256, size_bytes, codec, '\\x00' from checkpoints where codec <> 'chunks' limit 1`,
        [running.id],
      ),
    object: /^update /,
  },
  'archived events with wrong bytes': {
    kind: 'segment-damaged',
    make: async () => {
      const [row] = await sql(`select id, inline_bytes, blob_key from event_segments limit 1`);
      if (row?.['blob_key']) {
        const file = await blobFile(app, String(row['blob_key']));
        const bytes = await readFile(file);
        await writeFile(file, flipBit(bytes, bytes.length >> 1, 2));
        return async () => {
          await writeFile(file, bytes);
          await sql('update event_segments set damaged_at = null');
        };
      }
      const undo = await change('event_segments', 'inline_bytes', `'\\x00'`, `id = '${String(row?.['id'])}'`);
      return async () => {
        await undo();
        await sql('update event_segments set damaged_at = null');
      };
    },
    object: /events of update/,
  },
  'a policy pack with wrong bytes': {
    kind: 'archive-damaged',
    make: async () => {
      const undo = await change('policy_pack_versions', 'inline_bytes', `'\\x00'`, `inline_bytes is not null`);
      return async () => {
        await undo();
        await sql('update policy_pack_versions set damaged_at = null');
      };
    },
    object: /\/pack /,
  },
  'an object that the store has lost': {
    kind: 'blob-missing',
    also: ['document-damaged'],
    make: async () => {
      const [row] = await sql(`select id from checkpoints where blob_key is not null and codec <> 'chunks' limit 1`);
      const stored = await storedBytes(app, String(row?.['id']));
      const file = await blobFile(app, stored.blobKey as string);
      await rm(file);
      return async () => {
        await writeFile(file, stored.bytes);
        await sql('update checkpoints set damaged_at = null');
      };
    },
    object: /^checkpoints\//,
  },
  'an object that the database does not know': {
    kind: 'blob-unknown',
    keepsRows: true,
    make: async () => {
      await put('checkpoints/unknown');
      return async () => {
        await app.context.blobs.delete('checkpoints/unknown');
        await sql(`delete from blobs where key = 'checkpoints/unknown'`);
      };
    },
    object: /^checkpoints\/unknown$/,
  },
  'an object that the sweep would never find': {
    kind: 'blob-unswept',
    make: () => sql(`update blobs set unreferenced_since = null where key = $1`, [orphan]),
    object: /^checkpoints\/orphan$/,
  },
  'a store that two installations share': {
    kind: 'blob-shared',
    make: async () => {
      const marker = `installations/${randomUUID()}`;
      await put(marker);
      return () => app.context.blobs.delete(marker);
    },
    object: /^installations\//,
  },
  'objects whose data key is gone': {
    kind: 'blob-key',
    make: () => change('blobs', 'encryption_key_id', 'gen_random_uuid()', `key = '${orphan}'`),
    object: /^data key /,
  },
  'a data key that no master key unwraps': {
    kind: 'data-key',
    make: () => change('encryption_keys', 'wrapped_key', `'\\x00'`, `stack_id = '${ids.stack}'`),
    object: /org.*\/proj\/dev, version 1$/,
  },
  'a webhook with a secret that no key decrypts': {
    kind: 'webhook-secret',
    make: () => change('webhooks', 'secret', `'\\x00'`, 'secret is not null'),
    object: /webhook/,
  },
  'an audit event that was changed': {
    kind: 'audit',
    make: async () => {
      const [event] = await sql(`select number from audit_events order by number limit 1`);
      return change('audit_events', 'object', `'another'`, `number = ${String(event?.['number'])}`);
    },
    object: /^organization |^server$/,
  },
  'an index of an earlier state': {
    kind: 'index-behind',
    make: () => sql(`update state_indexes set checkpoint_id = null, version = null where stack_id = $1`, [ids.other]),
    object: /org.*\/proj\/dev$/,
  },
  'an index with the mark of a stack that refers to others': {
    kind: 'index-behind',
    make: () =>
      sql(
        `update state_indexes i set referring_in = c.organization_id from stack_changes c
         where c.stack_id = i.stack_id and i.stack_id = $1`,
        [ids.other],
      ),
    object: /org.*\/proj\/dev$/,
  },
  'an index that lacks a resource': {
    kind: 'index-wrong',
    make: () => sql(`delete from stack_resources where ${ofOther()}`),
    object: /org.*\/proj\/dev, version 2$/,
  },
  'an index with a resource that the state does not have': {
    kind: 'index-wrong',
    make: () => sql(`update stack_resources set key = 'ghost', digest = 'ghost' where ${ofOther()}`),
    object: /org.*\/proj\/dev, version 2$/,
  },
};

test('a sound installation has no findings, whatever runs in it', async () => {
  await measure();
  const totals: Record<string, number | null> = {};
  const onProgress = (what: string, count: number, total: number | null): void => {
    totals[what] = total;
    expect(total ?? count).toBeGreaterThanOrEqual(count);
  };
  const { checked, counts, findings, isSound } = await run(false, { onProgress });
  expect({ findings, isSound, kinds: counts.size }).toEqual({ findings: [], isSound: true, kinds: 0 });
  for (const what of ['stacks', 'updates', 'journals', 'checkpoints', 'segments', 'archives', 'heads', 'data keys'])
    expect([what, checked[what]]).toEqual([what, expect.any(Number)]);
  expect(checked['audit events']).toBeGreaterThan(10);
  for (const what of ['stacks', 'updates', 'checkpoints', 'segments', 'archives', 'heads', 'batches of the audit log'])
    expect([what, totals[what]]).toEqual([what, expect.any(Number)]);
  expect(totals['stacks']).toBe(checked['stacks']);
});

async function measure(): Promise<void> {
  const [row] = await sql('select id from organizations where name = $1', [twin.organization]);
  await createStorageRepository(app.context.db).measure(String(row?.['id']));
}

test('every kind of finding has its damage here, but for those of whole runs', () => {
  const made = new Set(Object.values(damages).map(({ kind }) => kind));
  expect(
    Object.keys(mainKinds)
      .filter((kind) => !made.has(kind as FindingKind))
      .sort(),
  ).toEqual(['master-key', 'not-checked']);
});

/** The rows without any damage, to which each test returns. */
let sound: readonly string[];

describe.each(Object.keys(damages))('%s', (name) => {
  const { also = [], keepsRows, kind, make, object } = damages[name] as (typeof damages)[string];
  const isLeft = findingKinds[kind].repair === null || name.endsWith('no copy');

  test(isLeft ? 'is found, and left alone' : 'is found, and repaired without any other change', async () => {
    await measure();
    sound ??= await rows();
    const undo = await make();
    const damaged = await rows();
    const found = await run(false);
    expect(kindsOf(found)).toEqual([kind, ...also].sort());
    expect(found.findings.find((finding) => finding.kind === kind)).toEqual({
      kind,
      object: expect.stringMatching(object),
      detail: found.findings.find((finding) => finding.kind === kind)?.detail,
      isFixed: false,
    });
    expect(found.isSound).toBe(false);
    expect(await rows()).toEqual(damaged);
    const fixed = await run(true);
    expect({ kinds: kindsOf(fixed), isSound: fixed.isSound }).toEqual({
      kinds: [kind, ...also].sort(),
      isSound: !isLeft,
    });
    if (isLeft) expect(await rows()).toEqual(damaged);
    else if (!keepsRows) expect(await rows()).toEqual(sound);
    if (isLeft || keepsRows) {
      await (undo as () => Promise<unknown>)();
      expect(await rows()).toEqual(sound);
    }
    // What the comparison of rows does not show is a finding of the next test.
  });
});

test('nothing is left of all the damage', async () => {
  expect((await run(false)).findings).toEqual([]);
});

test('a sample reads fewer documents, and a check that fails does not stop the others', async () => {
  const { checked } = await run(false, { sample: 1 });
  expect([checked['checkpoints'], checked['heads']]).toEqual([1, 1]);
  await sql('alter table update_approvals rename to update_approvals_away');
  const undo = await change('blobs', 'unreferenced_since', 'null', `key = '${orphan}'`);
  const { findings } = await run(false);
  await sql('alter table update_approvals_away rename to update_approvals');
  await undo();
  expect(findings.map(({ kind, object }) => [kind, object])).toEqual([
    ['not-checked', 'rows of approvals'],
    ['blob-unswept', orphan],
  ]);
});

test('the command reports as text and JSON, exits with 1 while something is wrong, and records repairs', async () => {
  const settings = { HOLDFAST_MASTER_KEYS: masterKeys };
  const sound = await runAdminWith(settings, app, 'fsck', '--all');
  expect([sound.code, sound.stdout]).toEqual([0, expect.stringMatching(/^Checked .*\nNothing is wrong\.\n$/)]);
  await sql(`delete from stack_listings where stack_id = $1`, [ids.stack]);
  const wrong = await runAdminWith(settings, app, 'fsck');
  expect(wrong.code).toBe(1);
  expect(wrong.stdout).toMatch(
    /^listing: Lists of stacks .*\n {2}Run `holdfast admin fsck --fix`\.\n {2}--fix .*\n {2}org.*\/proj\/dev\n/,
  );
  const keys = await runAdminWith(
    { HOLDFAST_MASTER_KEYS: `k1:${randomBytes(32).toString('base64')}` },
    app,
    'fsck',
    '--json',
  );
  const { findings, ok: isSound } = JSON.parse(keys.stdout);
  expect([keys.code, isSound]).toEqual([1, false]);
  expect(findings.map(({ kind }: { kind: string }) => kind).sort()).toEqual(['listing', 'master-key']);
  const fixed = await runAdminWith(settings, app, 'fsck', '--fix');
  expect([fixed.code, fixed.stdout]).toEqual([0, expect.stringContaining('Everything was repaired.')]);
  const recorded = `select details from audit_events where action = 'installation.repair'`;
  await runAdminWith(settings, app, 'reconcile');
  expect(await sql(recorded)).toEqual([{ details: '{"command":"admin fsck --fix"}' }]);
  await runAdminWith(settings, app, 'reconcile', '--adopt-all');
  expect(await sql(recorded)).toContainEqual({ details: '{"command":"admin reconcile --adopt-all"}' });
  const without = await runAdminWith({}, app, 'fsck');
  expect([without.code, without.stdout]).toEqual([0, expect.stringContaining('Keys were not checked')]);
});
