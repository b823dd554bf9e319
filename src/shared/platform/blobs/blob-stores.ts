import type { BlobStore } from './blob-store.ts';
import { FileBlobStore, type FileBlobStoreOptions } from './file-blob-store.ts';
import type { S3Options } from './s3-client.ts';

export type BlobStoreConfig =
  | ({ readonly kind: 'files' } & FileBlobStoreOptions)
  | ({ readonly kind: 's3' } & S3Options);

/** Prepares the directory of files, unless `isPrepared`, and throws BlobStoreUnavailableError if it cannot be used. Sends nothing to S3. */
export async function openBlobStore(
  config: BlobStoreConfig,
  { isPrepared = false }: { readonly isPrepared?: boolean } = {},
): Promise<BlobStore> {
  if (config.kind === 'files') return isPrepared ? FileBlobStore.at(config) : FileBlobStore.open(config);
  // The AWS SDK costs startup time and memory.
  const { S3BlobStore } = await import('./s3-blob-store.ts');
  return new S3BlobStore(config);
}
