import type { Config } from '../../config/config.ts';
import type { BlobStore } from '../blob-store.ts';
import { openBlobStore } from '../blob-stores.ts';
import { parsePlace } from '../places/place-url.ts';

/** The store of another site. */
export interface SecondStore {
  readonly store: BlobStore;
  /** The bucket replicates itself: servers write only the mark of the site there. */
  readonly isReplicated: boolean;
}

/** Opens the second store of the settings; null: there is none. Throws PlaceUrlError, and BlobStoreUnavailableError for a folder. */
export async function openSecondStore({ blobs, secondStore }: Config): Promise<SecondStore | null> {
  if (secondStore === null) return null;
  const isReplicated = /[?&]replicated=true(&|$)/.test(secondStore);
  return { store: await openBlobStore(parsePlace(secondStore, blobs)), isReplicated };
}
