import type { createExportedStackRepository, EntryRow } from './exported-stack-repository.ts';

const pageRows = 1_000;

/** The entry is the version's time in ns, later than the previous version's. An imported version keeps its entry. */
export function laterOf(last: bigint, { endedAt, entry }: EntryRow): bigint {
  // Entries of a service are not times.
  const own = entry && /^\d+$/.test(entry) ? BigInt(entry) : BigInt(endedAt.getTime()) * 1_000_000n;
  return own > last ? own : last + 1n;
}

/** Returns the entry of the last version before `first`, which depends on all earlier ones; 0 if there is none. */
export async function findEntryBefore(
  rows: Pick<ReturnType<typeof createExportedStackRepository>, 'listEntries'>,
  stackId: string,
  first: number,
): Promise<bigint> {
  let entry = 0n;
  for (let from = 0; ; ) {
    const page = await rows.listEntries(stackId, { from, before: first }, pageRows);
    for (const row of page) entry = laterOf(entry, row);
    const last = page.at(-1);
    if (!last || page.length < pageRows) return entry;
    from = last.stackVersion + 1;
  }
}
