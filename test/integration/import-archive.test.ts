import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { appendFile, copyFile, readdir, readFile, rename, stat, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import type { ArchivedUpdate } from '../../src/cli/moving/archive/archive-layout.ts';
import { readArchivedEvents } from '../../src/cli/moving/archive/archived-events.ts';
import { infoOf } from '../../src/cli/moving/archive/archived-info.ts';
import { openFolder } from '../../src/shared/platform/blobs/open-folder.ts';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { archiveEnds } from '../support/archive-ends.ts';
import { flipBit, storedBytes } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { base64, encrypt, runUpdate, stateWith } from '../support/import-ends.ts';
import { targetUrl } from '../support/import-run.ts';
import { ask } from '../support/procedures.ts';
import { ok, startUpdate, type TestStack } from '../support/state.ts';
import { until } from '../support/until.ts';
import { complete } from '../support/update-calls.ts';

const { source, target, home, organization } = archiveEnds();
const update = (stack: TestStack, ...rest: [object, Parameters<typeof runUpdate>[3]?]) =>
  runUpdate(source, stack, ...rest);

const idOf = async (stack: TestStack): Promise<string | undefined> => (await source.context.stacks.find(stack))?.id;

/** A manifest with its hash. */
function withChecksum({ sha256: _, ...manifest }: { readonly sha256: string }): string {
  return JSON.stringify({ ...manifest, sha256: createHash('sha256').update(JSON.stringify(manifest)).digest('hex') });
}

/** All files of a folder, with their bytes, decompressed. */
async function filesOf(directory: string): Promise<Map<string, Buffer>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = new Map<string, Buffer>();
  for (const each of entries.filter((entry) => entry.isFile())) {
    const name = path.join(each.parentPath, each.name);
    const bytes = await readFile(name);
    files.set(path.relative(directory, name), name.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes);
  }
  return files;
}

