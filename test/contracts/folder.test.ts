import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import type { Folder } from '../../src/shared/platform/blobs/folder.ts';
import { LocationError } from '../../src/shared/platform/blobs/locations/location-url.ts';
import { openFolder } from '../../src/shared/platform/blobs/open-folder.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { runHoldfast } from '../support/admin.ts';
import { writeDiyFolder } from '../support/diy-folder.ts';
import { masterKeys, testApp } from '../support/test-app.ts';
import { describeOnS3 } from './s3-under-test.ts';

const home = mkdtempSync(path.join(tmpdir(), 'holdfast-folder-'));
const defaults = { region: 'us-east-1', endpoint: null, forcePathStyle: false, requestTimeoutMs: 60_000 };
afterAll(() => rmSync(home, { recursive: true, force: true }));

async function textOf(folder: Folder, name: string): Promise<string | null> {
  const file = await folder.open(name);
  return file === null ? null : Buffer.concat(await Array.fromAsync(file)).toString();
}

async function expectFolder(folder: Folder): Promise<void> {
  const name = '.pulumi/stacks/Proj_1/a.b.json';
  const write = (at: string, text: string) => folder.write(at, bytesOf(Buffer.from(text))());
  const names = async (prefix: string) => (await Array.fromAsync(folder.list(prefix))).map((file) => file.name).sort();
  expect([await textOf(folder, name), await names('.pulumi/')]).toEqual([null, []]);
  await write(name, 'first');
  await write(name, 'second');
  await write('.pulumi/meta.yaml', 'version: 1');
  const failing = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from('half');
    throw new Error('the source ended');
  };
  await expect(folder.write(name, failing())).rejects.toThrow('the source ended');
  expect(await textOf(folder, name)).toBe('second');
  expect(await names('.pulumi/')).toEqual(['.pulumi/meta.yaml', name]);
  expect(await names('.pulumi/stacks/')).toEqual([name]);
  const [{ bytes, modifiedAt } = {}] = await Array.fromAsync(folder.list('.pulumi/stacks/'));
  expect(bytes).toBe(6);
  expect(Math.abs(Date.now() - (modifiedAt as Date).getTime())).toBeLessThan(60_000);
  await folder.close();
}

test('a folder on a disk keeps names, and shows files when they are complete', async () => {
  await expectFolder(await openFolder(`file://${home}/disk`, defaults));
});

test.each([
  ['/acme#2026', '/acme#2026'],
  ['/100%', '/100%'],
  ['/a%20b?c', '/a%20b?c'],
  ['file:///a%20b?region=x', '/a b'],
])('%s is the folder %s', async (given, expected) => {
  const [scheme = '', below = ''] = given.startsWith('file://') ? ['file://', given.slice(7)] : ['', given];
  const folder = await openFolder(`${scheme}${home}/plain${below}`, defaults);
  await folder.write('x', bytesOf(Buffer.from('content'))());
  expect(await readFile(`${home}/plain${expected}/x`, 'utf8')).toBe('content');
});

test.each(['file:///100%', 's3://bucket/100%'])('%s has an escape that is none', async (location) => {
  await expect(openFolder(location, defaults)).rejects.toThrow(LocationError);
});

test.each(['gs://bucket', 's3:///prefix', 'https://example.com'])('%s is refused', async (location) => {
  await expect(openFolder(location, defaults)).rejects.toThrow(LocationError);
});

test.each(['s3://KEY:s3cr3t@bucket', 's3://KEY:s3/cr3t@bucket/x', 's3://bucket?endpoint=https://KEY:s3cr3t@host'])(
  'credentials in %s are refused, and not repeated',
  async (location) => {
    const opened = openFolder(location, defaults);
    await expect(opened).rejects.toThrow(LocationError);
    await expect(opened).rejects.toThrow(/^The URL of the bucket has credentials: set AWS_ACCESS_KEY_ID/);
  },
);

await describeOnS3('versitygw', (server) => {
  const app = testApp();

  test('a prefix of a bucket does the same, and stacks are exported to it and imported from it', async () => {
    const { accessKeyId, createBucket, endpoint, region, secretAccessKey } = server();
    await createBucket('moving');
    const credentials = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };
    Object.assign(process.env, credentials);
    const locationOf = (prefix: string) =>
      `s3://moving/${prefix}?endpoint=${endpoint}&region=${region}&s3ForcePathStyle=true`;
    await expectFolder(await openFolder(locationOf('Some/prefix'), defaults));

    await writeDiyFolder(`${home}/source`, [{ project: 'proj', stack: 'dev', versions: 3, tags: { team: 'core' } }]);
    for (const organization of ['first', 'second']) await app.createUser(organization, 'admin');
    const env = {
      ...{ PATH: process.env['PATH'], HOLDFAST_DATA_DIR: app.dataDir, HOLDFAST_MASTER_KEYS: masterKeys },
      ...{ HOLDFAST_DATABASE_URL: app.database.url, ...credentials },
    };
    for (const words of [
      ['import', '--organization', 'first', '--from', `file://${home}/source`, '--apply'],
      ['export', '--organization', 'first', '--to', locationOf('out')],
      ['import', '--organization', 'second', '--from', locationOf('out'), '--apply'],
      ['import', '--organization', 'second', '--from', locationOf('out'), '--verify'],
      // The history of an import is the one of its source, so that the first source is known again.
      ['import', '--organization', 'first', '--from', locationOf('out'), '--verify'],
    ]) {
      const { code, stderr, stdout } = await runHoldfast(env, ...words);
      expect([words, code, stderr, stdout]).toEqual([words, 0, '', expect.any(String)]);
    }
  });
});
