import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createBundleRepository } from '../../src/shared/bundle/bundle-repository.ts';
import { PassphraseCrypter } from '../../src/shared/diy/passphrase-crypter.ts';
import type { Folder } from '../../src/shared/platform/blobs/folder.ts';
import { openFolder } from '../../src/shared/platform/blobs/open-folder.ts';
import { type S3Server, startS3Server } from '../../testkit/s3-server.ts';
import { runHoldfast } from '../support/admin.ts';
import { bundlePassphrase, importState, readBundled, runBundle, textOf, updateInBundle } from '../support/bundle.ts';
import { query } from '../support/database.ts';
import { exportState } from '../support/stack-state.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { masterKeys, testApp } from '../support/test-app.ts';

const app = testApp();
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-bundle-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const defaults = { region: 'us-east-1', endpoint: null, forcePathStyle: true, requestTimeoutMs: 30_000 };
let folders = 0;

/** An empty folder for a bundle; the one before is forgotten by the database. */
function newLocation(): { directory: string; location: string; run: (...options: RunOptions) => Promise<unknown> } {
  const directory = path.join(home, String(++folders));
  const location = `file://${directory}`;
  return { directory, location, run: (options) => runBundle(app, location, options) };
}
type RunOptions = [Parameters<typeof runBundle>[2]?];

/** Every file of a folder, by its name. */
async function readAll(folder: Folder, prefix = ''): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const { name } of folder.list(prefix)) {
    const parts = await Array.fromAsync((await folder.open(name)) ?? []);
    found[name] = textOf(name, Buffer.concat(parts));
  }
  return found;
}

const errorsOf = ({ organization }: TestStack) =>
  query<{ error: string }>(app, 'select error from bundled_stacks where organization = $1 and error is not null', [
    organization,
  ]);
const due = () =>
  query(
    app,
    "update bundled_stacks set postponed_until = null, checked_at = null, attempted_at = now() - interval '2 minutes'",
  );
const countOf = async (directory: string, stack: TestStack) =>
  (await readBundled(directory, stack)).checkpoint.latest.resources.length;

describe('a worker', () => {
  let s3: S3Server;
  beforeAll(async () => {
    s3 = await startS3Server('versitygw');
    await s3.createBucket('bundle');
    process.env['AWS_ACCESS_KEY_ID'] = s3.accessKeyId;
    process.env['AWS_SECRET_ACCESS_KEY'] = s3.secretAccessKey;
  });
  afterAll(() => s3.stop());
  const locations = {
    'a folder': () => newLocation().location,
    'a bucket': () => `s3://bundle/emergency?endpoint=${s3.endpoint}&s3ForcePathStyle=true&region=us-east-1`,
  };

  test.each(Object.entries(locations))(
    "keeps state, history, tags and the passphrase's keys in %s, and follows",
    async (_, locationOf) => {
      const location = locationOf();
      const stack = await createStack(app);
      const folder = await openFolder(location, defaults);
      await importState(app, stack, 2);
      await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { team: 'core' } }));
      await runBundle(app, location);
      const root = `${stack.organization}/.pulumi`;
      const files = await readAll(folder, `${stack.organization}/`);
      const history = `${root}/history/proj/dev/dev-`;
      expect(
        Object.keys(files)
          .map((name) => name.replace(/-\d+\./, '-ID.'))
          .toSorted(),
      ).toEqual(
        [
          ...[`${root}/meta.yaml`, `${root}/stacks/proj/dev.json`, `${root}/stacks/proj/dev.pulumi-tags`],
          ...[`${history}ID.checkpoint.json.gz`, `${history}ID.history.json.gz`],
          `${stack.organization}/config/proj/Pulumi.dev.yaml`,
        ].toSorted(),
      );
      const state = files[`${root}/stacks/proj/dev.json`] as string;
      expect(JSON.parse(state).checkpoint.latest).toMatchObject({ secrets_providers: { type: 'passphrase' } });
      const salt = JSON.parse(state).checkpoint.latest.secrets_providers.state.salt;
      expect(files[`${stack.organization}/config/proj/Pulumi.dev.yaml`]).toContain(salt);
      expect(JSON.stringify(files)).not.toMatch(/hunter2|"type":"service"/);

      for (let count = 3; count <= 14; count++) await importState(app, stack, count);
      await runBundle(app, location);
      const after = await readAll(folder, `${root}/`);
      expect(JSON.parse(after[`${root}/stacks/proj/dev.json`] as string).checkpoint.latest.resources).toHaveLength(14);
      expect(Object.keys(after).filter((name) => name.includes('.history.'))).toHaveLength(10);
      await folder.close();
    },
  );
});

