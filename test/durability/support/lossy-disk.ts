import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { describe } from '@jest/globals';
import { sendSignal } from '../../../testkit/process-session.ts';
import { ensureToolchain } from '../../../testkit/toolchain/toolchain.ts';
import { until } from '../../../testkit/until.ts';

/** What a power cut leaves of unsynced writes: nothing, or a part chosen by the seed. */
export type Loss = 'all' | { readonly seed: number };

/** Losses used in tests: the clean one, and different torn ones. */
export const losses: readonly (readonly [string, Loss])[] = [
  ['all of it', 'all'],
  ['parts of it (1)', { seed: 1 }],
  ['parts of it (2)', { seed: 2 }],
];

const running = new Set<ChildProcess>();
// Its input ends with this process too; then it unmounts.
process.on('exit', () => {
  for (const child of running) child.stdin?.end();
});

/** A file system in memory that loses unsynced writes at a power cut: testkit/toolchain/go/lossy-disk. Linux, root. */
export class LossyDisk implements AsyncDisposable {
  readonly directory: string;
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  readonly #lines: Interface;

  private constructor(directory: string, child: ChildProcess) {
    this.directory = directory;
    this.#process = child;
    this.#lines = createInterface({ input: child.stdout as NonNullable<ChildProcess['stdout']> });
    this.#answers = this.#lines[Symbol.asyncIterator]();
  }

  /** Mounts an empty one. Throws where this process may not mount. */
  static async mount(): Promise<LossyDisk> {
    const { 'lossy-disk': file } = await ensureToolchain({ only: ['lossy-disk'] });
    const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-lossy-'));
    const child = spawn(file, [directory], { stdio: ['pipe', 'pipe', 'pipe'] });
    let complaint = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
    running.add(child);
    child.once('exit', () => running.delete(child));
    const disk = new LossyDisk(directory, child);
    const first = await disk.#answers.next();
    if (first.value === 'ready') return disk;
    await disk[Symbol.asyncDispose]();
    throw new Error(`a file system cannot be mounted: ${complaint.trim()}`);
  }

  /** Cuts the power: unsynced writes are lost, and every call on the disk fails until `restore`. */
  async cut(loss: Loss = 'all'): Promise<void> {
    await this.#command(loss === 'all' ? 'cut' : `cut ${loss.seed}`);
  }

  /**
   * Restores what the power cut left. Call after every process on the disk has ended, as it would have without power.
   */
  async restore(): Promise<void> {
    await until(() => killProcessesIn(this.directory) === 0, 'the processes on the disk end');
    await this.#command('restore');
  }

  /** Number of fsync and similar calls since the last mount. */
  async syncs(): Promise<number> {
    return Number((await this.#command('stats')).split(' ')[1]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.stdin?.end();
    if (this.#process.exitCode === null) await ended;
    this.#lines.close();
    rmSync(this.directory, { recursive: true, force: true });
  }

  async #command(line: string): Promise<string> {
    this.#process.stdin?.write(`${line}\n`);
    const answer = String((await this.#answers.next()).value);
    if (!answer.startsWith('ok')) throw new Error(`lossy-disk: ${line}: ${answer}`);
    return answer;
  }
}

/** Kills the processes whose working folder is in `directory`, such as Postgres; returns how many there were. */
function killProcessesIn(directory: string): number {
  let found = 0;
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    let place: string;
    try {
      place = readlinkSync(`/proc/${name}/cwd`);
    } catch {
      continue; // It has ended.
    }
    if (place !== directory && !place.startsWith(`${directory}/`)) continue;
    found++;
    sendSignal(Number(name), 'SIGKILL');
  }
  return found;
}

/**
 * Defines tests that need such a disk. Where it is not available they are skipped and the reason is printed; in CI that
 * is a failure where it should be available: on Linux, as root, with /dev/fuse.
 */
export async function describeOnLossyDisk(name: string, define: () => void): Promise<void> {
  const reason = await reasonToSkip();
  if (reason === null) {
    describe(name, define);
    return;
  }
  process.stderr.write(`skipping tests of power cuts (${name}): ${reason}\n`);
  describe.skip(name, define);
}

async function reasonToSkip(): Promise<string | null> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || !existsSync('/dev/fuse'))
    return 'mounting needs Linux, root and /dev/fuse';
  try {
    await (await LossyDisk.mount())[Symbol.asyncDispose]();
    return null;
  } catch (error) {
    if (process.env['CI']) throw error;
    return error instanceof Error ? error.message : String(error);
  }
}
