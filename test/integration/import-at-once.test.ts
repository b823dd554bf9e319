import { expect, test } from '@jest/globals';
import { archiveEnds } from '../support/archive-ends.ts';
import { holdInserts, query } from '../support/database.ts';
import { encrypt, runUpdate, stateWith } from '../support/import-ends.ts';

const { source, target, organization } = archiveEnds();

/** An archive of stacks with two versions each. */
async function archiveOf(name: string, stacks: readonly string[]) {
  const ends = await organization(name);
  for (const each of stacks) {
    const stack = await ends.createStack(each);
    for (const version of [1, 2])
      await runUpdate(source, stack, stateWith(stack, await encrypt(source, stack, '"a"'), version));
  }
  await ends.export();
  return ends;
}

const versionsOf = (name: string) =>
  query<{ id: string; stack: string; version: number }>(
    target,
    `select u.id, s.name as stack, u.stack_version as version from updates u join stacks s on s.id = u.stack_id
     join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where o.name = $1 order by s.name, u.stack_version`,
    [name],
  );

test('an archive can be imported into two organizations at once', async () => {
  const ends = await archiveOf('first', ['dev']);
  await target.createUser('second', 'admin');
  await using gate = await holdInserts(target, 'imported_versions');
  const running = [ends.import('--apply'), ends.import('--organization', 'second', '--apply')];
  // One has inserted an update that the other inserts as well.
  await gate.reached(2);
  await gate.release();
  const ended = await Promise.all(running);
  expect(ended.map(({ code, text }) => [code, text])).toEqual([
    [
      0,
      expect.stringMatching(/^Not in the archive: members \(\S+\)\.\nImported 2 versions of 1 stack into first\.\n$/),
    ],
    [
      0,
      expect.stringMatching(/^Not in the archive: members \(\S+\)\.\nImported 2 versions of 1 stack into second\.\n$/),
    ],
  ]);
  const [first, second] = [await versionsOf('first'), await versionsOf('second')];
  expect([first, second].map((rows) => rows.map(({ version }) => version))).toEqual([
    [1, 2],
    [1, 2],
  ]);
  // One has the ids of the source, so that links to it stay valid.
  const there = await query<{ id: string }>(source, 'select id from updates where stack_version is not null');
  const isThere = ({ id }: { id: string }): boolean => there.some((row) => row.id === id);
  expect([first.filter(isThere).length, second.filter(isThere).length].sort()).toEqual([0, 2]);
  for (const name of ['first', 'second'])
    expect((await ends.import('--organization', name, '--verify')).text).toContain('no differences');
});

test('two imports of one archive into one organization bring everything once, and one names the other', async () => {
  const ends = await archiveOf('same', ['a', 'b', 'c']);
  await using gate = await holdInserts(target, 'imported_versions');
  const running = [ends.import('--apply', '--parallel', '1'), ends.import('--apply', '--parallel', '1')];
  // The second one waits for the first, which has created the same stack.
  await gate.reached(2);
  await gate.release();
  const ended = await Promise.all(running);
  const refusals = ended.map(({ text }) => text.split('\n').filter((line) => /^proj\//.test(line)));
  expect(refusals.flat()).not.toEqual([]);
  for (const line of refusals.flat())
    expect(line).toMatch(/was (?:created|changed) here during the import, perhaps by another import: run it again/);
  expect(ended.map(({ code }) => code)).toEqual(refusals.map((lines) => (lines.length > 0 ? 1 : 0)));
  expect((await ends.import('--apply')).code).toBe(0);
  expect((await versionsOf('same')).map(({ stack, version }) => `${stack}${version}`)).toEqual(
    ['a', 'b', 'c'].flatMap((stack) => [`${stack}1`, `${stack}2`]),
  );
  expect((await ends.import('--verify')).text).toContain('no differences');
});
