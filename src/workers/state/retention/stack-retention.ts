import { createKeptBytesRepository } from '../../../shared/access/quotas/kept-bytes-repository.ts';
import type { Database } from '../../../shared/platform/db/database.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import {
  type DoomedState,
  listDoomedStates,
  listOldPreviews,
  listOldUpdates,
} from '../../../shared/state/retention/retention-plan.ts';
import {
  createRetentionRepository,
  type RetentionRepository,
} from '../../../shared/state/retention/retention-repository.ts';
import type { RetentionKind } from '../../../shared/updates/rules/rule-kinds.ts';
import { createUpdateRuleRepository } from '../../../shared/updates/rules/update-rule-repository.ts';
import type { ApplicableRule } from '../../../shared/updates/rules/update-rules.ts';

const updatesAtOnce = 20;
/** Chunks of states, or segments of events, per transaction. A state, and the events of an update, are never deleted in parts. */
const partsAtOnce = 400;
/** Dependent rows that one statement deletes or changes. */
const rowsAtOnce = 200;
const segmentsAtOnce = 50;

export interface Deleted {
  versions: number;
  events: number;
  previews: number;
}

/**
 * The stack is busy, under a legal hold, or has new rules, or a preview limits its running update. The stack is tried again in the next
 * run.
 */
class StackSkipped extends Error {}

/**
 * Each transaction locks the stack, without waiting for it, and checks rules and hold again. It deletes states, events or previews
 * completely, so a process may be killed at any point.
 */
export class StackRetention {
  readonly #db: Database;
  readonly #rows: RetentionRepository;

  constructor(db: Database) {
    this.#db = db;
    this.#rows = createRetentionRepository(db);
  }

