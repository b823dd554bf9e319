import { chmodSync, globSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ToolUnavailableError } from '../../../testkit/toolchain/command.ts';
import { ensureToolchain } from '../../../testkit/toolchain/toolchain.ts';

/** The clock of one process, which can be set while it runs. */
export interface Clock {
  /** Environment variables for its process. */
  readonly env: Record<string, string>;
  /** Sets it this many seconds ahead of the machine's clock, or behind it if negative. */
  set(seconds: number): void;
}

/** Creates clocks; dispose of it when their processes have ended. */
export class ClockShop implements AsyncDisposable {
  readonly #directory: string;
  readonly #library: string | null;
  #made = 0;

  private constructor(directory: string, library: string | null) {
    this.#directory = directory;
    this.#library = library;
  }

  static async open(): Promise<ClockShop> {
    const directory = await mkdtemp(path.join(tmpdir(), 'holdfast-clocks-'));
    // Postgres runs as another user.
    chmodSync(directory, 0o755);
    return new ClockShop(directory, await findLibrary());
  }

  ofNode(): Clock {
    const file = this.#file('0');
    const module = path.join(import.meta.dirname, 'shifted-clock.ts');
    return {
      env: { NODE_OPTIONS: `--import=${module}`, TEST_CLOCK_FILE: file },
      set: (seconds) => writeFileSync(file, String(seconds * 1_000)),
    };
  }

  /** For any other program; null where libfaketime is not available. */
  ofProgram(): Clock | null {
    if (this.#library === null) return null;
    const file = this.#file('+0\n');
    return {
      env: {
        LD_PRELOAD: this.#library,
        FAKETIME_TIMESTAMP_FILE: file,
        FAKETIME_NO_CACHE: '1',
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
      },
      set: (seconds) => writeFileSync(file, `${seconds < 0 ? '' : '+'}${seconds}\n`),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.#directory, { recursive: true, force: true });
    // Files that libfaketime keeps for each process; killed processes leave them behind.
    for (const left of globSync('/dev/shm/{faketime_shm_,sem.faketime_sem_}*')) {
      const pid = /\d+$/.exec(left)?.[0];
      if (globSync(`/proc/${pid}`).length === 0) rmSync(left, { force: true });
    }
  }

  #file(text: string): string {
    const file = path.join(this.#directory, `clock-${++this.#made}`);
    writeFileSync(file, text);
    chmodSync(file, 0o644);
    return file;
  }
}

async function findLibrary(): Promise<string | null> {
  try {
    await ensureToolchain({ only: ['faketime'] });
  } catch (error) {
    if (!(error instanceof ToolUnavailableError)) throw error;
    process.stderr.write(`faults: the clock of Postgres is left alone: ${error.message}\n`);
    return null;
  }
  return globSync('/usr/lib/{*/,}faketime/libfaketime.so.1')[0] ?? null;
}
