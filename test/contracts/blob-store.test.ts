import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { describeBlobStore, type StoreUnderTest } from './blob-store-suite.ts';
import { startS3Store } from './s3-blob-store-suite.ts';
import { describeOnS3 } from './s3-under-test.ts';

async function startFiles(): Promise<StoreUnderTest> {
  const directory = await mkdtemp(path.join(tmpdir(), 'holdfast-blobs-'));
  const unfinished = path.join(directory, 'unfinished');
  return {
    store: await FileBlobStore.open({ directory }),
    smallPages: await FileBlobStore.open({ directory, pageSize: 10 }),
    countUnfinished: async () => (await readdir(unfinished)).length,
    leaveUnfinished: () => writeFile(path.join(unfinished, 'killed.part'), 'half'),
    close: () => rm(directory, { recursive: true, force: true }),
  };
}

describeBlobStore('files', startFiles);
await describeOnS3('versitygw', (server) => describeBlobStore('S3 on versitygw', () => startS3Store(server())));