  /** Adds the counts to `deleted`. Returns whether everything that the rules do not keep is deleted. */
  async apply(
    { id, organizationId }: { readonly id: string; readonly organizationId: string },
    deleted: Deleted,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const progress = await this.#rows.findProgress(id);
    if (!progress) return true;
    const rules = await createUpdateRuleRepository(this.#db).listOfStack(id);
    const stack = new LockedStack(this.#db, { id, organizationId }, signal);
    const { now } = progress;
    let { eventsUntil } = progress;
    try {
      const versions = rules.first('keep-versions');
      if (versions) {
        const doomed = listDoomedStates(this.#rows, id, versions.settings, now);
        for await (const batch of inBatches(doomed))
          deleted.versions += await this.#deleteStates(stack, versions, batch);
      }
      const events = rules.first('keep-events');
      if (events) {
        for await (const page of listOldUpdates(this.#rows, id, eventsUntil, events.settings.days, now)) {
          for await (const ids of this.#slices(page.due)) deleted.events += await deleteEvents(stack, events, ids);
          eventsUntil = page.until;
        }
      }
      const previews = rules.first('keep-previews');
      if (previews) {
        for await (const page of listOldPreviews(this.#rows, id, previews.settings.days, now))
          for await (const ids of this.#slices(page.due))
            deleted.previews += await deletePreviews(stack, previews, ids);
      }
    } catch (error) {
      if (error instanceof StackSkipped) return false;
      throw error;
    }
    await this.#rows.noteProgress(id, now, eventsUntil);
    return true;
  }

  /** Deletes the states of versions, or the first versions of a state that has many. Returns the number of versions. */
  async #deleteStates(
    stack: LockedStack,
    rule: ApplicableRule<RetentionKind>,
    batch: readonly DoomedState[],
  ): Promise<number> {
    const unneeded = new Set(
      await this.#rows.listUnneeded(
        stack.id,
        batch.map(({ checkpointId }) => checkpointId),
      ),
    );
    const doomed = batch.filter(({ checkpointId }) => unneeded.has(checkpointId));
    if (doomed.length === 0) return 0;
    const checkpointIds = doomed.map(({ checkpointId }) => checkpointId);
    // There may be any number of previews, and the statement that deletes a state must not find them all.
    const detach = (rows: RetentionRepository) => rows.detachPreviews(checkpointIds, rowsAtOnce);
    while ((await stack.change(rule, detach)) > 0);
    const chunks = await this.#rows.countChunks(checkpointIds);
    let count = 0;
    for (const states of boundedBy(doomed, ({ checkpointId }) => chunks.get(checkpointId) ?? 0)) {
      const updateIds = states.flatMap((state) => state.updateIds);
      count += await stack.change(rule, async (rows) => {
        const marked = await rows.markStates(stack.id, updateIds);
        const unused = await rows.listUnused(stack.id, marked.checkpointIds, updateIds);
        while ((await rows.releaseChunks(unused, rowsAtOnce)) === rowsAtOnce);
        await rows.deleteCheckpoints(unused);
        return marked.count;
      });
    }
    return count;
  }

  /** Each slice is for one transaction. */
  async *#slices(updates: readonly { readonly id: string }[]): AsyncGenerator<readonly string[]> {
    for (let at = 0; at < updates.length; at += updatesAtOnce) {
      const ids = updates.slice(at, at + updatesAtOnce).map(({ id }) => id);
      const segments = await this.#rows.countSegments(ids);
      yield* boundedBy(ids, (id) => segments.get(id) ?? 0);
    }
  }
}

async function deleteEvents(
  stack: LockedStack,
  rule: ApplicableRule<RetentionKind>,
  ids: readonly string[],
): Promise<number> {
  return stack.change(rule, async (rows) => {
    if (await rows.areCompared(stack.id, ids)) throw new StackSkipped();
    await rows.markEvents(ids);
    while ((await rows.deleteSegments(ids, segmentsAtOnce)) === segmentsAtOnce);
    return ids.length;
  });
}

async function deletePreviews(
  stack: LockedStack,
  rule: ApplicableRule<RetentionKind>,
  ids: readonly string[],
): Promise<number> {
  return stack.change(rule, async (rows) => {
    if (await rows.areCompared(stack.id, ids)) throw new StackSkipped();
    while ((await rows.deleteSegments(ids, segmentsAtOnce)) === segmentsAtOnce);
    return rows.deletePreviews(stack.id, ids);
  });
}

class LockedStack {
  readonly id: string;
  readonly #organizationId: string;
  readonly #db: Database;
  readonly #signal: AbortSignal | undefined;

  constructor(db: Database, stack: { readonly id: string; readonly organizationId: string }, signal?: AbortSignal) {
    this.id = stack.id;
    this.#organizationId = stack.organizationId;
    this.#db = db;
    this.#signal = signal;
  }

  /**
   * Remeasures the stack if `work` returns a count. Throws StackSkipped if the stack is busy or held, the rule changed, or the process
   * stops.
   */
  async change(
    rule: ApplicableRule<RetentionKind>,
    work: (rows: RetentionRepository) => Promise<number>,
  ): Promise<number> {
    if (this.#signal?.aborted) throw new StackSkipped();
    return this.#db.inTransaction(async (tx: Queryable) => {
      const rules = createUpdateRuleRepository(tx);
      await rules.hold(this.#organizationId);
      const stack = await rules.lockIdleStack(this.id);
      const present = stack?.updateRules.first(rule.kind);
      if (!present || JSON.stringify(present.settings) !== JSON.stringify(rule.settings)) throw new StackSkipped();
      const count = await work(createRetentionRepository(tx));
      if (count > 0) await createKeptBytesRepository(tx).forget([this.id]);
      return count;
    });
  }
}

/** A state with many updates is split; its last updates come last. */
async function* inBatches(states: AsyncIterable<DoomedState>): AsyncGenerator<readonly DoomedState[]> {
  let batch: DoomedState[] = [];
  let count = 0;
  for await (const { checkpointId, updateIds } of states) {
    for (let at = 0; at < updateIds.length; at += updatesAtOnce) {
      const part = updateIds.slice(at, at + updatesAtOnce);
      if (count + part.length > updatesAtOnce) {
        yield batch;
        batch = [];
        count = 0;
      }
      batch.push({ checkpointId, updateIds: part });
      count += part.length;
    }
  }
  if (batch.length > 0) yield batch;
}

/** Each part is for one transaction. An item that is too large is a part of its own. */
function* boundedBy<T>(items: readonly T[], partsOf: (item: T) => number): Generator<readonly T[]> {
  let group: T[] = [];
  let count = 0;
  for (const item of items) {
    const parts = partsOf(item);
    if (group.length > 0 && count + parts > partsAtOnce) {
      yield group;
      group = [];
      count = 0;
    }
    group.push(item);
    count += parts;
  }
  if (group.length > 0) yield group;
}
