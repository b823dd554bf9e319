import type { Config } from '../../config/config.ts';
import type { BlobStore } from '../blob-store.ts';
import { openBlobStore } from '../blob-stores.ts';
import { parseLocation } from '../locations/location-url.ts';

/** The store of another site. */
export interface SecondStore {
  readonly store: BlobStore;
  /** The bucket replicates itself: servers write only the mark of the site there. */
  readonly isReplicated: boolean;
  /** A write fails unless its blob is in both stores. */
  readonly isStrict: boolean;
}

const options = /\?((?:replicated|strict)=true(?:&(?:replicated|strict)=true)*)$/;

/** Opens the second store of the settings; null: there is none. Throws LocationUrlError, and BlobStoreUnavailableError for a folder. */
export async function openSecondStore({ blobs, secondStore }: Config): Promise<SecondStore | null> {
  if (secondStore === null) return null;
  const has = (option: string): boolean => new RegExp(`[?&]${option}=true(&|$)`).test(secondStore);
  const place = parseLocation(secondStore.replace(options, ''), blobs);
  const isStrict = has('strict');
  return { store: await openBlobStore(place), isReplicated: has('replicated'), isStrict };
}
