import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import os from 'node:os';
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
    const directory = await mkdtemp(path.join(os.tmpdir(), 'holdfast-clocks-'));
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

  /** For any other program; null where it cannot be set. */
  ofProgram(): Clock | null {
    if (this.#library === null) return null;
    const seconds = Buffer.alloc(8);
    const file = this.#file(seconds);
    return {
      env: { LD_PRELOAD: this.#library, TEST_CLOCK_FILE: file },
      set: (shift) => {
        seconds[os.endianness() === 'LE' ? 'writeBigInt64LE' : 'writeBigInt64BE'](BigInt(shift));
        // Programs have mapped it, so it must not become shorter for a moment.
        writeFileSync(file, seconds, { flag: 'r+' });
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #file(content: string | Buffer): string {
    const file = path.join(this.#directory, `clock-${++this.#made}`);
    writeFileSync(file, content);
    chmodSync(file, 0o644);
    return file;
  }
}

async function findLibrary(): Promise<string | null> {
  try {
    return process.platform === 'linux' ? (await ensureToolchain({ only: ['shifted-clock'] }))['shifted-clock'] : null;
  } catch (error) {
    if (!(error instanceof ToolUnavailableError) || process.env['CI']) throw error;
    process.stderr.write(`faults: the clock of Postgres is left alone: ${error.message}\n`);
    return null;
  }
}
