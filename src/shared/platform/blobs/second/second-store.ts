import type { Config } from '../../config/config.ts';
import type { BlobStore } from '../blob-store.ts';
import { type BlobStoreConfig, openBlobStore } from '../blob-stores.ts';
import { parseLocation } from '../locations/location-url.ts';

/** The blob store of another site. */
export interface SecondStore {
  readonly store: BlobStore;
  /** The bucket replicates itself: servers write only the mark of the site there. */
  readonly isReplicated: boolean;
  /** Whether a write fails unless its blob is in both stores. */
  readonly isStrict: boolean;
}

const options = /\?((?:replicated|strict)=true(?:&(?:replicated|strict)=true)*)$/;

export function parseSecondStore(
  text: string,
  blobs: Config['blobs'],
): Omit<SecondStore, 'store'> & { readonly location: BlobStoreConfig } {
  const has = (option: string): boolean => new RegExp(`[?&]${option}=true(&|$)`).test(text);
  const location = parseLocation(text.replace(options, ''), blobs);
  return { location, isReplicated: has('replicated'), isStrict: has('strict') };
}

/** Null if the settings have none. Throws BlobStoreUnavailableError for a folder. */
export async function openSecondStore(
  { blobs, secondStore }: Config,
  options: { readonly isPrepared?: boolean } = {},
): Promise<SecondStore | null> {
  if (secondStore === null) return null;
  const { location, ...use } = parseSecondStore(secondStore, blobs);
  return { store: await openBlobStore(location, options), ...use };
}
