import type { BlobStore } from '../platform/blobs/blob-store.ts';
import type { BlobLocationRepository } from '../platform/blobs/locations/blob-location-repository.ts';
import { locationKey } from '../platform/blobs/locations/located-blob-store.ts';
import { type Move, MoveError, type MoveParts, openMove } from './begin-move.ts';
import { inParallel, type PassOptions } from './compare-locations.ts';

/** Makes the other place the main one. Throws MoveError if it is not verified, or a backup runs. */
export async function switchLocations(places: BlobLocationRepository): Promise<void> {
  if (await places.lockBackups()) throw new MoveError('A backup is being made: repeat this when it has ended');
  if (!(await places.switch()))
    throw new MoveError('The other place is not verified: `holdfast blobs verify` comes first, without faults');
}

/**
 * Forgets the place that was left. With `empty`, first deletes its blobs, except those that the main place lacks. Can be repeated after an
 * interruption. Returns how many blobs it deleted and left. Throws MoveError and BlobStoreUnavailableError.
 */
export async function finishMove(
  parts: MoveParts,
  { empty = false, ...options }: PassOptions & { readonly empty?: boolean } = {},
): Promise<{ deleted: number; left: number }> {
  const { places } = parts;
  const row = await places.find();
  if (row?.phase !== 'switched') throw new MoveError('No place was left: `holdfast blobs switch` comes first');
  // A place that is kept may be away already.
  if (!empty) {
    await places.settle('switched');
    return { deleted: 0, left: 0 };
  }
  const move = await openMove(parts, 'switched');
  const result = await emptyPlace(move, options);
  await places.settle('switched');
  await move.other.delete(locationKey(row.otherId as string));
  return result;
}

/** Deletes the blobs of the place that was left, except those that the main place lacks. */
async function emptyPlace({ main, other }: Move, options: PassOptions): Promise<{ deleted: number; left: number }> {
  let deleted = 0;
  let left = 0;
  let after: string | null = '';
  while (after !== null) {
    const page: Awaited<ReturnType<BlobStore['list']>> = await other.list('', after === '' ? undefined : after);
    const keys = page.blobs.map(({ key }) => key).filter((key) => !key.startsWith('places/'));
    const absent = new Set(await main.findAbsent(keys));
    left += absent.size;
    await inParallel(keys, options.signal, async (key) => {
      if (absent.has(key)) return;
      await other.delete(key);
      deleted++;
      options.onProgress?.({ done: deleted, total: deleted });
    });
    after = page.next;
  }
  return { deleted, left };
}
