/** Incremental compaction pays off from this many entries that no open replay has. */
export interface BacklogStep {
  readonly entries: number;
  readonly bytes: number;
}

/** The first step is about where a replay is no longer short (`isShortReplay`), the next about where a compaction pays off. */
const firstStep: BacklogStep = { entries: 500, bytes: 256 * 1024 };
const nextStep: BacklogStep = { entries: 64, bytes: 64 * 1024 };
/** Larger, because a request to another process costs a job. */
const queuedStep: BacklogStep = { entries: 512, bytes: 512 * 1024 };

/** `isQueued`: other processes compact. */
export function backlogSteps(isQueued: boolean): [first: BacklogStep, next: BacklogStep] {
  return isQueued ? [queuedStep, queuedStep] : [firstStep, nextStep];
}

/** Forgetting an update only delays its next incremental compaction. */
const maxUpdates = 10_000;

/**
 * Counts what this process has appended to each journal since its last request. The first step is larger, so that updates with few entries
 * cause no extra work.
 */
export class JournalBacklog {
  readonly #first: BacklogStep;
  readonly #next: BacklogStep;
  readonly #counts = new Map<string, { entries: number; bytes: number; step: BacklogStep }>();

  constructor(first: BacklogStep, next: BacklogStep) {
    this.#first = first;
    this.#next = next;
  }

  /** Returns whether an incremental compaction is due. */
  add(updateId: string, entries: number, bytes: number): boolean {
    const count = this.#counts.get(updateId) ?? { entries: 0, bytes: 0, step: this.#first };
    const total = { ...count, entries: count.entries + entries, bytes: count.bytes + bytes };
    const isDue = total.entries >= total.step.entries || total.bytes >= total.step.bytes;
    // In order of use: the first entry is the least recently used.
    this.#counts.delete(updateId);
    this.#counts.set(updateId, isDue ? { entries: 0, bytes: 0, step: this.#next } : total);
    if (this.#counts.size > maxUpdates) this.#counts.delete(this.#counts.keys().next().value as string);
    return isDue;
  }
}
