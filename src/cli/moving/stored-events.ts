import type { AppContext } from '../../shared/context.ts';

/** The number of an update's events here. */
export async function countStoredEvents({ eventReader }: AppContext, { id }: { readonly id: string }): Promise<number> {
  let count = 0;
  let beyond = -1;
  const owner = { id, mayHaveRows: true };
  const page = { events: 500, bytes: 1024 * 1024 };
  for (;;) {
    const before = count;
    const selection = { beyond, newestFirst: false, urn: null, types: null };
    for await (const batch of eventReader.read(owner, selection, page)) {
      count += batch.length;
      beyond = batch.at(-1)?.sequence ?? beyond;
    }
    if (count === before) return count;
  }
}
