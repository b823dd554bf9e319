import { expect, test } from '@jest/globals';
import type { StackPlan } from '../../src/cli/moving/import-plan.ts';
import type { SourceContent, SourceEntry, SourceStack } from '../../src/cli/moving/moving-source.ts';
import { rollBackStack } from '../../src/cli/moving/rollback-import.ts';
import { StackImporter } from '../../src/cli/moving/stack-importer.ts';
import { TransferError } from '../../src/shared/diy/diy-layout.ts';
import { unrecordedInfo } from '../../src/shared/diy/history-info.ts';
import { createStackRepository } from '../../src/shared/stacks/stack-repository.ts';
import { query } from '../support/database.ts';
import { encrypt, runUpdate, stateWith, testEnds } from '../support/import-ends.ts';
import { ask } from '../support/procedures.ts';
import { ok, startUpdate, type TestStack } from '../support/state.ts';
import { until } from '../support/until.ts';
import { complete, saveVerbatim } from '../support/update-calls.ts';

const { source, target, front, organization } = testEnds();

/** Two versions of a stack in the source, and a stack of the same name at the target. */
async function stackOf(name: string) {
  const ends = await organization(name);
  const dev = await ends.createStack('dev');
  const update = async (version: number): Promise<void> =>
    runUpdate(source, dev, stateWith(dev, await encrypt(source, dev, '"a"'), version));
  const here: TestStack = { ...dev, auth: ends.authHere };
  return { ends, here, update };
}

/** Keeps the answers of the source to this call after so many, until they are released. A plan reads the newest state, too, and no events. */
function hold(path: string, after = 0) {
  let calls = 0;
  const held: (() => void)[] = [];
  let isOpen = false;
  front().intercept = (call, response) => {
    if (isOpen || !call.url?.endsWith(path) || calls++ < after) return false;
    held.push(() => response.writeHead(503, { 'retry-after': '0' }).end());
    return true;
  };
  return {
    reached: (times = 1) => until(() => held.length >= times, `${path} is asked for`),
    release: () => {
      isOpen = true;
      for (const answer of held) answer();
    },
  };
}

const versionsHere = (name: string) =>
  query<{ version: number; kind: string }>(
    target,
    `select u.stack_version as version, u.kind from updates u join stacks s on s.id = u.stack_id and s.deleted_at is null
     join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where o.name = $1 order by s.name, u.stack_version`,
    [name],
  );

test('nobody updates, imports, renames or previews a stack whose import has not ended, and deleting it stops the import', async () => {
  const { ends, here, update } = await stackOf('unfinished');
  await update(1);
  await update(2);
  const gate = hold('/export/1');
  const running = ends.run('--apply');
  await gate.reached();
  const body = { config: {}, metadata: { message: '', environment: {} } };
  const call = (method: 'POST', path: string, json: object) =>
    target.call(method, `${here.path}/${path}`, { auth: here.auth, body: json });
  const answers = [
    await call('POST', 'update', body),
    await call('POST', 'preview', body),
    await call('POST', 'import', stateWith(here, 'v1:AAAA:BBBB', 9, { type: 'passphrase', state: {} })),
    await call('POST', 'rename', { newName: 'other' }),
  ];
  for (const { json, status } of answers)
    expect([status, json.message]).toEqual([409, expect.stringContaining('The import of unfinished/proj/dev has not')]);
  gate.release();
  expect((await running).text).toBe('Imported 2 versions of 1 stack into unfinished.\n');
  await ok(complete(target, await startUpdate(target, here)));
  await ok(call('POST', 'rename', { newName: 'other' }));
  await ok(target.call('DELETE', `${here.path.replace(/dev$/, 'other')}?force=true`, { auth: here.auth }));

  const second = hold('/export/1');
  const again = ends.run('--apply');
  await second.reached();
  await ok(target.call('DELETE', `${here.path}?force=true`, { auth: here.auth }));
  second.release();
  expect((await again).text).toContain('interrupted: The stack was deleted meanwhile');
  expect(await target.context.stacks.find({ organization: 'unfinished', project: 'proj', stack: 'dev' })).toBeNull();
});

