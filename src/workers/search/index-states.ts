import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AppContext } from '../../shared/context.ts';
import { repeat } from '../../shared/platform/lifecycle/repeat.ts';
import { BytePace } from '../../shared/platform/slices/byte-pace.ts';
import {
  createDueIndexRepository,
  type DueStack,
  indexClaimSeconds,
} from '../../shared/search/due-index-repository.ts';
import { createFormerVersionsRepository } from '../../shared/search/former-versions-repository.ts';
import { assertStoreReachable } from '../platform/store-reachable.ts';

const pollMs = 1_000;
/** Limits how often a stack is indexed that commits all the time. */
const delaySeconds = 2;
const stacksAtOnce = 20;
/** Indexing takes at most a quarter of the time of a process, so that it does not delay a burst of saved states. */
const pauseShare = 3;
const maxPauseMs = 500;
/** Indexing a stack waits this long for calls that begin and end updates, with these pauses. */
const maxYieldMs = 2_000;
const yieldMs = 100;
/** The pace at which a process reads all states after `holdfast admin index rebuild --all`, in bytes per second. */
const backlogBytesPerSecond = 4 * 1024 * 1024;
/** Per stack of the backlog, for the fixed cost of its statements. */
const minChargeBytes = 16 * 1024;

type Parts = Pick<AppContext, 'blobs' | 'db' | 'indexer' | 'logger' | 'metrics'>;

/** Runs until the process stops, or another site has taken over. Safe in any number of processes. */
export function startIndexing(context: Parts & Pick<AppContext, 'lifecycle' | 'readOnly'>): void {
  const { lifecycle, logger, readOnly } = context;
  const backlog = new BytePace(backlogBytesPerSecond);
  const history = new HistoryRound();
  const round = async (stop: AbortSignal): Promise<void> => {
    if (readOnly.isFenced) return;
    const signal = AbortSignal.any([stop, readOnly.fenceSignal]);
    const indexed = await indexDue(context, { signal, delaySeconds, backlog });
    if (history.takesTurn(indexed)) await fillHistory(context, { signal, backlog, history });
  };
  const rounds = repeat(pollMs, round, (error) => logger.warn({ err: error }, 'states could not be indexed'));
  lifecycle.onClose('work', 'state index', rounds.stop);
}

/** Between two searches for versions older than the index, after all stacks were examined. */
const historyRestMs = 30_000;
const historyRetryMs = 60 * 60_000;
/** The search waits no longer, even on a busy installation, where stacks are always due. */
const maxHistoryWaitMs = 30_000;
const historyTurnMs = 1_000;
/** Stacks that one turn skips in a row. Each takes a statement. */
const maxSkipped = 50;

export class HistoryRound {
  /** When stacks whose states cannot be read are tried again. */
  readonly #failed = new Map<string, number>();
  #after: string | null = null;
  #readyAt = 0;
  #turnAt = performance.now();

  /** Whether the search's turn has come, after a round that has indexed this many due stacks. */
  takesTurn(indexed: number): boolean {
    const now = performance.now();
    const isTurn = indexed === 0 || now >= this.#turnAt + maxHistoryWaitMs;
    if (isTurn) this.#turnAt = now;
    return isTurn;
  }

