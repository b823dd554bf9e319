import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const mebibyte = 1024 * 1024;

/** A file system in memory that can run full without using that memory. Linux, root. */
export class SmallDisk implements Disposable {
  readonly directory: string;
  readonly #bytes: number;

  private constructor(directory: string, bytes: number) {
    this.directory = directory;
    this.#bytes = bytes;
  }

  /** null where this process may not mount, which is also printed. Throws in CI, which runs as root. */
  static mount(bytes: number): SmallDisk | null {
    const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-disk-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', directory], { stdio: 'pipe' });
      return new SmallDisk(directory, bytes);
    } catch (error) {
      rmSync(directory, { recursive: true });
      if (process.env['CI'] && process.getuid?.() === 0) throw error;
      process.stderr.write(`skipping tests with a full disk: ${(error as Error).message.trim()}\n`);
      return null;
    }
  }

  /** Uses up the free space except for `room` bytes. */
  fill(room = 0): void {
    // Others may be writing meanwhile: it cannot be made smaller than its contents.
    for (let attempt = 1; ; attempt++) {
      const { bsize, blocks, bfree } = statfsSync(this.directory);
      try {
        this.#resize(Math.max((blocks - bfree) * bsize, bsize) + room + (attempt > 20 ? mebibyte : 0));
        return;
      } catch (error) {
        if (attempt > 40) throw error;
      }
    }
  }

  /** Restores the free space. */
  freeCapacity(): void {
    this.#resize(this.#bytes);
  }

  [Symbol.dispose](): void {
    execFileSync('umount', ['--lazy', this.directory], { stdio: 'pipe' });
    rmSync(this.directory, { recursive: true, force: true });
  }

  #resize(bytes: number): void {
    execFileSync('mount', ['-o', `remount,size=${bytes}`, this.directory], { stdio: 'pipe' });
  }
}