test('a stack that was renamed is at its new place only, and a deleted one at none', async () => {
  const { directory, location, run } = newLocation();
  const folder = await openFolder(location, defaults);
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  const names = async () => Object.keys(await readAll(folder, `${stack.organization}/`)).join('\n');
  await ok(app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'live' } }));
  await run();
  expect(await names()).toContain('stacks/proj/live.json');
  expect(await names()).not.toContain('dev');
  const renamed = { ...stack, stack: 'live', path: stack.path.replace('/dev', '/live') };
  expect(await countOf(directory, renamed)).toBe(1);
  await ok(app.call('DELETE', `${renamed.path}?force=true`, { auth: stack.auth }));
  await run();
  expect(await names()).toBe(`${stack.organization}/.pulumi/meta.yaml`);
  expect(await query(app, 'select 1 from bundled_stacks where organization = $1', [stack.organization])).toEqual([]);
});

test('a deleted stack is removed while others change all the time', async () => {
  const { location, run } = newLocation();
  const [busy, gone] = [await createStack(app), await createStack(app)];
  for (const stack of [busy, gone]) await importState(app, stack, 1);
  await run();
  await ok(app.call('DELETE', `${gone.path}?force=true`, { auth: gone.auth }));
  await importState(app, busy, 2);
  let writes = 0;
  let writesBefore: number | null = null;
  const open = async (): Promise<Folder> => {
    const folder = await openFolder(location, defaults);
    const [write, remove] = [folder.write.bind(folder), folder.delete.bind(folder)];
    folder.write = async (name, body, signal) => {
      await write(name, body, signal);
      if (name === `${busy.organization}/.pulumi/stacks/proj/dev.json` && ++writes < 5)
        await importState(app, busy, 2 + writes);
    };
    folder.delete = async (name) => {
      if (name.startsWith(`${gone.organization}/`)) writesBefore ??= writes;
      await remove(name);
    };
    return folder;
  };
  await run({ open });
  expect([writes, writesBefore]).toEqual([5, 1]);
});

test('a stack that was renamed stays at its old place until it is at its new one', async () => {
  const { location, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  await ok(app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'live' } }));
  const failing = async (): Promise<Folder> => {
    const folder = await openFolder(location, defaults);
    const write = folder.write.bind(folder);
    folder.write = (name, body, signal) => {
      if (name.endsWith('live.json')) throw new Error('the disk is full');
      return write(name, body, signal);
    };
    return folder;
  };
  await run({ open: failing });
  const folder = await openFolder(location, defaults);
  const states = async () => Object.keys(await readAll(folder, `${stack.organization}/.pulumi/stacks/`)).join();
  expect(await states()).toContain('dev.json');
  await due();
  await run();
  expect(await states()).not.toContain('dev.json');
});

