/** The size of a backlog (entries that no open replay has) from which on incremental compaction pays off. */
export interface BacklogStep {
  readonly entries: number;
  readonly bytes: number;
}

/** The first step is about the size where a replay is no longer short (`isShortReplay`), the next about where a compaction pays off. */
const firstStep: BacklogStep = { entries: 500, bytes: 256 * 1024 };
const nextStep: BacklogStep = { entries: 64, bytes: 64 * 1024 };
/** A request to another process costs a job, so these steps are larger. */
const queuedStep: BacklogStep = { entries: 512, bytes: 512 * 1024 };

/** Returns the first step and the later ones. `isQueued` means that other processes compact. */
export function backlogSteps(isQueued: boolean): [first: BacklogStep, next: BacklogStep] {
  return isQueued ? [queuedStep, queuedStep] : [firstStep, nextStep];
}

/** Number of updates to remember. Forgetting one only delays its next incremental compaction. */
const maxUpdates = 10_000;

/**
 * Counts the entries that this process has appended to each journal since it last requested an incremental compaction. The first step is
 * larger, so that updates with few entries cause no extra work.
 */
export class JournalBacklog {
  readonly #first: BacklogStep;
  readonly #next: BacklogStep;
  readonly #counts = new Map<string, { entries: number; bytes: number; step: BacklogStep }>();

  constructor(first: BacklogStep, next: BacklogStep) {
    this.#first = first;
    this.#next = next;
  }

  /** Adds a batch. Returns whether an incremental compaction is due. */
  add(updateId: string, entries: number, bytes: number): boolean {
    const count = this.#counts.get(updateId) ?? { entries: 0, bytes: 0, step: this.#first };
    const total = { ...count, entries: count.entries + entries, bytes: count.bytes + bytes };
    const isDue = total.entries >= total.step.entries || total.bytes >= total.step.bytes;
    // The map is in order of use: its first entry is the least recently used.
    this.#counts.delete(updateId);
    this.#counts.set(updateId, isDue ? { entries: 0, bytes: 0, step: this.#next } : total);
    if (this.#counts.size > maxUpdates) this.#counts.delete(this.#counts.keys().next().value as string);
    return isDue;
  }
}
