import type { StackRef } from '../../shared/stacks/names.ts';
import {
  type Counts,
  createStatisticsRepository,
  type ShownUpdate,
  type Usual,
} from '../../shared/statistics/statistics-repository.ts';
import type { Retries } from '../../shared/statistics/retry-signs.ts';
import type { StepStatistics } from '../../shared/statistics/step-statistics.ts';
import { countsOf } from '../../shared/statistics/update-counts.ts';
import { readPolicyPacks } from '../events/policy-packs.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { Caller } from '../platform/http/request.ts';
import { findRemovedOutputs } from '../updates/rules/consumers.ts';
import { updateNotFound } from '../updates/update-errors.ts';

/** What is known of an update. */
export interface UpdateStatistics {
  readonly update: ShownUpdate;
  readonly changes: Counts;
  /** Null until its events are packed. */
  readonly steps: (StepStatistics & { readonly retries: Retries | null }) | null;
  /** Runs of the same commit that failed before it; null until its events are packed. */
  readonly failedBefore: number | null;
  /** What updates of the stack were like in the last months; null if there were none. */
  readonly usual: Usual | null;
}

/** Reads what updates have done and how long it took. */
export class StatisticsService {
  readonly #db: ApiContext['db'];
  readonly #events: ApiContext['eventReader'];

  constructor({ db, eventReader }: Pick<ApiContext, 'db' | 'eventReader'>) {
    this.#db = db;
    this.#events = eventReader;
  }

  /** The figures, and what else its page shows of what an update did. Throws NotFoundError. */
  async show(ref: StackRef, updateId: string, caller: Caller) {
    const statistics = await this.get(ref, updateId);
    const [policyPacks, removedOutputs] = await Promise.all([
      readPolicyPacks(this.#events, updateId),
      findRemovedOutputs(this.#db, ref, caller, updateId),
    ]);
    const { seconds } = statistics.update;
    const { changes, failedBefore, steps, usual } = statistics;
    return { seconds, changes, failedBefore, steps, usual, policyPacks, removedOutputs };
  }

  /** Throws NotFoundError. */
  async get(ref: StackRef, updateId: string): Promise<UpdateStatistics> {
    const statistics = createStatisticsRepository(this.#db);
    const update = await statistics.find(updateId, ref);
    if (!update) throw updateNotFound(updateId);
    // A preview is compared with what updates have done.
    const kind = update.kind === 'preview' ? 'update' : update.kind;
    const usual = await statistics.findUsual(update.stackId, kind, updateId);
    const changes = countsOf(update.resourceChanges);
    if (update.steps === null) return { update, changes, steps: null, failedBefore: null, usual };
    const failedBefore = await statistics.countFailedBefore(updateId);
    const steps = JSON.parse(update.steps) as StepStatistics & { retries: Retries };
    return { update, changes, steps, failedBefore, usual };
  }
}