test('the configuration in the bundle is of the newest version: a preview, which needs less permission, changes nothing', async () => {
  const { directory, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  const running = await startUpdate(app, stack, { kind: 'preview' });
  const setConfig = (where: string, value: string) =>
    query(app, `update updates set config = $1 where ${where}`, [
      JSON.stringify({ 'proj:place': { string: value, secret: false } }),
    ]);
  await setConfig(`id = '${running.id}'`, 'of the preview');
  const ofStack = `stack_id = (select stack_id from updates where id = '${running.id}')`;
  await setConfig(`stack_version is not null and ${ofStack}`, 'of the version');
  await run();
  const text = await readFile(path.join(directory, stack.organization, 'config/proj/Pulumi.dev.yaml'), 'utf8');
  expect(text).toContain('"proj:place": "of the version"');
});

test('an entry of the history is later than the one before, also if the clock of the server was set back', async () => {
  const { location, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  await query(app, "update bundled_stacks set entry = '4000000000000000000' where organization = $1", [
    stack.organization,
  ]);
  await importState(app, stack, 2);
  await run();
  const names = Object.keys(
    await readAll(await openFolder(location, defaults), `${stack.organization}/.pulumi/history/`),
  );
  expect(names.join()).toContain('dev-4000000000000000001.history');
});

test('a removal that was interrupted ends, also if there is a new stack of the name by then', async () => {
  const { directory, location, run } = newLocation();
  const [gone, replaced] = [await createStack(app), await createStack(app)];
  for (const stack of [gone, replaced]) {
    await importState(app, stack, 1);
    await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { team: 'core' } }));
  }
  await run();
  for (const stack of [gone, replaced]) await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
  const interrupted = async (): Promise<Folder> => {
    const folder = await openFolder(location, defaults);
    const remove = folder.delete.bind(folder);
    folder.delete = async (name) => {
      if (name.endsWith('.pulumi-tags')) throw new Error('interrupted');
      await remove(name);
    };
    return folder;
  };
  await run({ open: interrupted });
  expect(await errorsOf(gone)).toEqual([{ error: 'interrupted' }]);
  await ok(
    app.call('POST', `/api/stacks/${replaced.organization}/proj`, {
      ...{ auth: replaced.auth, body: { stackName: 'dev' } },
    }),
  );
  await importState(app, replaced, 3);
  await due();
  await run();
  const folder = await openFolder(location, defaults);
  expect(Object.keys(await readAll(folder, `${gone.organization}/`))).toEqual([
    `${gone.organization}/.pulumi/meta.yaml`,
  ]);
  for (const stack of [gone, replaced]) expect(await errorsOf(stack)).toEqual([]);
  expect(await countOf(directory, replaced)).toBe(3);
});

