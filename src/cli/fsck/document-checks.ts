import type { AppContext } from '../../shared/context.ts';
import { formatStackRef } from '../../shared/stacks/names.ts';
import type { CheckOutcome } from '../../shared/state/checkpoints/document-reader.ts';
import { estimateTotal } from '../output/progress.ts';
import type { FsckRun } from './fsck-run.ts';
import { type DocumentKind, inPages, readBackDocuments, someOf } from './read-back.ts';

const kinds = {
  checkpoint: 'document-damaged',
  snapshot: 'snapshot-damaged',
  segment: 'segment-damaged',
  archive: 'archive-damaged',
} as const;

/** Reads a sample, or all. */
export async function checkStoredDocuments(run: FsckRun): Promise<void> {
  const { context, fixes, sample } = run;
  await readBackDocuments(context, null, {
    isDry: !fixes,
    sample,
    onChecked: async (kind, id, outcome) => {
      run.step(`${kind}s`, 1, (count) => sample ?? estimateTotal(count, id));
      await noteOutcome(run, kind, id, outcome);
    },
  });
}

/**
 * Reads the newest states of a sample, or of all stacks, and compares the index of their resources with them. If all are read, reports no
 * damaged state, because the check of all documents reports it.
 */
export async function checkHeads(run: FsckRun): Promise<void> {
  const { context, fixes, sample } = run;
  const { documentChecks, indexer, documentReader } = context;
  const list = (after: string, limit: number) => documentChecks.listStacksAfter(after, limit);
  for await (const stackId of sample === null ? inPages(list) : someOf(list, sample)) {
    await run.item('head', stackId, async () => {
      const head = await documentChecks.findHead(stackId);
      if (head === null) return;
      run.step('heads', 1, (count) => sample ?? estimateTotal(count, stackId));
      const outcome = await (fixes ? documentReader.check(head) : documentReader.inspect(head));
      if (sample !== null) await noteOutcome(run, 'checkpoint', head, outcome);
      if (outcome === 'damaged' || outcome === 'gone') return;
      if ((await indexer.isRight(stackId)) !== false) return;
      if (fixes) await indexer.rebuild(stackId, { allVersions: false });
      run.report.add('index-wrong', await nameOf(context, 'checkpoint', head), { isFixed: fixes });
    });
  }
}

async function noteOutcome(
  { context, report }: FsckRun,
  kind: DocumentKind,
  id: string,
  outcome: CheckOutcome | Error,
): Promise<void> {
  if (outcome instanceof Error) {
    report.add('not-checked', await nameOf(context, kind, id), { detail: outcome.message });
  } else if (outcome === 'damaged' || outcome === 'repaired') {
    report.add(kinds[kind], await nameOf(context, kind, id), { isFixed: outcome === 'repaired' });
  }
}

async function nameOf(context: AppContext, kind: DocumentKind, id: string): Promise<string> {
  if (kind === 'snapshot') return `update ${id}`;
  if (kind === 'archive') return (await context.policyArchives.describe(id)) ?? `archive ${id}`;
  if (kind === 'segment') {
    const owner = await context.eventSegments.findOwner(id);
    return owner ? `${formatStackRef(owner)}, events of update ${owner.updateId}` : `segment ${id}`;
  }
  const owner = await context.documentChecks.findOwner(id);
  return owner ? `${formatStackRef(owner)}, version ${owner.stackVersion ?? 0}` : `checkpoint ${id}`;
}