test('a stack that an interrupted import began says what to do, and can be deleted or rolled back', async () => {
  const { ends, here, update } = await stackOf('interrupted');
  await update(1);
  await update(2);
  const interrupt = async (): Promise<void> => {
    front().intercept = (call, response) => {
      if (!call.url?.endsWith('/export/1')) return false;
      response.writeHead(401).end();
      return true;
    };
    expect((await ends.run('--apply')).text).toContain('proj/dev: interrupted: ');
    front().intercept = () => false;
    expect(await versionsHere('interrupted')).toEqual([]);
  };
  await interrupt();
  const advice = expect.stringMatching(/--apply` again.*--rollback --apply`.*delete the stack/);
  const shown = await ask(target, here.auth.replace('token ', ''), 'stacks.get', {
    ...{ organization: 'interrupted', project: 'proj', stack: 'dev' },
  });
  expect(shown.data.fault).toEqual({ kind: 'import-unfinished', message: advice });
  const exported = await ok(target.call('GET', `${here.path}/export`, { auth: here.auth }));
  expect(exported.headers['x-pulumi-warning']).toEqual(advice);
  const body = { config: {}, metadata: { message: '', environment: {} } };
  const refused = await target.call('POST', `${here.path}/update`, { auth: here.auth, body });
  expect([refused.status, refused.json.message]).toEqual([409, advice]);
  await ok(target.call('DELETE', here.path, { auth: here.auth }));

  await interrupt();
  expect((await ends.run('--rollback')).text).toContain('proj/dev: to delete');
  expect((await ends.run('--rollback', '--apply')).text).toBe('Deleted 1 stack with 0 imported versions; kept 0.\n');
  expect((await ends.run('--apply')).text).toBe('Imported 2 versions of 1 stack into interrupted.\n');
  expect((await ends.run('--verify')).text).toContain('no differences');
});

/** A source whose stack had these updates. */
const sourceWith = (order: readonly string[]): SourceStack => ({
  ...{ name: 'proj/dev', project: 'proj', stack: 'dev' },
  open: async () => ({ history: [], order, decrypt: async () => [] }) as unknown as SourceContent,
});

test('a stack that is updated after a rollback has looked at it stays', async () => {
  const { ends, here, update } = await stackOf('kept');
  await update(1);
  await ends.run('--apply');
  const entries = await query<{ entry: string }>(
    target,
    `select i.entry from imported_versions i join updates u on u.id = i.update_id join stacks s on s.id = u.stack_id
     join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id where o.name = 'kept'`,
  );
  let own: Awaited<ReturnType<typeof startUpdate>> | null = null;
  const db = new Proxy(target.context.db, {
    get(all, name) {
      const method = Reflect.get(all, name) as unknown;
      if (typeof method !== 'function') return method;
      if (name !== 'inTransaction') return method.bind(all);
      return async (...given: unknown[]) => {
        own ??= await startUpdate(target, here);
        return method.apply(all, given);
      };
    },
  });
  const parts = { context: { ...target.context, db }, organization: 'kept', from: 'elsewhere' };
  const from = sourceWith(entries.map(({ entry }) => entry));
  expect(await rollBackStack(parts, from, { apply: true })).toMatchObject({
    action: 'keep',
    reason: 'an update of it runs here',
  });
  if (own === null) throw new Error('nothing was to be deleted');
  await ok(complete(target, own));
});

test('a rollback of another source keeps the stack', async () => {
  const { ends, update } = await stackOf('foreign');
  await update(1);
  await ends.run('--apply');
  const parts = { context: target.context, organization: 'foreign', from: 'elsewhere' };
  expect(await rollBackStack(parts, sourceWith(['other']), { apply: true })).toMatchObject({
    ...{ action: 'keep', reason: 'it has versions of another source', versions: 1 },
  });
  expect(await versionsHere('foreign')).toHaveLength(1);
});

