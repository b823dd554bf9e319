import { createHash } from 'node:crypto';
import { noEncryption } from '../../src/shared/backup/backup-encryption.ts';
import { pruneBackups } from '../../src/shared/backup/backup-list.ts';
import type { BackupSource } from '../../src/shared/backup/checked-blob.ts';
import { createBackup } from '../../src/shared/backup/create-backup.ts';
import { backupKeys, ownerOf, writeBlobList, writeManifest } from '../../src/shared/backup/manifest.ts';
import { BodyPace, store } from '../../src/shared/backup/stored-bytes.ts';
import type { TableCopyRepository } from '../../src/shared/backup/table-copy-repository.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { MemoryBlobs } from './memory-blobs.ts';

/**
 * Backs up many blobs, all of which an earlier backup has, and prunes. Prints how many blobs the new backup has. A program, so that its
 * heap can be small.
 */

const count = Number(process.argv[2]);
const blobsOfList = 2_000;
const keyOf = (at: number): string => {
  const name = `${at.toString(16).padStart(8, '0')}${createHash('sha256').update(`${at}`).digest('hex').slice(8)}`;
  return `checkpoints/${name.slice(0, 2)}/${name}`;
};
const positionOf = (key: string): number => Number.parseInt(key.split('/')[2]?.slice(0, 8) ?? '', 16);

class ManyBlobs extends MemoryBlobs {
  override async stat(key: string) {
    if (!key.startsWith(backupKeys.blobs)) return super.stat(key);
    return { storedBytes: 1, modifiedAt: new Date(0) };
  }
}

const target = new ManyBlobs({ pageSize: 1_000 });
const earlier = '20200101t000000000z';
const blobLists = [];
for (let at = 0; at < count; at += blobsOfList) {
  const sha256 = '0'.repeat(64);
  const blobs = Array.from({ length: Math.min(blobsOfList, count - at) }, (_, index) => ({
    ...{ key: backupKeys.blobs + keyOf(at + index), bytes: 1, sha256, size: 1 },
  }));
  blobLists.push(
    await store(target, backupKeys.blobList(earlier, blobLists.length + 1), once(writeBlobList(blobs.toReversed()))),
  );
}
const times = { takenAt: new Date(0).toISOString(), finishedAt: new Date(0).toISOString() };
const contents = { installation: 'i', postgres: 'p', position: null, migrations: [], masterKeys: [], sequences: [] };
const manifest = await writeManifest(
  {
    ...{ format: 1, id: earlier, release: '0', recipients: [], blobPrefix: backupKeys.blobs, blobLists, bytes: count },
    ...{ ...times, ...contents, blobs: { count, bytes: count }, missingBlobs: [], tables: [] },
  },
  noEncryption.encrypt,
);
await target.put(backupKeys.start(earlier, ownerOf(contents.installation)), once(Buffer.from('\n')));
await target.put(backupKeys.manifest(earlier), once(manifest));

const copies: Partial<TableCopyRepository> = {
  beginSnapshot: async () => {},
  listAuditBases: async () => new Map(),
  describe: async () => ({ ...contents, takenAt: new Date() }),
  readPosition: async () => null,
  listMigrations: async () => [],
  listTables: async () => [],
  listSequences: async () => [],
  listReferencedBlobs: async (after: string, limit: number) => {
    const first = after === '' ? 0 : positionOf(after) + 1;
    return Array.from({ length: Math.min(limit, count - first) }, (_, index) => keyOf(first + index));
  },
  end: async () => [],
  rollback: async () => [],
};
const { blobs } = await createBackup({
  copies: copies as TableCopyRepository,
  source: { blobs: new MemoryBlobs() } as unknown as BackupSource,
  ...{ target, encryption: noEncryption, pace: new BodyPace(), onProgress: () => {} },
  signal: new AbortController().signal,
});
await pruneBackups(target, 2);
process.stdout.write(`${blobs.count}\n`);
