import type { OpenReplay } from '../replay/runner/replay-runner.ts';
import type { ReplayProgress } from '../replay/runner/replay-work.ts';

/** Memory limits for all kept replays of a process, and for one of them (base and entries). */
const defaultMaxBytes = 32 * 1024 * 1024;
const defaultMaxBytesEach = 8 * 1024 * 1024;
/** An unused replay is dropped after this time. A replay that did not fit is not tried again for as long. */
const defaultIdleMs = 60_000;
/** Forgetting a refused update costs a replay. */
const maxRefusals = 10_000;

/** The first `progress.entries` entries were applied, without a gap. */
export interface WarmReplay {
  readonly replay: OpenReplay;
  readonly progress: ReplayProgress;
  /** The memory of the base and the entries so far. */
  readonly bytes: number;
}

interface Kept extends WarmReplay {
  readonly usedAt: number;
}

export interface OpenReplaysLimits {
  readonly maxBytes?: number;
  readonly maxBytesEach?: number;
  readonly idleMs?: number;
}

/**
 * Replays kept open between compactions of an update, so that each compaction applies only new entries. When the memory is full, new
 * replays are refused for a while instead of evicting others: updates that evict each other would start from their base again and again. A
 * replay has one user at a time.
 */
export class OpenReplays {
  readonly #maxBytes: number;
  readonly #maxBytesEach: number;
  readonly #idleMs: number;
  readonly #kept = new Map<string, Kept>();
  readonly #inUse = new Map<string, Promise<void>>();
  readonly #refusedUntil = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;

  constructor(limits: OpenReplaysLimits = {}) {
    this.#maxBytes = limits.maxBytes ?? defaultMaxBytes;
    this.#maxBytesEach = limits.maxBytesEach ?? defaultMaxBytesEach;
    this.#idleMs = limits.idleMs ?? defaultIdleMs;
    this.#timer = setInterval(() => this.#dropIdle(), Math.ceil(this.#idleMs / 2)).unref();
  }

  /** Counts only replays that are not in use. */
  get bytes(): number {
    return this.#bytes;
  }

  get maxBytesEach(): number {
    return this.#maxBytesEach;
  }

  /** Also true while a replay is being made. */
  has(updateId: string): boolean {
    return this.#kept.has(updateId) || this.#inUse.has(updateId);
  }

  isInUse(updateId: string): boolean {
    return this.#inUse.has(updateId);
  }

  /**
   * Keeps the replay that `work` returns as `keep`, if it fits. Closes any other replay, also when `work` throws. Calls for one update run
   * one after another.
   */
  async use<T>(
    updateId: string,
    work: (kept: WarmReplay | null) => Promise<{ result: T; keep: WarmReplay | null }>,
  ): Promise<T> {
    for (let other = this.#inUse.get(updateId); other; other = this.#inUse.get(updateId)) await other;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#inUse.set(updateId, promise);
    const kept = this.#take(updateId);
    let keep: WarmReplay | null = null;
    try {
      const worked = await work(kept);
      keep = worked.keep;
      return worked.result;
    } finally {
      if (kept && keep?.replay !== kept.replay) kept.replay.close();
      if (keep) this.#put(updateId, keep);
      this.#inUse.delete(updateId);
      resolve();
    }
  }

  /** Refuses the update for a while if a replay of this size would not be kept. */
  admits(updateId: string, bytes: number): boolean {
    const until = this.#refusedUntil.get(updateId);
    if (until !== undefined && until > performance.now()) return false;
    this.#refusedUntil.delete(updateId);
    if (this.#fits(bytes)) return true;
    this.refuse(updateId);
    return false;
  }

  refuse(updateId: string): void {
    if (this.#refusedUntil.size >= maxRefusals) this.#refusedUntil.clear();
    this.#refusedUntil.set(updateId, performance.now() + this.#idleMs);
  }

  /** Does nothing while the replay is in use. */
  drop(updateId: string): void {
    this.#take(updateId)?.replay.close();
  }

  close(): void {
    clearInterval(this.#timer);
    for (const updateId of [...this.#kept.keys()]) this.drop(updateId);
  }

  #fits(bytes: number): boolean {
    return bytes <= this.#maxBytesEach && this.#bytes + bytes <= this.#maxBytes;
  }

  #take(updateId: string): Kept | null {
    const kept = this.#kept.get(updateId);
    if (!kept) return null;
    this.#kept.delete(updateId);
    this.#bytes -= kept.bytes;
    return kept;
  }

  #put(updateId: string, kept: WarmReplay): void {
    if (!this.#fits(kept.bytes)) {
      kept.replay.close();
      this.refuse(updateId);
      return;
    }
    this.#kept.set(updateId, { ...kept, usedAt: performance.now() });
    this.#bytes += kept.bytes;
  }

  #dropIdle(): void {
    const now = performance.now();
    for (const [updateId, { usedAt }] of [...this.#kept]) if (usedAt < now - this.#idleMs) this.drop(updateId);
    for (const [updateId, until] of [...this.#refusedUntil]) if (until <= now) this.#refusedUntil.delete(updateId);
  }
}
