import type { BlobStore } from './blob-store.ts';
import { FileBlobStore, type FileBlobStoreOptions } from './file-blob-store.ts';
import type { S3Options } from './s3-client.ts';

export type BlobStoreConfig =
  | ({ readonly kind: 'files' } & FileBlobStoreOptions)
  | ({ readonly kind: 's3' } & S3Options);

/**
 * Opens the store that `config` names. Files: the directory is made; throws BlobStoreUnavailableError when it cannot be
 * used. S3: nothing is sent.
 */
export async function openBlobStore(config: BlobStoreConfig): Promise<BlobStore> {
  if (config.kind === 'files') return FileBlobStore.open(config);
  // The AWS SDK costs start-up time and memory that only this store needs.
  const { S3BlobStore } = await import('./s3-blob-store.ts');
  return new S3BlobStore(config);
}
