import type { UpdateRepository, UpdateRow } from '../../../updates/update-repository.ts';
import { isActive } from '../../../updates/update-state.ts';
import type { DocumentReader } from '../../checkpoints/document-reader.ts';
import { DocumentMissingError } from '../../checkpoints/document-store.ts';
import type { ManifestSource } from '../../deployments/write-document.ts';
import type { OpenReplays, WarmReplay } from '../incremental/open-replays.ts';
import type { JournalSnapshots } from '../journal-snapshots.ts';
import { type Applied, type FoundParts, type ReplayParts, ReplaySteps } from './replay-steps.ts';
import { InvalidJournalError, type OpenReplay, ReplayEndedError } from './runner/replay-runner.ts';
import { DamagedStartError, type ReplayedDocument, type ReplayProgress } from './runner/replay-work.ts';

/** The replay has reached the end of the journal, an invalid entry or the requested limit. */
export interface ReplayResult {
  readonly replay: OpenReplay;
  readonly progress: ReplayProgress;
  readonly fault: InvalidJournalError | null;
}

export interface ReplayBounds {
  /** Stop after this many, counted from the first. */
  readonly entries?: number;
  /** Start from the base instead of a snapshot. */
  readonly fromBase?: boolean;
  /** False if the journal is known to have no snapshot. */
  readonly hasSnapshot?: boolean;
  readonly found?: FoundParts | undefined;
}

/** A prefix that yields a valid deployment. */
export interface LongestPrefix {
  /** With 0 entries, the state is the base itself. */
  readonly progress: ReplayProgress;
  readonly replayed: ReplayedDocument | null;
  /** Why the next entry is not included; null for the whole journal. */
  readonly fault: InvalidJournalError | null;
}

const attempts = 3;
const noProgress: ReplayProgress = { entries: 0, lastSequenceId: 0, hasGap: false, unknownKinds: null };

export class JournalReplayer {
  readonly #updates: UpdateRepository;
  readonly #documentReader: DocumentReader;
  readonly #snapshots: JournalSnapshots;
  readonly #steps: ReplaySteps;
  readonly #open: OpenReplays;

  constructor(parts: ReplayParts & { readonly updates: UpdateRepository }) {
    this.#updates = parts.updates;
    this.#documentReader = parts.documentReader;
    this.#snapshots = parts.journalSnapshots;
    this.#steps = new ReplaySteps(parts);
    this.#open = parts.openReplays;
  }

  /** Also true while the replay is being made. */
  isOpen(updateId: string): boolean {
    return this.#open.has(updateId);
  }

