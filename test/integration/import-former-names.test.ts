import { expect, test } from '@jest/globals';
import { archiveEnds } from '../support/archive-ends.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { base64, encrypt, runUpdate, stateWith } from '../support/import-ends.ts';
import { ask, command } from '../support/procedures.ts';
import { ok } from '../support/state.ts';

const { source, target, organization } = archiveEnds();

test('former names of a stack come with an archive', async () => {
  const ends = await organization('renamed');
  const old = await ends.createStack('old');
  const secret = await encrypt(source, old, '"hunter2"');
  await runUpdate(source, old, stateWith(old, secret, 1));
  await ok(source.call('POST', `${old.path}/rename`, { auth: ends.auth, body: { newName: 'dev' } }));
  await ends.export();
  expect((await ends.import('--apply')).text).toMatch(
    /^Not in the archive: members \(\S+\)\.\nImported 2 versions of 1 stack into renamed\.\n$/,
  );
  expect((await ends.import('--verify')).text).toContain('no differences');
  expect(await query(target, 'select project_name, stack_name from former_stack_names')).toEqual([
    { project_name: 'proj', stack_name: 'old' },
  ]);

  // Links with the old name lead to the stack, unless the caller may not see it, or another one has the name.
  const token = ends.authHere.replace('token ', '');
  const renamed = async (stack: string, by = token) =>
    (await ask(target, by, 'stacks.renamed', { organization: 'renamed', project: 'proj', stack })).data;
  expect(await renamed('old')).toEqual({ project: 'proj', stack: 'dev' });
  expect([await renamed('dev'), await renamed('none')]).toEqual([null, null]);
  await ok(target.call('POST', '/api/stacks/renamed/proj', { auth: ends.authHere, body: { stackName: 'old' } }));
  expect(await renamed('old')).toBeNull();
  await ok(target.call('DELETE', '/api/stacks/renamed/proj/old', { auth: ends.authHere }));
  const viewer = await person(target, 'renamed', 'viewer');
  expect(await renamed('old', viewer.token)).toEqual({ project: 'proj', stack: 'dev' });
  await grant(target, viewer.organizationId, { userId: viewer.userId }, 'deny', ['read'], {
    stacks: 'proj/dev',
  });
  expect(await renamed('old', viewer.token)).toBeNull();

  // The CLI asks for secrets at the name that an old file has.
  const { deployment } = await ends.here('proj/dev/export');
  const { ciphertext } = deployment.resources[1].inputs.key;
  const body = { ciphertexts: [ciphertext] };
  const answer = await ok(target.call('POST', `${old.path}/batch-decrypt`, { auth: ends.authHere, body }));
  expect(answer.json.plaintexts).toEqual({ [ciphertext]: base64('"hunter2"') });

  // A version from before the rename is restored under the new name.
  const urnsOf = async (call: string) => JSON.stringify((await ends.here(call)).deployment.resources);
  expect(await urnsOf('proj/dev/export/1')).toContain('urn:pulumi:old::');
  const restore = { organization: 'renamed', project: 'proj', stack: 'dev', version: 1, headVersion: 2 };
  const restored = await command(target, token, 'versions.restore', restore);
  expect(restored.status).toBe(200);
  expect(await urnsOf('proj/dev/export')).not.toContain('urn:pulumi:old::');

  await query(target, 'delete from former_stack_names');
  expect((await ends.import('--verify')).text).toContain('proj/dev: its former name proj/old is not here');
});

test('a stack that was renamed at either end since its import is not imported once more', async () => {
  const ends = await organization('twice');
  for (const name of ['here', 'there']) {
    const stack = await ends.createStack(name);
    await runUpdate(source, stack, stateWith(stack, await encrypt(source, stack, '"x"'), 1));
  }
  await ends.export();
  expect((await ends.import('--apply')).text).toContain('Imported 2 versions of 2 stacks');
  const at = '/api/stacks/twice/proj';
  await ok(target.call('POST', `${at}/here/rename`, { auth: ends.authHere, body: { newName: 'moved-here' } }));
  await ok(source.call('POST', `${at}/there/rename`, { auth: ends.auth, body: { newName: 'moved-there' } }));
  await ends.export();
  const again = await ends.import('--apply');
  expect(again.text).toMatch(/proj\/here: .*is proj\/moved-here here/);
  expect(again.text).toMatch(/proj\/moved-there: .*is proj\/there here/);
  const { stacks } = (await ok(target.call('GET', '/api/user/stacks?organization=twice', { auth: ends.authHere })))
    .json;
  expect(stacks.map(({ stackName }: { stackName: string }) => stackName).sort()).toEqual(['moved-here', 'there']);
  const mapped = await ends.import('--apply', '--stack', 'proj/moved-there', '--map', 'proj/moved-there=proj/there');
  expect(mapped.text).toContain('Imported 1 version of 1 stack');
});
