import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { readText, TransferError } from '../../../shared/diy/diy-layout.ts';
import type { Folder } from '../../../shared/platform/blobs/folder.ts';
import { writeJson } from './archive-files.ts';
import { runFile } from './archive-layout.ts';

const beatMs = 2_000;
/** A run that has not raised its counter for so long has ended. */
const staleMs = 10_000;

/** Lets one export at a time write to an archive: a file with its id and a counter, which it raises while it runs. */
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
    for (let waited = 0, now = before; now !== null && waited < staleMs; waited += beatMs) {
      await sleep(beatMs);
      now = await readText(folder, runFile);
      if (now !== null && now !== before) throw claim.#refusal();
    }
    await claim.#write(0);
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
    for (let beat = 1; ; beat++) {
      await sleep(beatMs, undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted) return;
      const isHeld = await this.assertHeld().then(
        () => true,
        // After an outage of the store, the next one counts.
        (error: unknown) => !(error instanceof TransferError),
      );
      if (!isHeld) return;
      await this.#write(beat).catch(() => {});
    }
  }

  async #write(beat: number): Promise<void> {
    await writeJson(this.#folder, runFile, { run: this.#id, beat });
  }

  #refusal(): TransferError {
    return new TransferError(`Another export writes to ${this.#to}: run this one again when that has ended`);
  }
}
