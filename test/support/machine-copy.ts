import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface CopyResult {
  readonly code: number;
  readonly output: string;
}

/** Mounts the copy and waits in it. The mounts end with this process, because nobody else is in its namespace. */
const mounting = `
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/changes" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/changes,workdir=$1/work" "$1/root"
for each in proc dev; do mount --rbind "/$each" "$1/root/$each"; done
mount -t tmpfs tmpfs "$1/root/tmp"
mount --bind "$2" "$1/root/mnt"
echo mounted
exec chroot "$1/root" sleep infinity
`;

/**
 * A copy of the files of this machine, to install packages in: what is written there is in memory, and gone afterwards. Network and
 * processes are those of the machine. Linux, root.
 */
export class MachineCopy implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #directory: string;

  private constructor(directory: string, process: ChildProcess) {
    this.#directory = directory;
    this.#process = process;
  }

  /** Makes a copy that has `shared` at /mnt. Throws where this process may not mount. */
  static async create(shared: string): Promise<MachineCopy> {
    const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-machine-'));
    const child = spawn('unshare', ['--mount', 'sh', '-c', mounting, 'sh', directory, shared], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let complaint = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
    const started = await Promise.race([once(child.stdout, 'data'), once(child, 'exit').then(() => null)]);
    if (started !== null) return new MachineCopy(directory, child);
    rmSync(directory, { recursive: true });
    throw new Error(`this machine cannot be copied: ${complaint.trim()}`);
  }

  /** Runs a command as root and returns its output, whatever its exit code. */
  async run(program: string, ...args: readonly string[]): Promise<CopyResult> {
    return new Promise((resolve) => {
      const [enter, words] = this.#command(program, args);
      const options = { encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 } as const;
      execFile(enter, words, options, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
      );
    });
  }

  /** Runs a command as root and returns its output. Throws if it fails. */
  async runOk(program: string, ...args: readonly string[]): Promise<string> {
    const { code, output } = await this.run(program, ...args);
    if (code !== 0) throw new Error(`${program} ${args.join(' ')} exited with ${code}:\n${output}`);
    return output.trim();
  }

  /** Starts a command as root. The caller stops it. */
  spawn(program: string, ...args: readonly string[]): ChildProcess {
    return spawn(...this.#command(program, args), { stdio: ['ignore', 'pipe', 'pipe'] });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #command(program: string, args: readonly string[]): [string, string[]] {
    return [
      'nsenter',
      ['--target', String(this.#process.pid), '--mount', '--root', '--wdns=/', '--', program, ...args],
    ];
  }
}
