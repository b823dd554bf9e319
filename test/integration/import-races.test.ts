import { expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { encrypt, runUpdate, stateWith, testEnds } from '../support/import-ends.ts';
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

/** Keeps the answers of the source to this call after so many, until they are released. A plan reads the newest state, too. */
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
    reached: () => until(async () => held.length > 0, `${path} is asked for`),
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

  const second = hold('/export/1');
  const again = ends.run('--apply');
  await second.reached();
  await ok(target.call('DELETE', `${here.path}?force=true`, { auth: here.auth }));
  second.release();
  expect((await again).text).toContain('interrupted: The stack was deleted meanwhile');
  expect(await target.context.stacks.find({ organization: 'unfinished', project: 'proj', stack: 'dev' })).toBeNull();
});

test('an update that begins during a second pass stays, and nothing is imported over it', async () => {
  const { ends, here, update } = await stackOf('updated');
  await update(1);
  await ends.run('--apply');
  await update(2);
  const gate = hold('/export/2', 1);
  const running = ends.run('--apply');
  await gate.reached();
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
  const gate = hold('/export/2', 2);
  const both = [late.run('--apply'), late.run('--apply')];
  await gate.reached();
  gate.release();
  const ended = await Promise.all(both);
  expect(ended.map(({ text }) => text).join()).toContain('Imported 1 version of 1 stack into both.');
  expect((await versionsHere('both')).map(({ version }) => version)).toEqual([1, 2]);
});