test('an archive brings all versions to another server, with secrets under its keys, and no plaintext on the way', async () => {
  const ends = await organization('whole');
  const dev = await ends.createStack('dev', { tags: { team: 'core' } });
  const secret = await encrypt(source, dev, '"hunter2"');
  const config = {
    'proj:plain': { string: '1.0', secret: false, object: false },
    'proj:list': {
      ...{ string: `[1.50,{"secure":"${await encrypt(source, dev, 'hunter4')}"}]`, secret: true, object: true },
    },
  };
  const events = [
    { sequence: 0, timestamp: 1, preludeEvent: { config: {} } },
    { sequence: 1, timestamp: 2, stdoutEvent: { message: 'out', color: 'raw' } },
  ];
  await update(dev, stateWith(dev, secret, 1), {
    ...{ message: 'first', config },
    during: ({ lease, path: at }) => ok(source.call('POST', `${at}/events/batch`, { auth: lease, body: { events } })),
  });
  await update(dev, stateWith(dev, secret, 2), { message: 'second', status: 'failed' });
  const cancelled = await startUpdate(source, dev);
  await ok(source.call('POST', `${cancelled.path}/cancel`, { auth: ends.auth }));
  await ok(complete(source, await startUpdate(source, dev, { kind: 'preview' })));
  const kept = await ends.createStack('kept');
  const passphrase = { type: 'passphrase', state: { salt: 'v1:AAAA:v1:BBBB:CCCC' } };
  await update(kept, stateWith(kept, 'v1:AAAA:BBBB', 1, passphrase));
  await ends.createStack('empty');
  const initial = stateWith({ ...dev, stack: 'initial' }, 'v1:AAAA:BBBB', 1, passphrase);
  await ends.createStack('initial', { state: initial });

  const exported = await ends.export();
  expect([exported.code, exported.text]).toEqual([
    0,
    expect.stringMatching(/Exported 4 stacks with 4 versions \(4 new\) and 1 preview, .* to /),
  ]);
  expect(exported.text).toContain('Not in the archive: members (');
  for (const [name, bytes] of await filesOf(ends.directory)) {
    expect([name, bytes.includes('hunter'), bytes.includes(base64('hunter'))]).toEqual([name, false, false]);
    expect([name, bytes.includes(secret)]).toEqual([name, false]);
  }
  const audited = await query<{ action: string }>(
    source,
    `select action, count(*)::int as count from audit_events
     where organization = 'whole' and action in ('stack.export', 'secret.decrypt') group by 1 order by 1`,
  );
  expect(audited).toEqual([
    { action: 'secret.decrypt', count: 1 },
    { action: 'stack.export', count: 4 },
  ]);

  const plan = await ends.import();
  expect([plan.code, plan.text]).toEqual([0, expect.stringContaining('4 to create, 0 to continue')]);
  expect(plan.text).toContain('The archive of whole was exported at ');
  expect(plan.text).toContain('Not in the archive: members (');
  expect(plan.text).toContain(`encrypted with the keys of this server, which the CLI finds at ${targetUrl}.`);
  expect(await query(target, 'select 1 from imported_versions')).toEqual([]);
  const login = (await query<{ login: string }>(target, 'select login from users order by created_at desc limit 1'))[0];
  const imported = await ends.import('--apply', '--map-user', `${login?.login}=${login?.login}`);
  expect([imported.code, imported.text]).toEqual([
    0,
    expect.stringMatching(
      /^Not in the archive: members \(\S+\)\.\nImported 4 versions and 1 preview of 2 stacks into whole\.\n$/,
    ),
  ]);
  expect((await ends.import('--verify')).text).toMatch(
    /^Compared 4 stacks, 4 versions and 1 preview, .* no differences\.\n$/,
  );

  expect((await ends.here('proj/dev')).tags).toEqual({ team: 'core', 'pulumi:project': 'proj' });
  // Ids, and times to the millisecond.
  const columns = `select u.id, u.stack_version, u.kind, u.status, u.message, u.resource_changes,
    date_trunc('milliseconds', u.started_at) as started, date_trunc('milliseconds', u.ended_at) as ended
    from updates u where u.stack_id = (select s.id from stacks s join projects p on p.id = s.project_id
      join organizations o on o.id = p.organization_id where o.name = 'whole' and s.name = 'dev')
    and u.stack_version is not null order by u.stack_version`;
  const there = await query<{ status: string }>(source, columns);
  expect(await query(target, columns)).toEqual(there);
  expect(there.map(({ status }) => status)).toEqual(['succeeded', 'failed', 'cancelled']);
  expect((await ends.here('proj/dev/update/1/events')).events).toEqual(
    (await ends.there('proj/dev/update/1/events')).events,
  );
  const { updates } = await ends.here('proj/dev/updates');
  expect(updates.at(-1)).toMatchObject({ message: 'first', environment: { 'import.requestedBy': expect.any(String) } });
  const { deployment } = await ends.here('proj/dev/export/1');
  expect(deployment.secrets_providers.state.url).toBe(targetUrl);
  const inList = /"secure":"([^"]+)"/.exec(updates.at(-1).config['proj:list'].string)?.[1] as string;
  const body = { ciphertexts: [deployment.resources[1].inputs.key.ciphertext, inList] };
  const { plaintexts } = (await ok(target.call('POST', `${dev.path}/batch-decrypt`, { auth: ends.authHere, body })))
    .json;
  expect(body.ciphertexts.map((each) => Buffer.from(plaintexts[each], 'base64').toString())).toEqual([
    '"hunter2"',
    'hunter4',
  ]);
  expect(await ends.here('proj/kept/export')).toEqual(stateWith(kept, 'v1:AAAA:BBBB', 1, passphrase));
  expect(await ends.here('proj/initial/export')).toEqual(initial);

  // Where other updates have the ids, links to the old ones find the new ones.
  const token = await target.createUser('copied', 'admin');
  expect((await ends.import('--organization', 'copied', '--apply')).text).toContain(
    'Imported 4 versions and 1 preview',
  );
  const runs = await ask(target, token, 'imports.list', { organization: 'copied' });
  expect(runs.data.items).toMatchObject([{ sourceKind: 'archive', source: `archive ${ends.directory}` }]);
  const auth = `token ${token}`;
  const [first] = await query<{ id: string }>(source, `select id from updates where message = 'first'`);
  const link = `/api/stacks/copied/proj/dev/update/${first?.id}/events`;
  expect((await ok(target.call('GET', link, { auth }))).json.events).toHaveLength(2);
  const ref = { organization: 'copied', project: 'proj', stack: 'dev' };
  const found = await ask(target, token, 'updates.get', { ...ref, updateId: first?.id });
  expect(found.data).toMatchObject({ message: 'first', version: 1 });
  expect(found.data.updateId).not.toBe(first?.id);
  const previewId = (await query<{ id: string }>(source, `select id from updates where kind = 'preview'`))[0]?.id;
  expect((await ask(target, token, 'updates.get', { ...ref, updateId: previewId })).data).toMatchObject({
    dryRun: true,
  });

  // Both ends go on where they were, and what has not changed is not written again.
  const written = await stat(
    path.join(
      ends.directory,
      [...(await filesOf(ends.directory)).keys()].find(
        (name) => name.includes('.state.') && !name.includes('initial'),
      ) as string,
    ),
  );
  await update(dev, stateWith(dev, secret, 3), { message: 'third' });
  expect((await ends.export()).text).toContain('Exported 4 stacks with 5 versions (1 new) and 1 preview');
  const states = [...(await filesOf(ends.directory)).keys()].filter((name) => name.includes('.state.'));
  const times = await Promise.all(states.map(async (name) => (await stat(path.join(ends.directory, name))).mtimeMs));
  expect(times).toContain(written.mtimeMs);
  expect((await ends.import('--apply')).text).toMatch(
    /^Not in the archive: members \(\S+\)\.\nImported 1 version of 1 stack into whole\.\n$/,
  );
  expect((await ends.import('--apply')).text).toMatch(
    /^Not in the archive: members \(\S+\)\.\nImported 0 versions of 0 stacks into whole\.\n$/,
  );
  expect((await ends.import('--verify')).text).toContain('no differences');
  const rolledBack = await ends.import('--rollback', '--apply', '--stack', 'proj/kept');
  expect(rolledBack.text).toBe('Deleted 1 stack with 1 imported version; kept 0.\n');
});