  async next(db: Parts['db']): Promise<string | null> {
    const now = performance.now();
    if (now < this.#readyAt) return null;
    for (let skipped = 0; skipped < maxSkipped; skipped++) {
      const stackId = await createFormerVersionsRepository(db).findFillable(this.#after);
      if (stackId === null) {
        [this.#after, this.#readyAt] = [null, now + historyRestMs];
        this.#forget(now);
      }
      if (stackId === null || (this.#failed.get(stackId) ?? 0) <= now) return stackId;
      this.#after = stackId;
    }
    // The next turn continues after the skipped stacks.
    return null;
  }

  /** The stack may have been deleted, or completed, before its retry. */
  #forget(now: number): void {
    for (const [stackId, until] of this.#failed) if (until <= now) this.#failed.delete(stackId);
  }

  /** Skips the stack for an hour. */
  fail(stackId: string): void {
    this.#failed.set(stackId, performance.now() + historyRetryMs);
    this.#after = stackId;
  }

  /** Marks all stacks up to this one as done. */
  pass(stackId: string): void {
    this.#after = stackId;
  }
}

/**
 * Records the changes of versions older than the index of their stack: imported ones, and versions before a rebuild. Keeps the pace of
 * `backlog`, and stops after a second.
 */
export async function fillHistory(
  { blobs, db, indexer, logger, metrics }: Parts,
  { backlog, history, signal }: { signal?: AbortSignal; backlog: BytePace; history: HistoryRound },
): Promise<number> {
  let versions = 0;
  const until = performance.now() + historyTurnMs;
  while (performance.now() + backlog.waitMs < until && !signal?.aborted) {
    await sleep(backlog.waitMs, undefined, signal ? { signal } : {}).catch(() => {});
    const stackId = await history.next(db);
    if (stackId === null) break;
    try {
      const progress = await indexer.fillBack(stackId);
      if (progress === null) history.pass(stackId);
      metrics.versionsIndexed.inc(progress?.versions ?? 0);
      versions += progress?.versions ?? 0;
      backlog.spend(Math.max(progress?.bytes ?? 0, minChargeBytes));
    } catch (error) {
      logger.warn({ stackId, err: error }, 'the history of a stack could not be indexed; tried again later');
      if (await isStoreAway(blobs, error)) break;
      history.fail(stackId);
    }
  }
  return versions;
}

export async function indexDue(
  { blobs, db, indexer, logger, metrics }: Parts,
  { backlog, delaySeconds: delay, signal }: { signal?: AbortSignal; delaySeconds: number; backlog: BytePace },
): Promise<number> {
  const rows = createDueIndexRepository(db);
  let indexed = 0;
  const run = async (stack: DueStack, claim: string): Promise<void> => {
    try {
      const { bytes, versions } = await indexer.index(stack.stackId, signal);
      metrics.versionsIndexed.inc(versions);
      if (stack.isBacklog) backlog.spend(Math.max(bytes, minChargeBytes));
      // Another process indexes the remaining stacks.
      if (signal?.aborted) return await rows.giveBack(stack.stackId, claim);
      await rows.release(stack.stackId, claim);
      indexed++;
    } catch (error) {
      logger.warn(
        { stackId: stack.stackId, err: error },
        'the state of a stack could not be indexed; tried again later',
      );
      if (signal?.aborted || (await isStoreAway(blobs, error))) await rows.giveBack(stack.stackId, claim);
      else await rows.postpone(stack.stackId, claim);
    }
  };
  for (let count = 0; count < stacksAtOnce && !signal?.aborted; count++) {
    if (signal) await yieldToCalls(db, signal);
    const claim = randomUUID();
    const options = {
      claim,
      claimSeconds: indexClaimSeconds,
      delaySeconds: delay,
      limit: 1,
      withBacklog: backlog.isReady,
    };
    const [stack] = await rows.claim(options);
    if (!stack) break;
    const began = performance.now();
    await run(stack, claim);
    const pauseMs = Math.min((performance.now() - began) * pauseShare, maxPauseMs);
    if (signal) await sleep(pauseMs, undefined, { signal }).catch(() => {});
  }
  return indexed;
}

/** Whether the error would affect every stack with its state in the blob store. */
async function isStoreAway(blobs: Parts['blobs'], error: unknown): Promise<boolean> {
  return assertStoreReachable(blobs, error).then(
    () => false,
    () => true,
  );
}

/** Waits while updates begin and end in this process: each stack takes tens of ms of the event loop and of Postgres. */
async function yieldToCalls(db: Parts['db'], signal: AbortSignal): Promise<void> {
  const until = performance.now() + maxYieldMs;
  while (db.servesFirst() && performance.now() < until && !signal.aborted)
    await sleep(yieldMs, undefined, { signal }).catch(() => {});
}
