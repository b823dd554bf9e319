import { setTimeout as delay } from 'node:timers/promises';
import type { AppContext } from '../../shared/context.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import {
  beforeFirstSequence,
  createDeletedStackRepository,
  type DeletedStackRow,
  type HistoryCursor,
  type HistoryTable,
} from './deleted-stack-repository.ts';

export interface DeletionLimits {
  /** Events or journal entries per transaction. */
  readonly batchRows: number;
  /** Stored bytes of events or journal entries per transaction. */
  readonly batchBytes: number;
  /** Updates per transaction, including their checkpoints. */
  readonly batchUpdates: number;
  /** Pause between transactions, to leave time for vacuum, replication and other work. */
  readonly pauseMs: number;
  /** The rest is left to the next run. */
  readonly runMs: number;
}

const defaults = { batchRows: 5_000, batchBytes: 32 * 1024 * 1024, batchUpdates: 200, pauseMs: 20 };
const stacksPerRun = 100;
/** The pause doubles after each failure. */
const firstPauseMs = 60_000;
const maxPauseMs = 3_600_000;
const maxWaiting = 10_000;
/**
 * Each batch starts this many batches back, at deleted rows. Scanning them lets Postgres mark their index entries as dead, unless an
 * older transaction is open. Otherwise, deleting the update itself would have to look up all of them at once.
 */
const batchesBack = 4;

/** Progress of deleting one stack. Losing it only costs another scan of deleted rows. */
interface Progress {
  /** The batch of updates being deleted; empty at the start and after each batch. */
  readonly updateIds: readonly string[];
  /** Start positions of the last batches and of the next one, oldest first. Empty if the table has no rows left. */
  readonly cursors: Readonly<Record<HistoryTable, readonly HistoryCursor[]>>;
}

interface Step {
  readonly progress: Progress;
  readonly isDone: boolean;
  readonly deleted: Readonly<Record<string, number>>;
}

/** Failed attempts to delete a stack. Losing them only costs another attempt. */
interface Failure {
  readonly count: number;
  readonly error: unknown;
  readonly retryAt: number;
}

const historyTables: readonly HistoryTable[] = ['engine_events', 'journal_entries'];

/**
 * Deletes the rows of deleted stacks that can no longer be restored, in short transactions. Each locks the stack's row, so the sweep is
 * safe on any number of replicas and a process may be killed at any point. A run ends after half of the sweep interval or when the context
 * closes. Returns the number of completely deleted stacks. A stack that fails does not block the others; while it waits for its next
 * attempt, each run throws its fault at the end.
 */