test('an archive whose files are truncated, changed, swapped, missing or foreign is named, and nothing of it is imported', async () => {
  const ends = await organization('damage');
  const names = ['bytes', 'cut', 'gone', 'good', 'index', 'page', 'swapped'];
  for (const name of names) {
    const stack = await ends.createStack(name);
    for (const version of [1, 2]) await update(stack, stateWith(stack, await encrypt(source, stack, '"a"'), version));
  }
  await ends.export();
  const manifestFile = path.join(ends.directory, 'holdfast-archive.json');
  const manifest = JSON.parse(await readFile(manifestFile, 'utf8'));
  const folderOf = (name: string): string =>
    path.join(ends.directory, 'stacks', manifest.stacks.find((each: { stack: string }) => each.stack === name).id);
  const statesOf = async (name: string): Promise<string[]> =>
    (await readdir(folderOf(name)))
      .filter((file) => file.includes('.state.'))
      .map((file) => path.join(folderOf(name), file));
  const flip = async (file: string, at: number): Promise<void> => {
    const bytes = await readFile(file);
    bytes[at] = (bytes[at] as number) ^ 1;
    await writeFile(file, bytes);
  };
  const [one, other] = (await statesOf('swapped')) as [string, string];
  await rename(one, `${one}.aside`);
  await rename(other, one);
  await rename(`${one}.aside`, other);
  await flip((await statesOf('bytes'))[1] as string, 40);
  await truncate((await statesOf('cut'))[0] as string, 60);
  await rename((await statesOf('gone'))[0] as string, path.join(home, 'gone'));
  await copyFile(path.join(folderOf('good'), 'stack.json'), path.join(folderOf('index'), 'stack.json'));
  await flip(path.join(folderOf('page'), 'versions-000001.json.zst'), 30);
  await writeFile(path.join(ends.directory, 'stacks', 'foreign.json'), '{}');

  const applied = await ends.import('--apply');
  expect([applied.code, applied.text]).toEqual([
    1,
    expect.stringContaining(
      'Imported 2 versions of 1 stack into damage.\n6 stacks not imported completely: see above.',
    ),
  ]);
  for (const [name, reason] of Object.entries({
    ...{ bytes: 'state.json.zst is damaged', cut: 'state.json.zst is truncated: 60 of ' },
    ...{ gone: 'state.json.zst is missing', index: 'stack.json is (?:truncated|damaged)' },
    ...{ page: 'versions-000001.json.zst is damaged', swapped: 'state.json.zst is ' },
  }))
    expect(applied.text).toMatch(new RegExp(`proj/${name}: (?:.* cannot be read: )?\\S+${reason}`));
  const stacks = await query<{ name: string }>(
    target,
    `select s.name from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where o.name = 'damage'`,
  );
  expect(stacks).toEqual([{ name: 'good' }]);
  expect((await ends.import()).text).toContain('stacks/foreign.json is left out: the archive does not name it');

  // The next export writes anew what it finds damaged.
  const again = await ends.export();
  expect(again.text).toMatch(/proj\/gone: written anew, because \S+ is missing or truncated/);
  await writeFile(manifestFile, (await readFile(manifestFile, 'utf8')).replace('"proj"', '"prod"'));
  expect((await ends.import()).text).toContain('holdfast-archive.json was changed');
  await writeFile(manifestFile, (await readFile(manifestFile, 'utf8')).replace('"format":1', '"format":2'));
  expect((await ends.import()).text).toContain('has format 2, which this release does not know');
  await writeFile(manifestFile, '{"format":1,');
  expect((await ends.import()).text).toContain('holdfast-archive.json is damaged');
});