/** Imports a version, and holds the import of the next one before it has read that. */
async function holdSecondPass(organization: string) {
  const { ends, here, update } = await stackOf(organization);
  await update(1);
  await ends.run('--apply');
  await update(2);
  const gate = hold('/export/2', 1);
  const running = ends.run('--apply');
  await gate.reached();
  return { ends, gate, here, running };
}

test('nothing is imported over an update that has ended during a second pass', async () => {
  const { gate, here, running } = await holdSecondPass('ended');
  await ok(complete(target, await startUpdate(target, here)));
  gate.release();
  const { code, text } = await running;
  expect([code, text]).toEqual([1, expect.stringContaining('ended/proj/dev was changed here during the import')]);
  expect((await versionsHere('ended')).map(({ kind, version }) => [kind, version])).toEqual([
    ['update', 1],
    ['update', 2],
  ]);
});

test('an update that begins during a second pass stays, and nothing is imported over it', async () => {
  const { ends, gate, here, running } = await holdSecondPass('updated');
  const own = await startUpdate(target, here);
  gate.release();
  const { code, text } = await running;
  expect([code, text]).toEqual([1, expect.stringContaining('updated/proj/dev was changed here during the import')]);
  const state = stateWith(here, 'v1:AAAA:BBBB', 7, { type: 'passphrase', state: { salt: 'v1:A:v1:B:C' } });
  await ok(saveVerbatim(target, own, 1, state));
  await ok(complete(target, own));
  expect(await ends.here('proj/dev/export')).toEqual(state);
  expect((await versionsHere('updated')).map(({ version }) => version)).toEqual([1, 2]);
  expect((await ends.run('--apply')).text).toContain('it was updated here since its import');

  // A rename is a change as well.
  const other = await stackOf('renamed');
  await other.update(1);
  await other.ends.run('--apply');
  await other.update(2);
  const second = hold('/export/2', 1);
  const pass = other.ends.run('--apply');
  await second.reached();
  await ok(target.call('POST', `${other.here.path}/rename`, { auth: other.here.auth, body: { newName: 'other' } }));
  second.release();
  expect((await pass).text).toContain('renamed/proj/dev was changed here during the import');
  expect((await versionsHere('renamed')).map(({ kind }) => kind)).toEqual(['update', 'rename']);
});

test('two imports of one source at once bring everything once', async () => {
  const ends = await organization('twice');
  for (const name of ['a', 'b', 'c']) {
    const stack = await ends.createStack(name);
    for (const version of [1, 2])
      await runUpdate(source, stack, stateWith(stack, await encrypt(source, stack, '"a"'), version));
  }
  front().intercept = () => false;
  await Promise.all([ends.run('--apply'), ends.run('--apply')]);
  expect((await ends.run('--apply')).code).toBe(0);
  expect((await versionsHere('twice')).map(({ version }) => version)).toEqual([1, 2, 1, 2, 1, 2]);
  expect((await ends.run('--verify')).text).toContain('no differences');

  // Both have planned the same versions of a stack that is here.
  const { ends: late, update } = await stackOf('both');
  await update(1);
  await late.run('--apply');
  await update(2);
  const gate = hold('/events');
  const both = [late.run('--apply'), late.run('--apply')];
  await gate.reached(2);
  gate.release();
  const ended = await Promise.all(both);
  expect(ended.map(({ text }) => text).join()).toContain('Imported 1 version of 1 stack into both.');
  expect((await versionsHere('both')).map(({ version }) => version)).toEqual([1, 2]);
});

