import { textInChunks } from '../../shared/platform/db/text-chunks.ts';
import { environmentsName } from '../../shared/updates/cli-texts.ts';
import type {
  ConfigurationRow,
  HistoryRepository,
  ShownUpdates,
  UpdateInfoRow,
  UpdateText,
} from '../../shared/updates/history-repository.ts';
import { chunkBytes, jsonString } from '../platform/http/streamed-response.ts';
import { unixSeconds } from '../platform/http/unix-seconds.ts';
import { historyResult } from './updates.mappers.ts';

const chunkRows = 100;

/** Larger texts are read in chunks, so that memory use does not grow with their size. */
export const wholeBytes = 256 * 1024;

/** Newest first, as comma-separated JSON objects. A null page means all. */
export async function* historyJson(
  history: HistoryRepository,
  stackId: string,
  page: { readonly limit: number; readonly offset: number } | null,
  shown: ShownUpdates,
): AsyncGenerator<string> {
  let before: number | null = null;
  let remaining = page?.limit ?? Number.POSITIVE_INFINITY;
  let rowsAtOnce = chunkRows;
  for (let offset = page?.offset ?? 0; remaining > 0; offset = 0) {
    const limit = Math.min(remaining, rowsAtOnce);
    const rows: readonly UpdateInfoRow[] = await history.list(
      stackId,
      { before, offset, shown },
      { limit, maxBytes: chunkBytes, wholeBytes },
    );
    for (const row of rows) {
      if (before !== null) yield ',';
      yield* updateInfoJson(history, row);
      before = row.number;
    }
    if (rows.length === 0) return;
    remaining -= rows.length;
    // A large text ends a chunk early; the rows beyond the end of the chunk are read again.
    rowsAtOnce = rows.length < limit ? Math.min(chunkRows, rows.length * 2) : chunkRows;
  }
}

/** apitype.UpdateInfo, plus the contract's `status` and the update's id. The texts are JSON. `inForce` replaces the configuration. */
export async function* updateInfoJson(
  history: HistoryRepository,
  row: UpdateInfoRow,
  inForce: ConfigurationRow | null = null,
): AsyncGenerator<string> {
  const { message, environment, config, resourceChanges } = inForce ? await configured(history, row, inForce) : row;
  const [head, tail] = plainParts(row);
  if (message !== null && config !== null) {
    yield `${head},"message":${JSON.stringify(message)},"environment":${environment},"config":${config},"resourceChanges":${resourceChanges},${tail}`;
    return;
  }
  yield `${head},"message":`;
  yield* message === null ? jsonString(largeText(history, row.id, 'message')) : [JSON.stringify(message)];
  for (const [text, value] of Object.entries({ environment, config, resourceChanges })) {
    yield `,${JSON.stringify(text)}:`;
    const updateId = text === 'config' && inForce ? inForce.updateId : row.id;
    yield* value === null ? largeText(history, updateId, text as UpdateText) : [value];
  }
  yield `,${tail}`;
}

/**
 * The update with the configuration of another update, and the environments of Pulumi ESC that belong to it. If they are too large for
 * memory, the update keeps its own.
 */
async function configured(
  history: HistoryRepository,
  row: UpdateInfoRow,
  { config, environment: before }: ConfigurationRow,
): Promise<UpdateInfoRow> {
  const own = row.environment ?? (await history.readText(row.id, 'environment', 1, wholeBytes));
  if (own.length >= wholeBytes || before === null) return { ...row, config };
  const { [environmentsName]: _, ...others } = membersOf(own);
  const { [environmentsName]: environments } = membersOf(before);
  return { ...row, config, environment: JSON.stringify({ ...others, [environmentsName]: environments }) };
}

function membersOf(environment: string): Readonly<Record<string, unknown>> {
  return JSON.parse(environment) as Record<string, unknown>;
}

export function largeText(history: HistoryRepository, updateId: string, text: UpdateText): AsyncGenerator<string> {
  return textInChunks((from, chars) => history.readText(updateId, text, from, chars));
}

function plainParts(row: UpdateInfoRow): [string, string] {
  const head = JSON.stringify({
    updateID: row.id,
    kind: row.kind,
    startTime: unixSeconds(row.startedAt ?? row.createdAt),
    endTime: unixSeconds(row.endedAt),
  });
  const tail = JSON.stringify({
    result: historyResult(row.status),
    status: row.status,
    version: row.stackVersion ?? row.baseStackVersion,
    resourceCount: row.resourceCount ?? 0,
    ...(row.missingEntries !== null && { missingEntries: row.missingEntries }),
    ...(row.stateDeletedAt !== null && { stateDeletedAt: row.stateDeletedAt.toISOString() }),
    ...(row.eventsDeletedAt !== null && { eventsDeletedAt: row.eventsDeletedAt.toISOString() }),
  });
  return [head.slice(0, -1), tail.slice(1)];
}
