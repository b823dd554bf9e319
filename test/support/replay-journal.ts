import type { ManifestSource } from '../../src/shared/state/deployments/write-document.ts';
import type { JournalEntryText } from '../../src/shared/state/journal/journal-batch.ts';
import { JournalReplay, type ReplayedDocument } from '../../src/shared/state/journal/replay/rules/apply-entries.ts';

/** Replays entries over `base` by sequence id; of several with one id the first counts. Throws JournalReplayError. */
export function replayJournal(
  base: Buffer | null,
  entries: Iterable<JournalEntryText>,
  manifest: ManifestSource,
): ReplayedDocument {
  const replay = new JournalReplay(base);
  for (const entry of [...entries].sort((a, b) => a.sequenceId - b.sequenceId)) replay.apply(entry);
  return replay.generate(manifest);
}