/** Imports so many versions of a service, of which one commit takes 50. */
async function importVersions(name: string, count: number, onCommit: (isUnfinished: boolean) => unknown) {
  await target.createUser(name, 'admin');
  const organization = await target.context.identity.findOrganization(name);
  if (!organization) throw new Error('It was created above');
  let read = 0;
  const passphrase = { type: 'passphrase', state: { salt: 'v1:A:v1:B:C' } };
  const entryOf = (version: number): SourceEntry => ({
    ...{ id: String(version), stackVersion: version, updateId: null, events: null },
    info: async () => {
      read++;
      return unrecordedInfo(new Date());
    },
    state: {
      ...{ name: `version ${version}`, bytes: null },
      document: async function* () {
        const ref = { organization: name, project: 'proj', stack: 'dev' };
        yield Buffer.from(JSON.stringify(stateWith(ref, 'v1:A:B', version, passphrase)));
      },
    },
  });
  const entries = Array.from({ length: count }, (_, at) => entryOf(at + 1));
  const { state } = entries.at(-1) as SourceEntry;
  const plan: StackPlan = {
    planned: {
      ...{ source: 'proj/dev', project: 'proj', stack: 'dev', action: 'create', notes: [], quarantine: null },
      ...{ versions: count, previews: 0, imported: 0, bytes: 0, resources: 1, secretsProvider: 'passphrase' },
    },
    content: {
      ...{ state: { ...state, modifiedAt: new Date() }, mayHaveUnrecordedState: false, history: entries, notes: [] },
      ...{ fault: null, isBusy: false, tags: async () => ({}), check: null },
      decrypt: async (ciphertexts) => ciphertexts.map(() => null),
    },
    ...{ entries, previews: [], unrecordedState: null, tags: {}, head: null },
  };
  const importer = new StackImporter({
    ...{ context: target.context, organization, from: 'a service' },
    onCommit: async (tx, { stackId }) =>
      onCommit((await createStackRepository(tx).lockById(stackId))?.isImportUnfinished ?? false),
  });
  const result = await importer.import(plan).catch((error: unknown) => error);
  return { result, read };
}

test('a stack is imported before the next one is read', async () => {
  const { ends, update } = await stackOf('one-by-one');
  await update(1);
  await ends.createStack('later');
  const before: Promise<number>[] = [];
  let isOpen = false;
  front().intercept = (call, response) => {
    if (isOpen || !call.url?.includes('/proj/later')) return false;
    const count = async (): Promise<number> => {
      const rows = await versionsHere('one-by-one');
      isOpen = true;
      response.writeHead(503, { 'retry-after': '0' }).end();
      return rows.length;
    };
    before.push(count());
    return true;
  };
  await ends.run('--apply', '--parallel', '1');
  expect(await before[0]).toBe(1);
});

test('the commit of the last versions ends an import, and one that is refused stops it', async () => {
  const commits: boolean[] = [];
  const exact = await importVersions('exact', 50, (isUnfinished) => commits.push(isUnfinished));
  expect(exact.result).toEqual({ versions: 50, previews: 0, leftOut: [] });
  expect(commits).toEqual([false]);
  const refused = new TransferError('refused');
  let calls = 0;
  const stopped = await importVersions('stopped', 101, () => {
    calls++;
    throw refused;
  });
  expect([stopped.result, stopped.read, calls]).toEqual([refused, 50, 1]);
});

test('a project that is swept before its first stack is imported is created again', async () => {
  const { stacks } = target.context;
  const { ensureProject } = stacks;
  let swept = 0;
  stacks.ensureProject = async (organizationId, project) => {
    const id = await ensureProject(organizationId, project);
    if (swept === 0) swept = (await query(target, 'delete from projects where id = $1 returning id', [id])).length;
    return id;
  };
  try {
    expect((await importVersions('swept', 1, () => {})).result).toEqual({ versions: 1, previews: 0, leftOut: [] });
    expect(swept).toBe(1);
  } finally {
    stacks.ensureProject = ensureProject;
  }
});
