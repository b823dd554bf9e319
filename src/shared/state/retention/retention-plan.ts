import type { RuleSettings } from '../../updates/rules/rule-kinds.ts';
import { VersionRetention } from '../../updates/rules/version-retention.ts';
import type { KeptVersion, OldUpdate, RetentionRepository } from './retention-repository.ts';

/** Rows per statement. */
const pageRows = 200;
const previewRows = 200;
const dayMs = 86_400_000;

export interface DoomedState {
  readonly checkpointId: string;
  readonly updateIds: readonly string[];
}

type Rows = Pick<RetentionRepository, 'listPreviews' | 'listUpdates' | 'listVersions'>;

/**
 * Newest first. Consecutive versions that change nothing share a state, which is kept if the rule keeps one of the versions. Never yields
 * the newest state, a pinned one, or one of a running update.
 */
export async function* listDoomedStates(
  rows: Rows,
  stackId: string,
  settings: RuleSettings<'keep-versions'>,
  now: Date,
): AsyncGenerator<DoomedState> {
  const sieve = new VersionRetention(settings, now);
  let group = null as (DoomedState & { readonly updateIds: string[]; isKept: boolean }) | null;
  for await (const { checkpointId, endedAt, isHead, isPinned, updateId } of versions(rows, stackId)) {
    if (checkpointId === null) continue;
    if (group?.checkpointId !== checkpointId) {
      if (group && !group.isKept) yield group;
      group = { checkpointId, updateIds: [], isKept: false };
    }
    group.updateIds.push(updateId);
    if (endedAt === null || sieve.keeps(endedAt) || isHead || isPinned) group.isKept = true;
  }
  if (group && !group.isKept) yield group;
}

async function* versions(rows: Rows, stackId: string): AsyncGenerator<KeptVersion> {
  let before = 2 ** 31 - 1;
  for (;;) {
    const page = await rows.listVersions(stackId, before, pageRows);
    yield* page;
    const last = page.at(-1);
    if (!last || page.length < pageRows) return;
    before = last.version;
  }
}

/** The updates ended before a certain time, and their events are archived. */
export interface OldPage {
  readonly due: readonly OldUpdate[];
  /** Every update up to this number is due, or was due earlier. */
  readonly until: number;
}

/** Oldest first. */
export function listOldUpdates(rows: Rows, stackId: string, after: number, days: number, now: Date) {
  return pages((number) => rows.listUpdates(stackId, number, pageRows), pageRows, { after, days, now });
}

/** Oldest first. */
export function listOldPreviews(rows: Rows, stackId: string, days: number, now: Date) {
  return pages((number) => rows.listPreviews(stackId, number, previewRows), previewRows, { after: 0, days, now });
}

async function* pages(
  list: (after: number) => Promise<readonly OldUpdate[]>,
  limit: number,
  { after, days, now }: { readonly after: number; readonly days: number; readonly now: Date },
): AsyncGenerator<OldPage> {
  const before = now.getTime() - days * dayMs;
  let isWhole = true;
  let until = after;
  for (let position = after; ; ) {
    const page = await list(position);
    const old = page.filter(({ endedAt }) => endedAt !== null && endedAt.getTime() < before);
    for (const { endedAt, isArchived, number } of page) {
      isWhole &&= endedAt !== null && endedAt.getTime() < before && isArchived;
      if (isWhole) until = number;
    }
    yield { due: old.filter(({ hasEvents, isArchived }) => hasEvents && isArchived), until };
    const last = page.at(-1);
    // Numbers and times have nearly the same order.
    if (!last || page.length < limit || old.length === 0) return;
    position = last.number;
  }
}
