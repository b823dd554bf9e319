import { readFileSync } from 'node:fs';
import { type Decrypt, decryptWithIdentities } from '../../shared/backup/backup-encryption.ts';
import { BackupError } from '../../shared/backup/backup-error.ts';
import { openBackup } from '../../shared/backup/backup-list.ts';
import { type Manifest, readManifest } from '../../shared/backup/manifest.ts';
import type { BlobStore } from '../../shared/platform/blobs/blob-store.ts';
import type { AdminSession } from '../admin/admin-session.ts';

export interface BackupCall {
  readonly session: AdminSession;
  readonly target: BlobStore;
}

/** A backup that is read completely. */
export interface OpenedBackup {
  readonly manifest: Manifest;
  /** Null: the backup is not encrypted. */
  readonly decrypt: Decrypt | null;
}

/** `id` null is the newest backup. Throws BackupError. */
export async function openWhole(
  target: BlobStore,
  id: string | null,
  identity: string | undefined,
): Promise<OpenedBackup> {
  const decrypt = identity === undefined ? null : await decryptWithIdentities(readIdentity(identity));
  const head = await openBackup(target, id);
  const manifest = await readManifest(head, decrypt);
  return { manifest, decrypt: head.recipients.length > 0 ? decrypt : null };
}

function readIdentity(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new BackupError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}
