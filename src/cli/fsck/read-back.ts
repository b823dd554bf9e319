import { randomUUID } from 'node:crypto';
import type { EventSegments } from '../../shared/events/event-segments.ts';
import type { PolicyArchives } from '../../shared/policies/policy-archives.ts';
import type { DocumentCheckRepository } from '../../shared/state/checkpoints/document-check-repository.ts';
import type { CheckOutcome, DocumentReader } from '../../shared/state/checkpoints/document-reader.ts';
import type { JournalSnapshots } from '../../shared/state/journal/journal-snapshots.ts';
import { estimateTotal, type Progress } from '../output/progress.ts';

/** Documents that were deleted in the meantime are not counted. */
export interface ReadBackSummary {
  checked: number;
  /** Damaged documents, including repaired ones. */
  damaged: number;
  repaired: number;
  /** Ids of checkpoints that stay damaged. */
  readonly unrepaired: string[];
  /** Ids of segments of events that are damaged. */
  readonly damagedSegments: string[];
  /** Ids of archives of policy packs that are damaged. */
  readonly damagedArchives: string[];
  /** With the error. */
  readonly unread: { readonly id: string; readonly error: unknown }[];
}

export type DocumentKind = 'checkpoint' | 'snapshot' | 'segment' | 'archive';

interface CheckOptions {
  /** Neither marks nor repairs documents. */
  readonly isDry?: boolean;
  /** Of each kind, chosen at random; null: all. */
  readonly sample?: number | null;
  /** Receives each outcome, or the error of a document that could not be read. */
  readonly onChecked?: (kind: DocumentKind, id: string, outcome: CheckOutcome | Error) => unknown;
}

/** Reports each checked document. `isInOrder`: all documents of a kind are checked, in the order of their ids. */
export function reportTo(progress: Progress, isInOrder: boolean): NonNullable<CheckOptions['onChecked']> {
  const counts = new Map<DocumentKind, number>();
  return (kind, id) => {
    const done = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, done);
    progress.report(`${kind}s`, done, isInOrder ? estimateTotal(done, id) : null);
  };
}

interface Checkable {
  check(id: string): Promise<CheckOutcome>;
  inspect(id: string): Promise<CheckOutcome>;
  listAfter(after: string, limit: number): Promise<readonly string[]>;
}

interface CheckParts {
  readonly documentChecks: DocumentCheckRepository;
  readonly journalSnapshots: JournalSnapshots;
  readonly eventSegments: EventSegments;
  readonly policyArchives: PolicyArchives;
  readonly documentReader: DocumentReader;
}

const pageSize = 500;
const lowestId = '00000000-0000-0000-0000-000000000000';

/** One after another, even if they were read recently. Safe while a server is running. */
export async function readBackDocuments(
  parts: CheckParts,
  stackId: string | null,
  { isDry = false, onChecked = () => {}, sample = null }: CheckOptions = {},
): Promise<ReadBackSummary> {
  const { documentChecks, journalSnapshots, eventSegments, policyArchives, documentReader } = parts;
  const summary: ReadBackSummary = {
    checked: 0,
    damaged: 0,
    repaired: 0,
    unrepaired: [],
    damagedSegments: [],
    damagedArchives: [],
    unread: [],
  };
  const lists = {
    checkpoint: summary.unrepaired,
    snapshot: summary.unrepaired,
    segment: summary.damagedSegments,
    archive: summary.damagedArchives,
  };
  const documents: Readonly<Record<DocumentKind, Checkable>> = {
    checkpoint: {
      check: (id) => documentReader.check(id),
      inspect: (id) => documentReader.inspect(id),
      listAfter: (after, limit) => documentChecks.listAfter(after, limit),
    },
    snapshot: journalSnapshots,
    segment: eventSegments,
    archive: policyArchives,
  };
  const check = async (kind: DocumentKind, id: string): Promise<void> => {
    try {
      const outcome = await (isDry ? documents[kind].inspect(id) : documents[kind].check(id));
      if (outcome === 'gone') return;
      summary.checked++;
      if (outcome === 'repaired' || outcome === 'damaged') summary.damaged++;
      if (outcome === 'repaired') summary.repaired++;
      if (outcome === 'damaged') lists[kind].push(id);
      await onChecked(kind, id, outcome);
    } catch (error) {
      summary.unread.push({ id, error });
      await onChecked(kind, id, error as Error);
    }
  };
  if (stackId !== null) {
    for (const id of await documentChecks.listFirst(stackId)) await check('checkpoint', id);
    for await (const updates of updatesOf(stackId, documentChecks)) {
      for (const id of await documentChecks.listOfUpdates(updates)) await check('checkpoint', id);
      for (const id of await journalSnapshots.listOfUpdates(updates)) await check('snapshot', id);
      for (const id of await eventSegments.listOfUpdates(updates)) await check('segment', id);
    }
    // Policy packs belong to organizations.
    return summary;
  }
  for (const kind of ['checkpoint', 'snapshot', 'segment', 'archive'] as const) {
    const { listAfter } = documents[kind];
    const list = (after: string, limit: number) => listAfter.call(documents[kind], after, limit);
    for await (const id of sample === null ? inPages(list) : someOf(list, sample)) await check(kind, id);
  }
  return summary;
}

/** Ids from a random one on, and then from the lowest on: the ids are random, too. */
export async function* someOf(
  list: (after: string, limit: number) => Promise<readonly string[]>,
  count: number,
): AsyncGenerator<string> {
  const start = randomUUID();
  const upper = await list(start, count);
  yield* upper;
  if (upper.length < count) yield* (await list(lowestId, count - upper.length)).filter((id) => id <= start);
}

/** Pages of a stack's updates, by number: documents are looked up by update, so the cost of a page is proportional to its content. */
async function* updatesOf(stackId: string, documentChecks: DocumentCheckRepository): AsyncGenerator<string[]> {
  let page: Awaited<ReturnType<DocumentCheckRepository['listUpdates']>>;
  for (let after = 0; ; after = page.at(-1)?.number ?? 0) {
    page = await documentChecks.listUpdates(stackId, after, pageSize);
    if (page.length > 0) yield page.map(({ id }) => id);
    if (page.length < pageSize) return;
  }
}

/** All ids, page by page. */
export async function* inPages(
  listAfter: (after: string, limit: number) => Promise<readonly string[]>,
): AsyncGenerator<string> {
  let page: readonly string[];
  for (let after = lowestId; ; after = page.at(-1) as string) {
    page = await listAfter(after, pageSize);
    yield* page;
    if (page.length < pageSize) return;
  }
}