export function createStackDeletion(
  context: AppContext,
  overrides: Partial<DeletionLimits> = {},
): () => Promise<number> {
  const { config, db, lifecycle, logger, metrics } = context;
  const limits: DeletionLimits = { ...defaults, runMs: config.sweepSeconds * 500, ...overrides };
  const stacks = createDeletedStackRepository(db);
  const closing = new AbortController();
  lifecycle.onClose('drain', 'stack deletion', async () => closing.abort());

  const remove = async (stack: DeletedStackRow, isOver: () => boolean): Promise<boolean> => {
    if (!(await stacks.begin(stack.id))) return false;
    let progress = chunkOf([]);
    // At least one step per stack, so that runs without time left also make progress.
    do {
      const step = await db.inTransaction((tx) => takeStep(tx, stack.id, progress, limits));
      if (!step) return false;
      for (const [table, rows] of Object.entries(step.deleted)) metrics.stackRowsDeleted.labels(table).inc(rows);
      if (step.isDone) return true;
      progress = step.progress;
      await delay(limits.pauseMs, undefined, { signal: closing.signal }).catch(() => {});
    } while (!isOver());
    return false;
  };

  let failures: ReadonlyMap<string, Failure> = new Map();
  return async () => {
    const begun = performance.now();
    // Other stacks may have been restored, put on hold, or deleted by another process.
    const due = new Set(failures.size === 0 ? [] : await stacks.listDue([...failures.keys()]));
    failures = new Map([...failures].filter(([id]) => due.has(id)));
    const waiting = new Map([...failures].filter(([, { retryAt }]) => retryAt > begun).slice(0, maxWaiting));
    const isOver = (): boolean => closing.signal.aborted || performance.now() - begun > limits.runMs;
    let gone = 0;
    for (const stack of await stacks.list(stacksPerRun, [...waiting.keys()])) {
      if (closing.signal.aborted) break;
      const { id: stackId, organization, project, stack: name } = stack;
      const facts = { stackId, organization, project, stack: name };
      try {
        if (!(await remove(stack, isOver))) continue;
        gone++;
        const seconds = Math.round(stack.secondsAgo + (performance.now() - begun) / 1000);
        logger.info({ ...facts, seconds }, 'deleted stack: all its rows are gone');
      } catch (error) {
        logger.error({ ...facts, err: error }, 'task: deleted stack skipped');
        const count = (failures.get(stackId)?.count ?? 0) + 1;
        const retryAt = performance.now() + Math.min(maxPauseMs, firstPauseMs * 2 ** (count - 1));
        waiting.set(stackId, { count, error, retryAt });
      }
    }
    failures = waiting;
    if (!closing.signal.aborted) metrics.stacksDeleting.set(await stacks.count());
    for (const { error } of waiting.values()) throw error;
    return gone;
  };
}

/** Returns null if the stack is gone or another process holds it. */
async function takeStep(
  tx: Queryable,
  stackId: string,
  progress: Progress,
  limits: DeletionLimits,
): Promise<Step | null> {
  const stacks = createDeletedStackRepository(tx);
  if (!(await stacks.lock(stackId))) return null;
  const chunk =
    progress.updateIds.length > 0 ? progress : chunkOf(await stacks.listUpdates(stackId, limits.batchUpdates));
  if (chunk.updateIds.length === 0) {
    const checkpoints = await stacks.deleteCheckpoints(stackId, limits.batchUpdates);
    // The versions that consist of the chunks are gone with the checkpoints.
    const chunks = checkpoints === 0 ? await stacks.deleteChunks(stackId, limits.batchUpdates) : 0;
    const names = await stacks.deleteFormerNames(stackId, limits.batchUpdates);
    const indexed = await stacks.deleteIndexRows(stackId, limits.batchRows);
    const deliveries = await stacks.deleteDeliveries(stackId, limits.batchRows);
    const isDone = await stacks.deleteRow(stackId);
    return {
      progress: chunk,
      isDone,
      deleted: {
        checkpoints,
        version_chunks: chunks,
        former_stack_names: names,
        stack_resources: indexed,
        webhook_deliveries: deliveries,
        stacks: isDone ? 1 : 0,
      },
    };
  }
  const bound = { rows: limits.batchRows, bytes: limits.batchBytes };
  let { cursors } = chunk;
  for (const table of historyTables) {
    const begun = cursors[table];
    const [cursor] = begun;
    if (!cursor) continue;
    const { count, last } = await stacks.deleteHistory(table, cursor, bound);
    const next = last && {
      updateIds: cursor.updateIds.slice(cursor.updateIds.indexOf(last.updateId)),
      after: last.sequence,
    };
    cursors = { ...cursors, [table]: next ? [...begun, next].slice(-batchesBack) : [] };
    if (next) return { progress: { ...chunk, cursors }, isDone: false, deleted: { [table]: count } };
  }
  return { progress: chunkOf([]), isDone: false, deleted: await stacks.deleteUpdates(chunk.updateIds) };
}

function chunkOf(updateIds: readonly string[]): Progress {
  const start = [{ updateIds, after: beforeFirstSequence }];
  return { updateIds, cursors: { engine_events: start, journal_entries: start } };
}