test('a killed export goes on, and until then nothing can be imported', async () => {
  const ends = await organization('killed');
  for (let at = 0; at < 8; at++) {
    const stack = await ends.createStack(`s${at}`);
    for (const version of [1, 2]) await update(stack, stateWith(stack, await encrypt(source, stack, '"a"'), version));
  }
  const child = spawn(process.execPath, [holdfastProgram, ...ends.exportWords, '--parallel', '1'], {
    env: ends.exportEnv(),
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  const isWritten = async () => [...(await filesOf(ends.directory).catch(() => new Map())).keys()];
  await until(async () => (await isWritten()).some((name) => name.includes('.state.')), 'a state is written');
  child.kill('SIGKILL');
  await ended;
  expect((await ends.import()).text).toContain('has not ended: run it again to continue');
  expect((await ends.export()).text).toContain('Exported 8 stacks with 16 versions');
  expect((await ends.import('--apply')).text).toMatch(
    /^Not in the archive: members \(\S+\)\.\nImported 16 versions of 8 stacks into killed\.\n$/,
  );
  expect((await ends.import('--verify')).code).toBe(0);
});

test('what is there is imported of a stack that an export did not write to its end, and another history is written anew', async () => {
  const ends = await organization('partly');
  const dev = await ends.createStack('dev');
  await update(dev, stateWith(dev, await encrypt(source, dev, '"a"'), 1));
  await query(source, `update stacks set import_unfinished = true where id = $1`, [await idOf(dev)]);
  expect((await ends.export()).text).toContain('proj/dev: its import has not ended, so its newest state is an old one');
  await query(source, `update stacks set import_unfinished = false where id = $1`, [await idOf(dev)]);
  await update(dev, stateWith(dev, await encrypt(source, dev, '"a"'), 2));
  const preview = await startUpdate(source, dev, { kind: 'preview' });
  await ok(complete(source, preview));
  const configure = (config: string) =>
    query(source, 'update updates set config = $1 where id = $2', [config, preview.id]);
  await configure('{');
  const failed = await ends.export();
  expect([failed.code, failed.text]).toEqual([1, expect.stringContaining('proj/dev: not exported: ')]);
  expect(failed.text).not.toContain('no longer exists here');
  expect((await ends.import('--apply')).text).toMatch(
    /^Not in the archive: .*\nproj\/dev is not completely in the archive: .*\nImported 2 versions of 1 stack into partly\.\n$/,
  );
  await configure('{}');
  expect((await ends.export()).text).toContain('with 2 versions (0 new) and 1 preview');

  // As if an export had been killed after it wrote the stack.
  const manifestFile = path.join(ends.directory, 'holdfast-archive.json');
  const before = await readFile(manifestFile, 'utf8');
  await update(dev, stateWith(dev, await encrypt(source, dev, '"a"'), 3));
  await ends.export();
  await writeFile(manifestFile, withChecksum({ ...JSON.parse(before), isComplete: false }));
  await ends.createStack('other');
  expect((await ends.export('--stack', 'proj/other')).text).toContain('Exported 1 stack with 0 versions');
  expect((await ends.import('--apply')).text).toMatch(
    /^Not in the archive: members \(\S+\)\.\nImported 1 version and 1 preview of 1 stack into partly\.\n$/,
  );

  // As after a restore of an older database.
  await query(source, 'update updates set stack_version = 4 where stack_id = $1 and stack_version = 3', [
    await idOf(dev),
  ]);
  const again = await ends.export();
  expect(again.text).toContain('proj/dev: written anew, because version 3 of the archive is not here');
  expect(again.text).toContain('with 3 versions (3 new) and 1 preview');
});

test('what could not be read is named by each export, and comes with the first one that can read it', async () => {
  const ends = await organization('unreadable');
  const dev = await ends.createStack('dev');
  for (const version of [1, 2]) await update(dev, stateWith(dev, await encrypt(source, dev, '"a"'), version));
  const [first] = await query<{ id: string }>(
    source,
    'select c.id from checkpoints c join updates u on u.id = c.update_id where u.stack_id = $1 and u.stack_version = 1',
    [await idOf(dev)],
  );
  const stored = await storedBytes(source, first?.id as string);
  await stored.overwrite(flipBit(stored.bytes, stored.bytes.length >> 1, 1));
  for (const _ of ['first', 'second'])
    expect((await ends.export()).text).toMatch(/proj\/dev: without the state of version 1: .*with 2 versions/s);
  await stored.restore();
  const whole = await ends.export();
  expect(whole.text).not.toContain('without the state');
  expect((await ends.import('--apply')).text).toMatch(
    /^Not in the archive: members \(\S+\)\.\nImported 2 versions of 1 stack into unreadable\.\n$/,
  );
  expect(await ends.here('proj/dev/export/1')).toMatchObject({ version: 3 });
});

test('a stack that an export could not write is named, and makes imports incomplete, until an export writes it', async () => {
  const ends = await organization('lacking');
  const [dev, prod] = [await ends.createStack('dev'), await ends.createStack('prod')];
  for (const stack of [dev, prod]) await update(stack, stateWith(stack, await encrypt(source, stack, '"a"'), 1));
  await ends.export('--stack', 'proj/prod');
  // As an export leaves it that failed at dev.
  const file = path.join(ends.directory, 'holdfast-archive.json');
  const manifest = JSON.parse(await readFile(file, 'utf8'));
  await writeFile(file, withChecksum({ ...manifest, missing: [{ stack: 'proj/dev', reason: 'its key is away' }] }));
  const lacks = 'proj/dev is not completely in the archive: its key is away';
  const codes = async (...words: string[]) => {
    const { code, text } = await ends.import(...words);
    return [code, text.includes(lacks)];
  };
  expect(await codes()).toEqual([0, true]);
  expect(await codes('--apply')).toEqual([1, true]);
  expect(await codes('--verify')).toEqual([1, true]);
  expect(await codes('--verify', '--stack', 'proj/prod')).toEqual([0, false]);
  const plan = path.join(home, 'lacking.json');
  expect(await codes('--plan', plan)).toEqual([0, true]);
  const planned = JSON.parse(await readFile(plan, 'utf8'));
  await writeFile(plan, JSON.stringify({ ...planned, stacks: [...planned.stacks, { source: 'proj/dev' }] }));
  expect(await codes('--plan', plan, '--apply')).toEqual([1, true]);
  expect((await ends.import('--map', 'proj/dev=proj/new', '--verify')).text).toContain(lacks);
  // An export that is killed forgets nothing either.
  const begun = { ...JSON.parse(await readFile(file, 'utf8')), isComplete: false };
  await writeFile(file, withChecksum(begun));
  await ends.export('--stack', 'proj/prod');
  expect(await codes('--verify')).toEqual([1, true]);
  await ends.export('--stack', 'proj/dev');
  expect(await codes('--apply')).toEqual([0, false]);
  expect(await codes('--verify')).toEqual([0, false]);
  expect(await ends.export('--stack', 'proj/typo')).toMatchObject({
    ...{ code: 1, text: expect.stringContaining('there is no stack "proj/typo" in lacking') },
  });
});

test('names that lead elsewhere, files without an end, and what no server stores are refused', async () => {
  const ends = await organization('hostile');
  const dev = await ends.createStack('dev');
  await update(dev, stateWith(dev, await encrypt(source, dev, '"a"'), 1));
  await ends.export();
  const manifestFile = path.join(ends.directory, 'holdfast-archive.json');
  const manifest = JSON.parse(await readFile(manifestFile, 'utf8'));
  const [{ id, index }] = manifest.stacks;
  const state = [...(await filesOf(ends.directory)).keys()].find((name) => name.includes('.state.')) as string;
  await appendFile(path.join(ends.directory, state), 'more');
  expect((await ends.import()).text).toContain(`${state} is longer than its `);

  const name = `stacks/${id}/${id}.events.jsonl.zst`;
  const bomb = zstdCompressSync(Buffer.alloc(65 * 1024 * 1024, ' '));
  await writeFile(path.join(ends.directory, name), bomb);
  const file = { name, bytes: bomb.length, sha256: createHash('sha256').update(bomb).digest('hex') };
  const folder = await openFolder(ends.directory, {
    ...{ region: '', endpoint: null, forcePathStyle: true, requestTimeoutMs: 1000 },
  });
  await expect(Array.fromAsync(readArchivedEvents(folder, file))).rejects.toThrow('has a line of more than');

  const good: ArchivedUpdate = {
    ...{ id, number: 1, kind: 'update', version: 1, baseVersion: 0, status: 'succeeded', endReason: null, message: '' },
    ...{ environment: '{}', config: '{}', resourceChanges: '{}', requestedBy: null, stateFault: null },
    ...{ startedAt: '2026-01-01T00:00:00.000Z', endedAt: '2026-01-01T00:00:00.000Z', state: null, events: null },
  };
  expect(infoOf(good).startTime).toBe(1_767_225_600);
  expect(() => infoOf({ ...good, endedAt: 'soon' })).toThrow('"soon" is no time');
  expect(() => infoOf({ ...good, environment: '{' })).toThrow(SyntaxError);
  expect(() => infoOf({ ...good, resourceChanges: '{' })).toThrow(SyntaxError);

  index.name = 'stacks/../../outside.json';
  await writeFile(manifestFile, withChecksum(manifest));
  expect((await ends.import()).text).toContain(
    'holdfast-archive.json is not a file of an archive: /stacks/0/index/name',
  );
});

test('an archive opens with its own passphrase or age identity alone', async () => {
  const ends = await organization('sealed');
  const dev = await ends.createStack('dev');
  await update(dev, stateWith(dev, await encrypt(source, dev, '"a"'), 1));
  const without = { PULUMI_CONFIG_PASSPHRASE: '' };
  const location = ['--archive', path.join(home, 'age')];
  const refused = await ends.exportWith(without, ...location);
  expect([refused.code, refused.text]).toEqual([1, expect.stringContaining('name an age --recipient, or set PULUMI_')]);
  const identity = await generateX25519Identity();
  await ends.exportWith(without, ...location, '--recipient', await identityToRecipient(identity));
  await update(dev, stateWith(dev, await encrypt(source, dev, '"b"'), 2));
  // Without the identity, a second export adds a key.
  await ends.exportWith(without, ...location, '--recipient', await identityToRecipient(identity));
  expect((await ends.export(...location)).text).toContain('The archive is protected in another way');
  const file = path.join(home, 'identity');
  await writeFile(file, `${await generateX25519Identity()}\n`);
  await ends.export();
  const words = (...options: string[]) => ends.importWith(without, ...options);
  expect((await words()).text).toContain('encrypted for a passphrase: set PULUMI_CONFIG_PASSPHRASE');
  expect((await ends.importWith({ PULUMI_CONFIG_PASSPHRASE: 'wrong' })).text).toContain('is not the passphrase of');
  await rename(ends.directory, path.join(home, 'passphrase'));
  await rename(path.join(home, 'age'), ends.directory);
  expect((await words()).text).toContain('encrypted to age recipients: name an --identity file');
  expect((await words('--identity', file)).text).toContain('It cannot be decrypted');
  await writeFile(file, `# mine\n${identity}\n`);
  expect((await words('--identity', file, '--apply')).text).toMatch(
    /^Not in the archive: members \(\S+\)\.\nImported 2 versions of 1 stack into sealed\.\n$/,
  );
  expect((await words('--identity', file, '--verify')).text).toContain('no differences');
});