  async manifest(updateId: string): Promise<ManifestSource> {
    return { time: new Date().toISOString(), version: await this.#updates.findClientVersion(updateId) };
  }

  /**
   * Applies all entries, or those before the first invalid one, then runs `work`. Continues the update's kept replay if there is one.
   * Returns null if the entries have been compacted and deleted in the meantime. Drops a damaged snapshot and repairs a damaged base.
   * Throws InvalidJournalError if the base is not a valid deployment, and DocumentDamagedError if the base is damaged beyond repair.
   */
  async catchUp<T>(
    update: UpdateRow,
    work: (caughtUp: ReplayResult) => Promise<T>,
    bounds: ReplayBounds = {},
  ): Promise<T | null> {
    const { entries = Number.POSITIVE_INFINITY, fromBase = false } = bounds;
    if (fromBase || entries !== Number.POSITIVE_INFINITY || !this.#open.has(update.id)) {
      return this.#replay(update, work, bounds);
    }
    return this.#open.use(update.id, async (kept) => {
      const resumed = kept && (await this.#goOn(update, kept));
      if (!resumed) return { result: await this.#replay(update, work, bounds), keep: null };
      const result = await work(resumed.caughtUp);
      return { result, keep: isActive(update.status) ? resumed.keep : null };
    });
  }

  /**
   * Advances the kept replay of a running update. Starts a replay if the memory limit allows. Stores nothing: a later compaction in this
   * process continues from there. Entries behind a gap are left for later, since a replay cannot go back.
   */
  async advance(updateId: string): Promise<void> {
    // A compaction catches up anyway. It may then upload for a long time, while other updates would wait for this one.
    if (this.#open.isInUse(updateId)) return;
    await this.#open.use(updateId, async (kept) => ({
      result: undefined,
      keep: kept
        ? this.#keepable(updateId, kept.replay, kept.bytes, await this.#steps.applyNew(updateId, kept, true))
        : await this.#startIncremental(updateId),
    }));
  }

  forget(updateId: string): void {
    this.#open.drop(updateId);
  }

  async #startIncremental(updateId: string): Promise<WarmReplay | null> {
    const update = await this.#updates.find(updateId);
    if (!update || !isActive(update.status) || !this.#open.admits(updateId, 0)) return null;
    const started = await this.#steps.start(update, { isAhead: true });
    if (!started) return null;
    const { replay, page, bytes } = started;
    try {
      const from = { progress: replay.initialProgress, page, incrementalFrom: bytes };
      return this.#keepable(updateId, replay, bytes, await this.#steps.applyAll(updateId, replay, from));
    } catch (error) {
      replay.close();
      throw error;
    }
  }

  /** Null after an invalid entry: a kept replay would meet it again each time. `complete` reports it. */
  #keepable(updateId: string, replay: OpenReplay, bytes: number, applied: Applied): WarmReplay | null {
    if (!applied.fault) return { replay, progress: applied.progress, bytes: bytes + applied.bytes };
    this.#open.refuse(updateId);
    replay.close();
    return null;
  }

  /** Returns null if the replay must start over. */
  async #goOn(
    update: UpdateRow,
    kept: WarmReplay,
  ): Promise<{ caughtUp: ReplayResult; keep: WarmReplay | null } | null> {
    const { replay } = kept;
    try {
      const { bytes, progress, fault } = await this.#steps.applyNew(update.id, kept);
      if (!fault && progress.entries < update.entryCount) return null;
      const keep = fault || progress.hasGap ? null : { replay, progress, bytes: kept.bytes + bytes };
      return { caughtUp: { replay, progress, fault }, keep };
    } catch (error) {
      // The replay's thread has ended. The journal still has everything.
      if (error instanceof ReplayEndedError) return null;
      throw error;
    }
  }

  async #replay<T>(
    update: UpdateRow,
    work: (caughtUp: ReplayResult) => Promise<T>,
    bounds: ReplayBounds,
  ): Promise<T | null> {
    let left = bounds;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#catchUp(update, work, left);
      } catch (error) {
        // Another checkpoint replaced the base, possibly as a repair.
        if (error instanceof DocumentMissingError) return null;
        if (!(error instanceof DamagedStartError) || attempt === attempts) throw error;
        const repaired = await this.#repairStart(update, error);
        if (repaired === 'gone') return null;
        left = { ...left, found: undefined };
        if (repaired === 'no snapshot') left = { ...left, hasSnapshot: false };
      }
    }
  }

  /** Returns from where to repeat the replay. Throws DocumentDamagedError. */
  async #repairStart(update: UpdateRow, damage: DamagedStartError): Promise<'repaired' | 'no snapshot' | 'gone'> {
    if (damage.part === 'snapshot') {
      const snapshot = await this.#snapshots.find(update.id);
      const isDamaged = snapshot !== null && (await this.#snapshots.drop(update.id, snapshot, damage));
      return isDamaged ? 'no snapshot' : 'repaired';
    }
    const { baseCheckpointId } = update;
    const base = baseCheckpointId === null ? null : await this.#documentReader.recover(baseCheckpointId, damage);
    return base === null ? 'gone' : 'repaired';
  }

  async #catchUp<T>(
    update: UpdateRow,
    work: (caughtUp: ReplayResult) => Promise<T>,
    { entries: limit = Number.POSITIVE_INFINITY, fromBase = false, hasSnapshot = true, found }: ReplayBounds,
  ): Promise<T | null> {
    const usesSnapshot = hasSnapshot && !fromBase;
    const started = await this.#steps.start(update, { limit, usesSnapshot, found });
    if (!started) return null;
    const { replay, page } = started;
    try {
      const applied = await this.#steps.applyAll(update.id, replay, { progress: replay.initialProgress, page, limit });
      const { progress, fault } = applied;
      // There are fewer entries than the update had: another compaction has committed them, and the journal was deleted.
      if (!fault && progress.entries < Math.min(update.entryCount, limit)) return null;
      return await work({ replay, progress, fault });
    } finally {
      replay.close();
    }
  }

  /**
   * The order is that of the sequence ids. Returns null like `catchUp`. If the fault shows only in the finished deployment, searches
   * backwards from the end in doubling steps and then bisects.
   */
  async longestPrefix(update: UpdateRow, bounds: Omit<ReplayBounds, 'entries'> = {}): Promise<LongestPrefix | null> {
    const manifest = await this.manifest(update.id);
    const upTo = (entries: number): Promise<LongestPrefix | null> =>
      this.catchUp(
        update,
        async ({ replay, progress, fault }) => {
          if (progress.entries === 0 && fault) return { progress, replayed: null, fault };
          try {
            return { progress, replayed: await replay.encode(manifest), fault };
          } catch (error) {
            if (!(error instanceof InvalidJournalError)) throw error;
            return { progress, replayed: null, fault: error };
          }
        },
        { ...bounds, entries },
      );

    let best: LongestPrefix = { progress: noProgress, replayed: null, fault: null };
    let failing: LongestPrefix | null;
    try {
      failing = await upTo(Number.POSITIVE_INFINITY);
    } catch (error) {
      if (!(error instanceof InvalidJournalError)) throw error;
      return { ...best, fault: error };
    }
    if (!failing || failing.replayed || failing.progress.entries === 0) return failing;

    const end = failing.progress.entries;
    for (let step = 1; failing.progress.entries - best.progress.entries > 1; step *= 2) {
      const middle = Math.floor((best.progress.entries + failing.progress.entries) / 2);
      const probed = await upTo(best.replayed ? middle : Math.max(end - step, 1));
      if (!probed) return null;
      if (probed.replayed) best = probed;
      else failing = probed;
    }
    const prefix = `Journal entry ${failing.progress.lastSequenceId}: `;
    const message = failing.fault?.message ?? '';
    const fault = new InvalidJournalError(message.startsWith(prefix) ? message : prefix + message, {
      cause: failing.fault,
    });
    return { ...best, fault };
  }
}
