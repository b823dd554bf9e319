import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openFolder } from '../../src/shared/platform/blobs/open-folder.ts';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { type S3Server, startS3Server } from '../../testkit/s3-server.ts';
import { runHoldfast } from '../support/admin.ts';
import { archiveEnds } from '../support/archive-ends.ts';
import { query } from '../support/database.ts';
import { encrypt, runUpdate, stateWith } from '../support/import-ends.ts';
import { importEnv } from '../support/import-run.ts';
import { until } from '../support/until.ts';

const { source, target, organization } = archiveEnds();
let s3: S3Server;
beforeAll(async () => {
  s3 = await startS3Server('versitygw');
  await s3.createBucket('archives');
  process.env['AWS_ACCESS_KEY_ID'] = s3.accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = s3.secretAccessKey;
});
afterAll(() => s3.stop());

const stackCount = 12;

test('an archive in a bucket is exported and imported by commands that are killed and run again', async () => {
  const ends = await organization('bucket');
  for (let at = 0; at < stackCount; at++) {
    const stack = await ends.createStack(`s${at}`, at === 0 ? { tags: { team: 'core' } } : {});
    for (const version of [1, 2])
      await runUpdate(source, stack, stateWith(stack, await encrypt(source, stack, '"a"'), version));
  }
  const location = `s3://archives/some/where?endpoint=${s3.endpoint}&s3ForcePathStyle=true&region=us-east-1`;
  const env = (app: typeof source) => ({
    ...importEnv(app, ''),
    ...{ PULUMI_CONFIG_PASSPHRASE: 'correct horse' },
    ...{ AWS_ACCESS_KEY_ID: s3.accessKeyId, AWS_SECRET_ACCESS_KEY: s3.secretAccessKey },
  });
  const exporting = ['export', '--organization', 'bucket', '--archive', location];
  const importing = ['import', '--from', 'archive', location, '--organization', 'bucket'];
  const run = async (app: typeof source, ...words: string[]) => {
    const { code, stderr, stdout } = await runHoldfast(env(app), ...words);
    return { code, text: stdout + stderr };
  };
  /** Kills the command once `isReached`. */
  const kill = async (app: typeof source, words: readonly string[], isReached: () => Promise<boolean>) => {
    const child = spawn(process.execPath, [holdfastProgram, ...words, '--parallel', '1'], {
      env: env(app),
      stdio: 'ignore',
    });
    const ended = once(child, 'exit');
    await until(async () => child.exitCode !== null || (await isReached()), 'the command has begun to write');
    expect(child.kill('SIGKILL')).toBe(true);
    await ended;
  };
  const folder = await openFolder(location, {
    ...{ region: 'us-east-1', endpoint: s3.endpoint, forcePathStyle: true, requestTimeoutMs: 30_000 },
  });
  const states = async () => (await Array.fromAsync(folder.list(''))).filter(({ name }) => name.includes('.state.'));
  const imported = async () => (await query(target, 'select 1 from imported_versions')).length;

  await kill(source, exporting, async () => (await states()).length > 2);
  expect((await states()).length).toBeLessThan(2 * stackCount);
  expect((await run(target, ...importing)).text).toContain('has not ended: run it again to continue');
  expect((await run(source, ...exporting)).text).toContain(
    `Exported ${stackCount} stacks with ${2 * stackCount} versions`,
  );
  expect(await states()).toHaveLength(2 * stackCount);
  for (const { name } of await Array.fromAsync(folder.list('')))
    expect(name).toMatch(/^(holdfast-archive\.json|stacks\/[0-9a-f-]{36}\/[0-9a-z.-]+)$/);

  await kill(target, [...importing, '--apply'], async () => (await imported()) > 2);
  expect(await imported()).toBeLessThan(2 * stackCount);
  const again = await run(target, ...importing, '--apply');
  expect([again.code, await imported()]).toEqual([0, 2 * stackCount]);
  expect((await run(target, ...importing, '--apply')).text).toMatch(
    /^Not in the archive: members \(\S+\)\.\nImported 0 versions of 0 stacks into bucket\.\n$/,
  );
  const verified = await run(target, ...importing, '--verify');
  expect(verified.text).toMatch(
    new RegExp(`^Compared ${stackCount} stacks and ${2 * stackCount} versions, .* no differences\\.\\n$`),
  );
  expect((await ends.here('proj/s0')).tags).toMatchObject({ team: 'core' });

  // What is missing or foreign in a bucket is found as in a folder.
  const [first] = await states();
  await folder.delete(first?.name as string);
  expect((await run(target, ...importing, '--verify')).text).toContain(`${first?.name} is missing`);
  expect((await run(source, ...exporting)).text).toContain('written anew, because');
  expect((await run(target, ...importing, '--verify')).text).toContain('no differences');
  await folder.close();
});
