import { ciRunOf } from '../../shared/audit/audit-event.ts';
import { type HistoryInfo, storedPreview } from '../../shared/diy/history-info.ts';
import type { EngineEventText } from '../../shared/events/event-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { createImportedPreviewRepository } from './imported-preview-repository.ts';
import { createImportedVersionRepository, type ImportedUpdate } from './imported-version-repository.ts';
import type { SourceEntry, SourcePreview } from './moving-source.ts';

export interface PreparedPreview {
  readonly entry: string;
  /** Its id in the source; null if it has none. */
  readonly updateId: string | null;
  readonly baseVersion: number | null;
  readonly info: HistoryInfo;
  readonly events: readonly EngineEventText[];
}

/** Each entry after the previews that came before it; previews that came after all entries are last. */
export function placePreviews(
  entries: readonly SourceEntry[],
  previews: readonly SourcePreview[],
): { readonly entry: SourceEntry | null; readonly previews: readonly SourcePreview[] }[] {
  const ids = new Set(entries.map(({ id }) => id));
  // Previews that came before an update that is already here go first.
  const first = entries[0]?.id ?? null;
  const placed = Map.groupBy(previews, ({ before }) => (before === null || ids.has(before) ? before : first));
  return [
    ...entries.map((entry) => ({ entry, previews: placed.get(entry.id) ?? [] })),
    { entry: null, previews: placed.get(null) ?? [] },
  ];
}

/** Inserts a preview after the current version of the stack. Returns false if it was imported before. */
export async function insertPreview(
  tx: Queryable,
  stack: { readonly id: string; readonly stackVersion: number; readonly checkpointId: string | null },
  { baseVersion, entry, events, id, info, requestedBy }: PreparedPreview & Pick<ImportedUpdate, 'id' | 'requestedBy'>,
): Promise<boolean> {
  const startedAt = new Date(Math.round((info.startTime || info.endTime) * 1000));
  const isNew = await createImportedPreviewRepository(tx).insert({
    ...{ id, stackId: stack.id, entry, ...storedPreview(info), baseCheckpointId: stack.checkpointId },
    stackVersion: Math.min(Math.max(baseVersion ?? stack.stackVersion, 0), stack.stackVersion),
    ...{ message: info.message, environment: info.environment, config: info.config },
    ...{ resourceChanges: info.resourceChanges, ciRun: ciRunOf(JSON.parse(info.environment) as object) },
    ...{ requestedBy, hasEvents: events.length > 0 },
    ...{ startedAt, endedAt: new Date(Math.max(Math.round(info.endTime * 1000), startedAt.getTime())) },
  });
  if (isNew && events.length > 0) await createImportedVersionRepository(tx).insertEvents(id, events);
  return isNew;
}
