import type { BlobStore } from '../../shared/platform/blobs/blob-store.ts';
import type { AdminSession } from '../admin/admin-session.ts';

/** What the commands of `holdfast backup` work with. */
export interface BackupCall {
  readonly session: AdminSession;
  /** The place of the backups. */
  readonly target: BlobStore;
}
