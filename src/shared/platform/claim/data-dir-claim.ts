import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../errors/errors.ts';
import type { Logger } from '../logger/logger.ts';
import { type Claim, ClaimFiles, type ClaimOwner } from './claim-files.ts';
import { type FileLock, type TakeLock, takeFileLock } from './file-lock.ts';
import { fateOf, ownIdentity } from './process-identity.ts';

class DataDirInUseError extends OperatorError {
  override readonly name = 'DataDirInUseError';
}

/** Whether a write may be acknowledged. */
export interface DataOwnership {
  /** False if another server owns the data by now, or if the owner cannot be determined. */
  holds(): boolean;
}

interface ClaimOptions {
  readonly logger: Logger;
  readonly takeLock?: TakeLock;
  readonly beatMs?: number;
  /** After this time without a sign of life, an owner that cannot be observed is considered dead. */
  readonly watchMs?: number;
}

const beatMsByDefault = 2_000;
/** Longer than a live server is ever blocked. */
const watchMsByDefault = 15_000;
const lookMs = 100;
/** An ended process's lock is released within this time. */
const lockWaitMs = 10_000;

/**
 * Two servers must never run on a data directory at once. With file locks, the kernel shows whether the owner is alive, in any container.
 * Without them, and between machines, the owner increases a number to show that it is alive. A new process that cannot observe the owner
 * waits and watches this number. Clocks of different processes are never compared.
 */
export class DataDirClaim implements DataOwnership {
  readonly #folder: string;
  readonly #files: ClaimFiles;
  readonly #claim: Claim;
  readonly #logger: Logger;
  readonly #takeLock: TakeLock;
  readonly #locks: FileLock[];
  readonly #timer: NodeJS.Timeout;
  #beats = 0;
  #beating = false;
  #isReleased = false;
  #onLost: ((reason: string) => void) | undefined;

