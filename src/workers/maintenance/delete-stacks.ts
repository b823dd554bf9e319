import { setTimeout as delay } from 'node:timers/promises';
import type { AppContext } from '../../shared/context.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import {
  beforeAll,
  createDeletedStackRepository,
  type DeletedStackRow,
  type HistoryCursor,
  type HistoryTable,
} from '../../shared/stacks/deleted-stack-repository.ts';

/** What one run, and one transaction in it, may do. */
export interface DeletionLimits {
  /** Events or journal entries per transaction. */
  readonly batchRows: number;
  /** Bytes of them as stored. */
  readonly batchBytes: number;
  /** Updates per transaction, each with its checkpoint. */
  readonly batchUpdates: number;
  /** Between two transactions: time for vacuum, replicas and everybody else. */
  readonly pauseMs: number;
  /** After this time the run leaves the rest to the next. */
  readonly runMs: number;
}

const defaults = { batchRows: 5_000, batchBytes: 32 * 1024 * 1024, batchUpdates: 200, pauseMs: 20 };
const stacksPerRun = 100;
/**
 * A batch begins this many batches back, at rows that are gone: passing over them lets Postgres mark their index entries as dead,
 * as long as no transaction is older. Unmarked, all of them would be looked up at once when the update itself is deleted.
 */
const batchesBack = 4;

/** How far the deletion of one stack has come. Losing it costs a look at what is gone already, no more. */
interface Progress {
  /** The updates being deleted; none before the first, and after each chunk of them. */
  readonly updateIds: readonly string[];
  /** Where the last batches began and the next one would, oldest first; none when the table has nothing left. */
  readonly cursors: Readonly<Record<HistoryTable, readonly HistoryCursor[]>>;
}

interface Step {
  readonly progress: Progress;
  readonly isDone: boolean;
  readonly deleted: Readonly<Record<string, number>>;
}

const historyTables: readonly HistoryTable[] = ['engine_events', 'journal_entries'];

/**
 * Makes the sweep that deletes what belongs to deleted stacks: in short transactions, each of which holds the stack's row, so
 * that any number of replicas may do it and a process may be killed at any point. A run ends after half of the time between
 * two sweeps, or when the context closes. Returns how many stacks are gone for good.
 */
export function createStackDeletion(context: AppContext, given: Partial<DeletionLimits> = {}): () => Promise<number> {
  const { config, db, lifecycle, logger, metrics } = context;
  const limits: DeletionLimits = { ...defaults, runMs: config.sweepSeconds * 500, ...given };
  const stacks = createDeletedStackRepository(db);
  const closing = new AbortController();
  lifecycle.onClose('drain', 'stack deletion', async () => closing.abort());

  const remove = async (stack: DeletedStackRow, isOver: () => boolean): Promise<boolean> => {
    let progress = chunkOf([]);
    // At least one step, so that runs which are always late come to an end, too.
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

  return async () => {
    const begun = performance.now();
    const isOver = (): boolean => closing.signal.aborted || performance.now() - begun > limits.runMs;
    let gone = 0;
    for (const stack of await stacks.list(stacksPerRun)) {
      if (closing.signal.aborted) break;
      const { id: stackId, organization, project, stack: name } = stack;
      const facts = { stackId, organization, project, stack: name };
      try {
        if (!(await remove(stack, isOver))) continue;
        gone++;
        const seconds = Math.round(stack.secondsAgo + (performance.now() - begun) / 1000);
        logger.info({ ...facts, seconds }, 'deleted stack: all its rows are gone');
      } catch (error) {
        logger.error({ ...facts, err: error }, 'sweep: deleted stack skipped');
      }
    }
    if (!closing.signal.aborted) metrics.stacksDeleting.set(await stacks.count());
    return gone;
  };
}

/** Deletes one batch of what is left of the stack; null when it is gone, or another is at it. */
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
    const names = await stacks.deleteFormerNames(stackId, limits.batchUpdates);
    const isDone = await stacks.deleteRow(stackId);
    return { progress: chunk, isDone, deleted: { checkpoints, former_stack_names: names, stacks: isDone ? 1 : 0 } };
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
  const start = [{ updateIds, after: beforeAll }];
  return { updateIds, cursors: { engine_events: start, journal_entries: start } };
}
