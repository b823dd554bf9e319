import type { EventSegments } from '../../shared/events/event-segments.ts';
import type { PolicyArchives } from '../../shared/policies/policy-archives.ts';
import type { DocumentCheckRepository } from '../../shared/state/checks/document-check-repository.ts';
import type { CheckOutcome, DocumentVerifier } from '../../shared/state/checks/document-verifier.ts';
import type { JournalSnapshots } from '../../shared/state/journal/journal-snapshots.ts';

/** The result of checking many documents. Documents that were deleted in the meantime are not counted. */
export interface CheckSummary {
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
  /** Documents that could not be read, with the error. */
  readonly unread: { readonly id: string; readonly error: unknown }[];
}

const pageSize = 500;
const lowestId = '00000000-0000-0000-0000-000000000000';

/**
 * Checks all documents, or the documents of one stack, one after another, regardless of when they were last read. Safe while a server is
 * running.
 */
export async function checkDocuments(
  parts: {
    documentChecks: DocumentCheckRepository;
    journalSnapshots: JournalSnapshots;
    eventSegments: EventSegments;
    policyArchives: PolicyArchives;
    verifier: DocumentVerifier;
  },
  stackId: string | null,
): Promise<CheckSummary> {
  const { documentChecks, journalSnapshots, eventSegments, policyArchives, verifier } = parts;
  const summary: CheckSummary = {
    checked: 0,
    damaged: 0,
    repaired: 0,
    unrepaired: [],
    damagedSegments: [],
    damagedArchives: [],
    unread: [],
  };
  const check = async (id: string, run: () => Promise<CheckOutcome>, damaged = summary.unrepaired): Promise<void> => {
    try {
      const outcome = await run();
      if (outcome === 'gone') return;
      summary.checked++;
      if (outcome === 'repaired' || outcome === 'damaged') summary.damaged++;
      if (outcome === 'repaired') summary.repaired++;
      if (outcome === 'damaged') damaged.push(id);
    } catch (error) {
      summary.unread.push({ id, error });
    }
  };
  const checkCheckpoint = (id: string) => check(id, () => verifier.check(id));
  const checkSnapshot = (id: string) => check(id, () => journalSnapshots.check(id));
  const checkSegment = (id: string) => check(id, () => eventSegments.check(id), summary.damagedSegments);
  if (stackId !== null) {
    for (const id of await documentChecks.listFirst(stackId)) await checkCheckpoint(id);
    for await (const updates of updatesOf(stackId, documentChecks)) {
      for (const id of await documentChecks.listOfUpdates(updates)) await checkCheckpoint(id);
      for (const id of await journalSnapshots.listOfUpdates(updates)) await checkSnapshot(id);
      for (const id of await eventSegments.listOfUpdates(updates)) await checkSegment(id);
    }
    // Policy packs belong to organizations.
    return summary;
  }
  for await (const id of inPages((after) => documentChecks.listAfter(after, pageSize))) await checkCheckpoint(id);
  for await (const id of inPages((after) => journalSnapshots.listAfter(after, pageSize))) await checkSnapshot(id);
  for await (const id of inPages((after) => eventSegments.listAfter(after, pageSize))) await checkSegment(id);
  for await (const id of inPages((after) => policyArchives.listAfter(after, pageSize))) {
    await check(id, () => policyArchives.check(id), summary.damagedArchives);
  }
  return summary;
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

async function* inPages(listAfter: (after: string) => Promise<readonly string[]>): AsyncGenerator<string> {
  let page: readonly string[];
  for (let after = lowestId; ; after = page.at(-1) as string) {
    page = await listAfter(after);
    yield* page;
    if (page.length < pageSize) return;
  }
}
