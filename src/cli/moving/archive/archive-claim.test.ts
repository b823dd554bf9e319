import { Readable } from 'node:stream';
import { expect, test } from '@jest/globals';
import { startStopwatch } from '../../../../test/support/running-time.ts';
import { until } from '../../../../testkit/until.ts';
import type { Folder } from '../../../shared/platform/blobs/folder.ts';
import { ArchiveClaim } from './archive-claim.ts';

/** A folder with the file of a run, and the texts that were written to it. */
function claimFolder(text: string | null = null) {
  const written: string[] = [];
  let now = text;
  const folder = {
    open: async () => (now === null ? null : Readable.from([Buffer.from(now)])),
    write: async (_name: string, body: AsyncIterable<Buffer>) => {
      now = Buffer.concat(await Array.fromAsync(body)).toString();
      written.push(now);
    },
    delete: async () => {
      now = null;
    },
  };
  const set = (other: string): void => {
    now = other;
  };
  return { folder: folder as unknown as Folder, written, set };
}

test('an export that lasts raises its counter ever more rarely, and says when', async () => {
  const { folder, written } = claimFolder();
  const claim = await ArchiveClaim.take(folder, 'there');
  await until(() => written.length === 2, 'it has raised its counter');
  await claim.release();
  expect(written.map((text) => JSON.parse(text))).toMatchObject([
    { beat: 0, nextMs: 2500 },
    { beat: 1, nextMs: 5000 },
  ]);
});

test('an export waits as long as the file of another one says', async () => {
  const ended = claimFolder('{"run":"of another","beat":7,"nextMs":20}');
  const elapsedMs = startStopwatch();
  await (await ArchiveClaim.take(ended.folder, 'there')).release();
  expect(elapsedMs()).toBeLessThan(5_000);
  const running = claimFolder('{"run":"of another","beat":7,"nextMs":200}');
  setTimeout(() => running.set('{"run":"of another","beat":8,"nextMs":200}'), 500);
  await expect(ArchiveClaim.take(running.folder, 'there')).rejects.toThrow('Another export writes to there');
});
