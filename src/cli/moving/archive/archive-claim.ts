import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { readText, TransferError } from '../../../shared/diy/diy-layout.ts';
import type { Folder } from '../../../shared/platform/blobs/folder.ts';
import { writeJson } from './archive-files.ts';
import { runFile } from './archive-layout.ts';

/** The time to the next beat doubles, because buckets may keep every version of the file. */
const firstBeatMs = 2_500;
const maxBeatMs = 15_000;
/** A run that has not raised its counter for this many of its beats has ended. */
const staleBeats = 4;

/** Lets one export at a time write to an archive: a file contains its id and a counter, which it raises while it runs. */
export class ArchiveClaim {
  readonly #folder: Folder;
  readonly #to: string;
  readonly #id = randomUUID();
  readonly #end = new AbortController();
  #beats: Promise<void> = Promise.resolve();

  private constructor(folder: Folder, to: string) {
    this.#folder = folder;
    this.#to = to;
  }

  /** Throws TransferError if another export writes to the archive. */
  static async take(folder: Folder, to: string): Promise<ArchiveClaim> {
    const claim = new ArchiveClaim(folder, to);
    const before = await readText(folder, runFile);
    const beatMs = beatOf(before);
    const pollMs = Math.min(beatMs, firstBeatMs);
    for (let waited = 0, now = before; now !== null && waited < staleBeats * beatMs; waited += pollMs) {
      await sleep(pollMs);
      now = await readText(folder, runFile);
      if (now !== null && now !== before) throw claim.#refusal();
    }
    await claim.#write(0, firstBeatMs);
    claim.#beats = claim.#beat();
    return claim;
  }

  /** Throws TransferError if another export has taken the archive meanwhile. */
  async assertHeld(): Promise<void> {
    const text = await readText(this.#folder, runFile);
    if (text === null || !text.includes(this.#id)) throw this.#refusal();
  }

  async release(): Promise<void> {
    this.#end.abort();
    await this.#beats;
    if ((await readText(this.#folder, runFile))?.includes(this.#id)) await this.#folder.delete(runFile);
  }

  async #beat(): Promise<void> {
    const { signal } = this.#end;
    for (let beat = 1, beatMs = firstBeatMs; ; beat++) {
      await sleep(beatMs, undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted) return;
      const isHeld = await this.assertHeld().then(
        () => true,
        // After an outage of the store, the next beat counts.
        (error: unknown) => !(error instanceof TransferError),
      );
      if (!isHeld) return;
      const nextMs = Math.min(2 * beatMs, maxBeatMs);
      const isWritten = await this.#write(beat, nextMs).then(
        () => true,
        () => false,
      );
      if (isWritten) beatMs = nextMs;
    }
  }

  async #write(beat: number, nextMs: number): Promise<void> {
    await writeJson(this.#folder, runFile, { run: this.#id, beat, nextMs });
  }

  #refusal(): TransferError {
    return new TransferError(`Another export writes to ${this.#to}: run this one again when that has ended`);
  }
}

/** The time to the next beat, according to the file of a run. */
function beatOf(text: string | null): number {
  const nextMs = /"nextMs":\s*(\d+)/.exec(text ?? '')?.[1];
  return nextMs === undefined ? firstBeatMs : Math.min(Number(nextMs), maxBeatMs);
}