  private constructor(folder: string, claim: Claim, lock: FileLock | null, options: Required<ClaimOptions>) {
    this.#folder = folder;
    this.#files = new ClaimFiles(folder);
    this.#claim = claim;
    this.#logger = options.logger;
    this.#takeLock = options.takeLock;
    this.#locks = lock ? [lock] : [];
    writeFileSync(this.#files.beatFile(claim.number), beatText(0));
    this.#timer = setInterval(() => void this.#beat(), options.beatMs);
    this.#timer.unref();
  }

  /**
   * Takes over the claim of a dead owner: at once if its end can be proved, otherwise after `watchMs` without a sign of life. Throws
   * DataDirInUseError.
   */
  static async acquire(directory: string, options: ClaimOptions): Promise<DataDirClaim> {
    const all = { takeLock: takeFileLock, beatMs: beatMsByDefault, watchMs: watchMsByDefault, ...options };
    const folder = path.join(directory, 'claims');
    mkdirSync(folder, { recursive: true });
    const files = new ClaimFiles(folder);
    const lock = await lockUnlessInUse(directory, files, path.join(folder, 'server.lock'), all.takeLock);
    try {
      const owner = { id: randomUUID(), ...ownIdentity(), lock: lock?.inode ?? null, isReleased: false };
      for (;;) {
        const last = files.readLast();
        if (last) await untilFree(directory, files, last, lock, all);
        const number = (last?.number ?? 0) + 1;
        if (!files.create(number, owner)) continue;
        files.removeBefore(number);
        return new DataDirClaim(folder, { number, text: files.readText(number) ?? '', owner }, lock, all);
      }
    } catch (error) {
      lock?.release();
      throw error;
    }
  }

  /** Called once, when another server owns the directory. */
  onLost(callback: (reason: string) => void): void {
    this.#onLost = callback;
  }

  holds(): boolean {
    try {
      if (this.#files.readText(this.#claim.number) === this.#claim.text) return true;
    } catch (error) {
      this.#logger.error({ err: error }, 'the claim of the data directory cannot be read');
      return false;
    }
    this.#lose();
    return false;
  }

  /**
   * Takes a lock that is passed to a child program, which uses the directory while it runs. This detects a program that has outlived its
   * server even if the program cannot be observed. Returns null without locks, and 'held' if another program of this kind still runs.
   */
  async lockFor(program: string): Promise<FileLock | null | 'held'> {
    const file = path.join(this.#folder, `${program}.lock`);
    const lock = await poll(() => this.#takeLock(file), lockWaitMs);
    if (lock === 'unsupported' || lock === 'held') return lock === 'held' ? 'held' : null;
    this.#locks.push(lock);
    return lock;
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    clearInterval(this.#timer);
    const { number, owner } = this.#claim;
    if (owner && this.#files.readText(number) === this.#claim.text) {
      this.#files.create(number + 1, { ...owner, isReleased: true });
      this.#files.removeBefore(number + 1);
    }
    for (const lock of this.#locks) lock.release();
  }

  async #beat(): Promise<void> {
    if (this.#beating || this.#isReleased) return;
    if (!this.holds()) return;
    this.#beating = true;
    try {
      if (this.#files.readLast()?.number !== this.#claim.number) return this.#lose();
      // In place, so that this works on a full disk. The file is closed so that network file systems send it.
      const file = await open(this.#files.beatFile(this.#claim.number), 'r+');
      try {
        await file.write(beatText(++this.#beats), 0);
      } finally {
        await file.close();
      }
    } catch (error) {
      // A new process has removed the file, or is about to take over the directory. The next check detects this.
      this.#logger.warn({ err: error }, 'the claim of the data directory cannot be renewed');
    } finally {
      this.#beating = false;
    }
  }

  #lose(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    clearInterval(this.#timer);
    this.#onLost?.(this.#nameOwner());
    for (const lock of this.#locks) lock.release();
  }

  #nameOwner(): string {
    let owner: ClaimOwner | null | undefined;
    try {
      owner = this.#files.readLast()?.owner;
    } catch {
      // The directory itself may be gone.
    }
    return owner ? `the server that is process ${owner.pid} on host ${owner.host} has it now` : 'its claim is gone';
  }
}

async function lockUnlessInUse(
  directory: string,
  files: ClaimFiles,
  file: string,
  takeLock: TakeLock,
): Promise<FileLock | null> {
  // A process that was just killed may still have its files open.
  const hasEnded = (): boolean => {
    const owner = files.readLast()?.owner;
    return owner !== undefined && owner !== null && (owner.isReleased || fateOf(owner) === 'ended');
  };
  const lock = await poll(() => takeLock(file), lockWaitMs, hasEnded);
  if (lock === 'held') throw inUse(directory, files.readLast());
  return lock === 'unsupported' ? null : lock;
}

/** Waits until the claim is no longer effective or its owner is considered dead. Throws DataDirInUseError if the owner is alive. */
async function untilFree(
  directory: string,
  files: ClaimFiles,
  claim: Claim,
  lock: FileLock | null,
  { logger, watchMs }: Required<ClaimOptions>,
): Promise<void> {
  const { number, owner } = claim;
  if (owner) {
    if (owner.isReleased) return;
    const fate = fateOf(owner);
    if (fate === 'ended') return;
    const isSameLock = lock !== null && owner.lock === lock.inode;
    // This process has the owner's lock on the owner's running system, so the owner has released it.
    if (isSameLock && owner.boot !== null && owner.boot === ownIdentity().boot) return;
    // A lock on another file means that this is a copy of the owner's directory.
    if (fate === 'running' && (lock === null || owner.lock === null)) throw inUse(directory, claim);
  }
  logger.warn(
    { directory, host: owner?.host, pid: owner?.pid, seconds: watchMs / 1000 },
    'waiting: the data directory is claimed by a server that cannot be observed from here; checking for signs of life',
  );
  const beat = files.readBeat(number);
  const end = performance.now() + watchMs;
  for (let isLast = false; !isLast; ) {
    await sleep(lookMs);
    isLast = performance.now() >= end;
    const last = files.readLast();
    if (last?.number !== number) return;
    if (files.readBeat(number) !== beat) throw inUse(directory, claim);
  }
  logger.warn({ directory }, 'taking over the data directory: its server shows no sign of life');
}

/** Retries only while the lock is held and `isWorthIt` returns true. */
async function poll(
  take: () => ReturnType<TakeLock>,
  waitMs: number,
  isWorthIt: () => boolean = () => true,
): Promise<ReturnType<TakeLock>> {
  const end = performance.now() + waitMs;
  for (;;) {
    const lock = take();
    if (lock !== 'held' || performance.now() >= end || !isWorthIt()) return lock;
    await sleep(lookMs);
  }
}

function inUse(directory: string, claim: Claim | null): DataDirInUseError {
  const owner = claim?.owner;
  const who = owner ? ` (process ${owner.pid} on host ${owner.host})` : '';
  return new DataDirInUseError(`The data directory ${directory} is in use by another server${who}`);
}

const beatText = (beats: number): string => String(beats).padStart(16, '0');