test('a stack whose import has not ended comes into the bundle when it has', async () => {
  const { directory, location, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  await importState(app, stack, 2);
  const leave = (isUnfinished: boolean) =>
    query(
      app,
      `update stacks s set import_unfinished = $1 from projects p join organizations o on o.id = p.organization_id
       where p.id = s.project_id and o.name = $2`,
      [isUnfinished, stack.organization],
    );
  const lag = async () => (await createBundleRepository(app.context.db).readLag()).stacks;
  const behind = await lag();
  await leave(true);
  // Nobody is to write it now.
  expect(await lag()).toBe(behind - 1);
  await run();
  expect(await countOf(directory, stack)).toBe(1);
  const status = async () => (await holdfast(location, 'status')).stdout;
  const waits = `${stack.organization}/proj/dev: its import has not ended, so its changes do not come: repeat the import`;
  expect(await status()).toContain(waits);
  await leave(false);
  await run();
  expect(await countOf(directory, stack)).toBe(2);
  expect(await status()).not.toContain('its import');
});

test('changes do not wait for a first fill, nor does it wait for them; looking again at a write is no change', async () => {
  const { run } = newLocation();
  const create = async (count: number) => {
    const stacks: TestStack[] = [];
    while (stacks.length < count) stacks.push(await createStack(app));
    for (const stack of stacks) await importState(app, stack, 1);
    return stacks;
  };
  const [unfinished, ...changed] = await create(6);
  await run();
  await query(app, `update bundled_stacks set attempts = array['late'] where organization = $1`, [
    unfinished?.organization,
  ]);
  await due();
  const lacking = await create(2);
  for (const stack of changed) await importState(app, stack, 2);
  const kindOf = new Map([
    ...changed.map(({ organization }) => [organization, 'changed'] as const),
    ...lacking.map(({ organization }) => [organization, 'lacking'] as const),
  ]);
  const rows = await createBundleRepository(app.context.db).listDue(100);
  const kinds = rows.map(({ organization, waitedSeconds }) => [
    kindOf.get(organization) ?? 'unfinished',
    waitedSeconds !== null,
  ]);
  const [change, fill] = [
    ['changed', true],
    ['lacking', false],
  ];
  expect(kinds).toEqual([change, change, change, ['unfinished', false], change, change, fill, fill]);
});

test('a stack whose files cannot be written does not hold the others, and comes later', async () => {
  const { directory, location, run } = newLocation();
  const [broken, other] = [await createStack(app), await createStack(app)];
  for (const stack of [broken, other]) await importState(app, stack, 1);
  const failing = async (): Promise<Folder> => {
    const folder = await openFolder(location, defaults);
    const write = folder.write.bind(folder);
    folder.write = (name, body, signal) => {
      if (name.startsWith(broken.organization) && name.endsWith('dev.json')) throw new Error('the disk is full');
      return write(name, body, signal);
    };
    return folder;
  };
  await run({ open: failing });
  expect(await errorsOf(broken)).toEqual([{ error: 'the disk is full' }]);
  expect(await countOf(directory, other)).toBe(1);
  const { code, stdout } = await holdfast(location, 'status');
  expect([code, stdout]).toEqual([0, expect.stringContaining(`${broken.organization}/proj/dev: the disk is full`)]);
  expect(stdout).toMatch(/1 stack behind, for up to \d+ seconds?, 1 error\./);
  await run();
  expect(await errorsOf(broken)).toHaveLength(1);
  await due();
  await run();
  expect(await errorsOf(broken)).toEqual([]);
  expect(await countOf(directory, broken)).toBe(1);
});

test('what a killed worker has written without a row is written again', async () => {
  const { directory, location, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  await importState(app, stack, 2);
  const stop = new AbortController();
  const killed = async (): Promise<Folder> => {
    const folder = await openFolder(location, defaults);
    const write = folder.write.bind(folder);
    folder.write = async (name, body) => {
      await write(name, body);
      if (!name.endsWith('dev.json')) return;
      stop.abort();
      throw new Error('killed');
    };
    return folder;
  };
  await expect(run({ open: killed, signal: stop.signal })).rejects.toThrow('killed');
  expect(await countOf(directory, stack)).toBe(2);
  expect(
    await query(app, 'select stack_version from bundled_stacks where organization = $1', [stack.organization]),
  ).toEqual([{ stack_version: 1 }]);
  await run();
  expect(await errorsOf(stack)).toEqual([]);
  expect(
    await query(app, 'select stack_version from bundled_stacks where organization = $1', [stack.organization]),
  ).toEqual([{ stack_version: 2 }]);
});

test('a slow worker that overwrites a newer state with an older one is found out', async () => {
  const { directory, location, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  await importState(app, stack, 2);
  const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = async (): Promise<Folder> => {
    const folder = await openFolder(location, defaults);
    const write = folder.write.bind(folder);
    folder.write = async (name, body) => {
      const parts = await Array.fromAsync(body);
      if (name.endsWith('dev.json')) {
        reached.resolve();
        await gate.promise;
      }
      await write(
        name,
        (async function* () {
          yield* parts;
        })(),
      );
    };
    return folder;
  };
  const late = run({ open: slow });
  late.catch(() => undefined);
  await reached.promise;
  await importState(app, stack, 3);
  await query(app, `update maintenance_runs set claimed_until = now() - interval '1 second' where name = 'bundle'`);
  await run();
  expect(await countOf(directory, stack)).toBe(3);
  gate.resolve();
  await expect(late).rejects.toThrow('Another worker');
  // It confirms nothing.
  const confirmed = 'select stack_version from bundled_stacks where organization = $1';
  expect(await query(app, confirmed, [stack.organization])).toEqual([{ stack_version: 3 }]);
  expect(await countOf(directory, stack)).toBe(2);
  await run();
  expect([await countOf(directory, stack), await errorsOf(stack)]).toEqual([3, []]);

  // Also if it was killed after the file: its mark is looked for until no write can be that late.
  await importState(app, stack, 4);
  await run();
  await query(app, `update bundled_stacks set attempts = array[$1] where organization = $2`, [
    'late',
    stack.organization,
  ]);
  const file = path.join(directory, stack.organization, '.pulumi/stacks/proj/dev.json');
  const text = JSON.stringify(await readBundled(directory, stack));
  await writeFile(file, text.replace(/"holdfast":"[^"]*"/, '"holdfast":"late"'));
  await due();
  await run();
  expect((await readBundled(directory, stack)).checkpoint.holdfast).not.toBe('late');
});

test('work of others in the bundle is not overwritten, but an emptied bundle is filled again', async () => {
  const { directory, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  await updateInBundle(directory, stack, 'emergency');
  await importState(app, stack, 5);
  await run();
  expect(await errorsOf(stack)).toEqual([{ error: expect.stringContaining('changed in the bundle') }]);
  expect(await countOf(directory, stack)).toBe(2);
  await rm(directory, { recursive: true });
  await due();
  await run();
  expect([await countOf(directory, stack), await errorsOf(stack)]).toEqual([5, []]);
});

test('a stack that is locked in the bundle, or was removed from it, is left alone', async () => {
  const { directory, run } = newLocation();
  const [locked, removed] = [await createStack(app), await createStack(app)];
  for (const stack of [locked, removed]) await importState(app, stack, 1);
  await run();
  const locks = path.join(directory, locked.organization, '.pulumi/locks/organization/proj/dev');
  await mkdir(locks, { recursive: true });
  await writeFile(path.join(locks, 'x.json'), '{}');
  await rm(path.join(directory, removed.organization, '.pulumi/stacks/proj/dev.json'));
  for (const stack of [locked, removed]) await importState(app, stack, 2);
  await run();
  expect(await errorsOf(locked)).toEqual([{ error: 'it is locked in the bundle' }]);
  expect(await countOf(directory, locked)).toBe(1);
  expect(await errorsOf(removed)).toEqual([{ error: 'it was removed from the bundle' }]);
});

test('a worker that has lost its claim changes no row, and marks of recent writes stay', async () => {
  const { run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  await query(app, `update bundled_stacks set attempts = array['late'], attempted_at = now() where organization = $1`, [
    stack.organization,
  ]);
  const row = 'select changed_at::text, attempts from bundled_stacks where organization = $1';
  const before = await query(app, row, [stack.organization]);
  expect(before).toHaveLength(1);
  const rows = createBundleRepository(app.context.db);
  const lost = crypto.randomUUID();
  expect(await rows.begin(stack, { stackId: crypto.randomUUID(), mark: 'x', holder: lost })).toBe(false);
  await rows.pass(stack, lost, '2020-01-01');
  await rows.delete(stack, lost);
  await rows.settle(stack);
  expect(await query(app, row, [stack.organization])).toEqual(before);
});

test('a stack that was deleted here stays in the bundle if it was changed there', async () => {
  const { directory, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  await updateInBundle(directory, stack, 'emergency');
  await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
  await run();
  expect(await errorsOf(stack)).toEqual([{ error: expect.stringContaining('changed in the bundle') }]);
  expect(await countOf(directory, stack)).toBe(2);
});

test('a restored database writes nothing into the bundle before it has taken over', async () => {
  const { directory, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  await importState(app, stack, 2);
  await query(app, 'update installation set outgoing_held_since = now()');
  try {
    await run();
    expect(await countOf(directory, stack)).toBe(1);
  } finally {
    await query(app, 'update installation set outgoing_held_since = null');
  }
  await run();
  expect(await countOf(directory, stack)).toBe(2);
});

test('another passphrase is recorded, and writes everything again', async () => {
  const { directory, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  const saltOf = async () =>
    JSON.stringify((await readBundled(directory, stack)).checkpoint.latest).match(/v1:[^"]+/)?.[0];
  await run();
  const before = await saltOf();
  await run();
  expect(await saltOf()).toBe(before);
  await run({ secret: { passphrase: 'another passphrase' } });
  expect(await saltOf()).not.toBe(before);
  const events = await query<{ details: string }>(
    app,
    `select details from audit_events where action = 'bundle.begin' order by number desc limit 2`,
  );
  expect(events.map(({ details }) => JSON.parse(details))).toEqual([
    { location: `file://${directory}`, before: `file://${directory}`, isKeyNew: true },
    expect.objectContaining({ location: `file://${directory}` }),
  ]);
  expect(JSON.stringify(events)).not.toContain('another passphrase');
});

test('a bundle whose location was changed and changed back follows, and overwrites no work of others', async () => {
  const [first, second] = [newLocation(), newLocation()];
  const [stack, taken] = [await createStack(app), await createStack(app)];
  for (const each of [stack, taken]) await importState(app, each, 1);
  await first.run();
  await second.run();
  await updateInBundle(first.directory, taken, 'emergency');
  for (const each of [stack, taken]) await importState(app, each, 3);
  for (const { directory, run } of [first, second]) {
    await due();
    await run();
    expect([await countOf(directory, stack), await errorsOf(stack)]).toEqual([3, []]);
  }
  expect([await countOf(first.directory, taken), await countOf(second.directory, taken)]).toEqual([2, 3]);
  expect(await query(app, 'select distinct place from left_bundled_stacks')).toEqual([{ place: first.location }]);
});

const usualSecret = { HOLDFAST_BUNDLE_PASSPHRASE: bundlePassphrase };

function holdfast(location: string, ...words: string[]) {
  return holdfastWith(usualSecret, location, ...words);
}

function holdfastWith(secret: Readonly<Record<string, string>>, location: string, ...words: string[]) {
  return runHoldfast(
    {
      ...{ PATH: process.env['PATH'], HOLDFAST_DATABASE_URL: app.database.url, HOLDFAST_DATA_DIR: app.dataDir },
      ...{ HOLDFAST_MASTER_KEYS: masterKeys, HOLDFAST_BUNDLE_URL: location, ...secret },
    },
    'bundle',
    ...words,
  );
}

test('a return imports what was done in the bundle, and names the stacks that moved on both sides', async () => {
  const { directory, location, run } = newLocation();
  const [moved, both, locked, same] = [
    ...[await createStack(app), await createStack(app)],
    ...[await createStack(app), await createStack(app)],
  ] as [TestStack, TestStack, TestStack, TestStack];
  for (const stack of [moved, both, locked, same]) await importState(app, stack, 2);
  await run();
  for (const stack of [moved, both, locked]) await updateInBundle(directory, stack, 'emergency');
  await importState(app, both, 3);
  await ok(app.call('PATCH', `${moved.path}/tags`, { auth: moved.auth, body: { team: 'changed here' } }));
  const locks = path.join(directory, locked.organization, '.pulumi/locks/organization/proj/dev');
  await mkdir(locks, { recursive: true });
  await writeFile(path.join(locks, 'x.json'), '{}');
  const created = path.join(directory, same.organization, '.pulumi/stacks/proj/fresh.json');
  await writeFile(created, JSON.stringify(await readBundled(directory, same)).replaceAll('dev', 'fresh'));

  const plan = await holdfast(location, 'return', '--json');
  const actions = (json: string) =>
    Object.fromEntries(
      (JSON.parse(json) as { stacks: { stack: string; action: string }[] }).stacks.map((each) => [
        each.stack,
        each.action,
      ]),
    );
  const name = ({ organization }: TestStack, stack = 'dev') => `${organization}/proj/${stack}`;
  expect([plan.code, actions(plan.stdout)]).toEqual([
    1,
    expect.objectContaining({
      ...{ [name(moved)]: 'return', [name(both)]: 'refused', [name(locked)]: 'refused' },
      ...{ [name(same)]: 'unchanged', [name(same, 'fresh')]: 'new' },
    }),
  ]);
  expect((await exportState(app, moved)).json.deployment.resources).toHaveLength(2);

  const applied = await holdfast(location, 'return', '--apply', '--create');
  expect(applied.stdout).toMatch(new RegExp(`${name(both)} +refused +moved on both sides`));
  expect(applied.stdout).toMatch(new RegExp(`${name(locked)} +refused +it is locked`));
  const { deployment } = (await exportState(app, moved)).json;
  expect(deployment.resources).toHaveLength(3);
  expect(deployment.secrets_providers).toEqual({
    type: 'service',
    state: { url: 'http://localhost:9090', owner: moved.organization, project: 'proj', stack: 'dev' },
  });
  const { ciphertext } = deployment.resources[0].inputs.input;
  const { json } = await ok(app.call('POST', `${moved.path}/decrypt`, { auth: moved.auth, body: { ciphertext } }));
  expect(Buffer.from(json.plaintext, 'base64').toString()).toBe('"hunter2"');
  const { updates } = (await ok(app.call('GET', `${moved.path}/updates`, { auth: moved.auth }))).json;
  expect(updates[0]).toMatchObject({ kind: 'update', message: 'emergency', version: 2 });
  expect((await ok(app.call('GET', moved.path, { auth: moved.auth }))).json.tags).toEqual({ team: 'changed here' });
  const fresh = { ...same, path: same.path.replace('/dev', '/fresh') };
  expect((await exportState(app, fresh)).json.deployment.resources).toHaveLength(2);

  // Once.
  expect(actions((await holdfast(location, 'return', '--json')).stdout)[name(moved)]).toBe('unchanged');
  await run();
  expect([await countOf(directory, moved), await errorsOf(moved)]).toEqual([3, []]);
  expect(await countOf(directory, both)).toBe(3);
});

test('a return that ended after the first versions goes on with the rest', async () => {
  const { directory, location, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  for (const message of ['one', 'two', 'three']) await updateInBundle(directory, stack, message);
  const history = path.join(directory, stack.organization, '.pulumi/history/proj/dev');
  const infos = (await readdir(history)).filter((name) => name.endsWith('.history.json')).toSorted();
  const [first, , last] = infos as [string, string, string];
  // As much as one transaction takes.
  const environment = { note: 'x'.repeat(17 * 1024 * 1024) };
  const info = JSON.parse(await readFile(path.join(history, first), 'utf8'));
  await writeFile(path.join(history, first), JSON.stringify({ ...info, environment }));
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  await client.query(`create function fail_last() returns trigger language plpgsql as $$
    begin
      if new.entry = '${/-(\d+)\./.exec(last)?.[1]}' then raise exception 'the disk is full'; end if;
      return new;
    end $$;
    create trigger fail_last before insert or update on bundled_stacks for each row execute function fail_last()`);
  const cut = await holdfast(location, 'return', '--apply');
  await client.query('drop function fail_last cascade');
  await client.end();
  expect([cut.code, cut.stdout + cut.stderr]).toEqual([1, expect.stringContaining('the disk is full')]);
  expect((await exportState(app, stack)).json.deployment.resources).toHaveLength(2);
  await run();
  expect([await countOf(directory, stack), await errorsOf(stack)]).toEqual([4, []]);
  const rest = await holdfast(location, 'return', '--apply');
  expect(rest.stdout).toMatch(new RegExp(`${stack.organization}/proj/dev +returned +2 versions`));
  expect((await exportState(app, stack)).json.deployment.resources).toHaveLength(4);
});

test('a return keeps the provider and the secrets of a state that another passphrase encrypts', async () => {
  const { directory, location, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  const other = await PassphraseCrypter.create('chosen in the emergency');
  const ciphertext = other.encrypt(Buffer.from('"hunter2"'));
  const file = path.join(directory, stack.organization, '.pulumi/stacks/proj/dev.json');
  const text = (await readFile(file, 'utf8'))
    .replace(/"salt":"[^"]+"/, `"salt":"${other.salt}"`)
    .replace(/"ciphertext":"[^"]+"/, `"ciphertext":"${ciphertext}"`);
  await writeFile(file, text);
  await updateInBundle(directory, stack, 'emergency');
  await holdfast(location, 'return', '--apply');
  const { resources, secrets_providers } = (await exportState(app, stack)).json.deployment;
  expect(resources).toHaveLength(2);
  expect(resources[0].inputs.input.ciphertext).toBe(ciphertext);
  expect(secrets_providers).toEqual({ type: 'passphrase', state: { salt: other.salt } });
});

test('a bundle that is ahead of a restored database is returned', async () => {
  const { directory, location, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  // As after a restore: the row of the bundle, and the newest version, are of another time.
  await query(app, `update bundled_stacks set stack_version = 0, sha256 = 'x', entry = null where organization = $1`, [
    stack.organization,
  ]);
  await updateInBundle(directory, stack, 'lost');
  const { stdout } = await holdfast(location, 'return', '--apply');
  expect(stdout).toMatch(new RegExp(`${stack.organization}/proj/dev +returned +1 version`));
  expect((await exportState(app, stack)).json.deployment.resources).toHaveLength(2);
});

test('an older file of a worker, as a restored bucket has it, is not returned', async () => {
  const { directory, location, run } = newLocation();
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  const file = path.join(directory, stack.organization, '.pulumi/stacks/proj/dev.json');
  const older = await readFile(file);
  await importState(app, stack, 2);
  await run();
  await writeFile(file, older);
  const { stdout } = await holdfast(location, 'return', '--apply');
  expect(stdout).toMatch(new RegExp(`${stack.organization}/proj/dev +refused +its state is an older file of a worker`));
  expect((await exportState(app, stack)).json.deployment.resources).toHaveLength(2);
});
