import type { EventReader } from '../../shared/events/event-reader.ts';
import { textOf } from '../../shared/events/event-text.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import type { Retries } from '../../shared/statistics/retry-signs.ts';
import {
  type Counts,
  createStatisticsRepository,
  type UpdateSummary,
  type Usual,
} from '../../shared/statistics/statistics-repository.ts';
import type { StepStatistics } from '../../shared/statistics/step-statistics.ts';
import { countsOf, findUnusual, type Unusual } from '../../shared/statistics/unusual-updates.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { Caller } from '../platform/http/request.ts';
import { findRemovedOutputs } from '../updates/rules/consumers.ts';
import { updateNotFound } from '../updates/update-not-found.ts';
import { createTrendRepository } from './trend-repository.ts';

export interface UpdateStatistics {
  readonly update: UpdateSummary;
  readonly changes: Counts;
  /** Null until the update's events are archived. */
  readonly steps: (StepStatistics & { readonly retries: Retries | null }) | null;
  /** Failed runs of the same commit; null until the update's events are archived. */
  readonly failedBefore: number | null;
  /** Statistics of the stack's updates in the last months. */
  readonly usual: Usual | null;
  /** Measures that are higher than usual. */
  readonly unusual: readonly Unusual[];
}

const trendDays = 90;
const maxTrend = 500;

export class StatisticsService {
  readonly #db: ApiContext['db'];
  readonly #events: ApiContext['eventReader'];

  constructor({ db, eventReader }: Pick<ApiContext, 'db' | 'eventReader'>) {
    this.#db = db;
    this.#events = eventReader;
  }

  /** Statistics and other results for the update's page. */
  async show(ref: StackRef, updateId: string, caller: Caller) {
    const statistics = await this.get(ref, updateId);
    const [policyPacks, removedOutputs] = await Promise.all([
      readPolicyPacks(this.#events, updateId),
      findRemovedOutputs(this.#db, ref, caller, updateId),
    ]);
    const { seconds } = statistics.update;
    const { changes, failedBefore, steps, unusual, usual } = statistics;
    return { seconds, changes, failedBefore, steps, usual, unusual, policyPacks, removedOutputs };
  }

  /** At most the newest 500 of the last 90 days, the oldest first. */
  async listTrend(ref: StackRef) {
    const rows = await createTrendRepository(this.#db).list(ref, trendDays, maxTrend);
    return {
      days: trendDays,
      items: rows.map(({ endedAt, ...row }) => ({ ...row, endedAt: endedAt.toISOString() })),
      /** There may be older updates. */
      isCut: rows.length === maxTrend,
    };
  }

  async get(ref: StackRef, updateId: string): Promise<UpdateStatistics> {
    const statistics = createStatisticsRepository(this.#db);
    const update = await statistics.find(updateId, ref);
    if (!update) throw updateNotFound(updateId);
    // A preview is compared with earlier updates.
    const kind = update.kind === 'preview' ? 'update' : update.kind;
    const usual = await statistics.findUsual(update.stackId, kind, updateId);
    const changes = countsOf(update.resourceChanges);
    // A preview does not take the same time as an update.
    const times = update.isPreview ? {} : { seconds: update.seconds ?? 0, waitedSeconds: update.waitedSeconds ?? 0 };
    const unusual = findUnusual({ ...changes, ...times }, usual);
    if (update.steps === null) return { update, changes, steps: null, failedBefore: null, usual, unusual };
    const failedBefore = await statistics.countFailedBefore(updateId);
    const steps = JSON.parse(update.steps) as StepStatistics & { retries: Retries };
    return { update, changes, steps, failedBefore, usual, unusual };
  }
}

/** Larger summaries are ignored. */
const maxBytes = 256 * 1024;
const maxPacks = 100;
const maxChars = 200;

/** The packs in the update's summary; empty before its end. Throws the errors of EventReader. */
async function readPolicyPacks(
  events: EventReader,
  updateId: string,
): Promise<{ readonly name: string; readonly version: string }[]> {
  const selection = { beyond: Number.MAX_SAFE_INTEGER, newestFirst: true, urn: null, types: ['summaryEvent'] };
  const appetite = { events: 1, bytes: maxBytes };
  for await (const [event] of events.read({ id: updateId, mayHaveRows: true }, selection, appetite))
    if (event) return event.bytes <= maxBytes ? policyPacksOf(await textOf(event)) : [];
  return [];
}

/** Clients supply the summary: values that are not text are dropped. */
function policyPacksOf(text: string): { readonly name: string; readonly version: string }[] {
  const { summaryEvent } = JSON.parse(text) as { summaryEvent?: { PolicyPacks?: unknown } | null };
  const packs = summaryEvent?.PolicyPacks;
  if (typeof packs !== 'object' || packs === null) return [];
  return Object.entries(packs)
    .filter((entry): entry is [string, string] => typeof entry[1] === 'string')
    .slice(0, maxPacks)
    .map(([name, version]) => ({ name: name.slice(0, maxChars), version: version.slice(0, maxChars) }));
}
