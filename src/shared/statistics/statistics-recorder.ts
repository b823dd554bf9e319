import type { EventReader } from '../events/event-reader.ts';
import { textOf } from '../events/event-text.ts';
import type { Database } from '../platform/db/database.ts';
import type { CheckpointRepository } from '../state/checkpoints/checkpoint-repository.ts';
import { DocumentDamagedError, type DocumentReader } from '../state/checkpoints/document-reader.ts';
import { urnKey } from '../state/deployments/live-urns.ts';
import { commitOf } from '../updates/commit.ts';
import { type Dependencies, DependencyScanner } from './dependency-scanner.ts';
import { RetrySigns } from './retry-signs.ts';
import { createStatisticsRepository, type EndedUpdate } from './statistics-repository.ts';
import { statisticsOf } from './step-statistics.ts';
import { type Step, StepTimes, stepEventTypes } from './step-times.ts';
import { countsOf } from './unusual-updates.ts';

/** Larger events of steps are skipped. */
const maxEventBytes = 4 * 1024 * 1024;
const appetite = { events: 1_000, bytes: 4 * 1024 * 1024 };

/** For ended updates. Memory use depends only on `StepTimes`. */
export class StatisticsRecorder {
  readonly #db: Database;
  readonly #events: EventReader;
  readonly #checkpoints: CheckpointRepository;
  readonly #documentReader: DocumentReader;

  constructor(parts: {
    db: Database;
    eventReader: EventReader;
    checkpoints: CheckpointRepository;
    documentReader: DocumentReader;
  }) {
    this.#db = parts.db;
    this.#events = parts.eventReader;
    this.#checkpoints = parts.checkpoints;
    this.#documentReader = parts.documentReader;
  }

  /** Safe in any number of processes. Throws the errors of reading events or states. */
  async keep(updateId: string): Promise<void> {
    const statistics = createStatisticsRepository(this.#db);
    const update = await statistics.findEnded(updateId);
    if (!update) return;
    const { retries, times } = await this.#readSteps(updateId);
    const dependencies = await this.#dependencies(update, times);
    const steps = { ...(await statisticsOf(times.steps, times.isCut, dependencies)), retries: retries.found };
    const environment = update.environment === null ? {} : (JSON.parse(update.environment) as object);
    await statistics.insert(update, {
      commit: commitOf(environment),
      counts: countsOf(update.resourceChanges),
      steps: JSON.stringify(steps),
    });
  }

  async #readSteps(id: string): Promise<{ readonly times: StepTimes; readonly retries: RetrySigns }> {
    const times = new StepTimes();
    const retries = new RetrySigns();
    const selection = { beyond: -1, newestFirst: false, urn: null, types: [...stepEventTypes, 'diagnosticEvent'] };
    for await (const events of this.#events.read({ id, mayHaveRows: true }, selection, appetite))
      for (const event of events) {
        if (event.bytes > maxEventBytes) continue;
        const text = await textOf(event);
        retries.add(event.type, text);
        if (event.type !== 'diagnosticEvent') times.add(text);
      }
    return { times, retries };
  }

  /**
   * Dependencies in the state after the update and, if it deleted a resource, the state before. Null if there is nothing to compare, or a
   * state is damaged.
   */
  async #dependencies(update: EndedUpdate, { isCut, steps }: StepTimes): Promise<Dependencies | null> {
    if (update.isPreview || isCut || steps.length === 0) return null;
    const scanner = new DependencyScanner(new Set(steps.map(({ urn }) => urnKey(urn))));
    const before = steps.some(isDelete) ? [update.baseCheckpointId] : [];
    for (const id of new Set([update.checkpointId, ...before])) {
      const checkpoint = id === null ? null : await this.#checkpoints.find(id);
      try {
        if (checkpoint) await scanner.scan(this.#documentReader.open(checkpoint));
      } catch (error) {
        if (error instanceof DocumentDamagedError) return null;
        throw error;
      }
    }
    return scanner.found;
  }
}

function isDelete({ operation }: Step): boolean {
  return operation.startsWith('delete');
}
