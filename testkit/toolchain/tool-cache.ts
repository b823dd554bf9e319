import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { homedir, hostname } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { buildPlan, durationText } from './build-plan.ts';
import { report, withProgress } from './command.ts';
import { hasErrorCode } from './error-code.ts';

const lockPollMs = 250;
const heartbeatMs = 5_000;
const staleAfterMs = 60_000;

/** Outside the repository and shared by all checkouts. */
export function cacheDir(): string {
  const own = process.env['HOLDFAST_TEST_CACHE'];
  if (own !== undefined && own !== '') return resolve(own);
  const xdg = process.env['XDG_CACHE_HOME'];
  return join(xdg !== undefined && xdg !== '' ? xdg : join(homedir(), '.cache'), 'holdfast-test');
}

/** Built once for a given set of inputs. */
export interface CachedBuild {
  /** Name and version: the readable part of the directory name. */
  label: string;
  /** Time that the build takes on two idle cores. */
  typicalSeconds: number;
  /** Everything that the result depends on. A change results in a new directory. */
  inputs: readonly (string | Buffer)[];
  /** Downloads what the build needs into the caches of its tools. The build downloads what is still missing. */
  download?: () => Promise<void>;
  /** Builds into `dir`, which is renamed once complete. */
  build(dir: string): Promise<void>;
}

/** Whether it exists yet or not. */
export function buildDir(tool: CachedBuild): string {
  return join(cacheDir(), `${tool.label}-${inputsHash(tool.inputs)}`);
}

/** If needed. Safe to call from many processes at once. */
export async function ensureBuilt(tool: CachedBuild): Promise<string> {
  const root = cacheDir();
  const target = buildDir(tool);
  const key = basename(target);
  if (existsSync(target)) return target;

  const scratch = join(root, '.building');
  await mkdir(scratch, { recursive: true });
  const release = await acquireLock(join(scratch, `${key}.lock`), `waiting for the process that builds ${tool.label}`);
  try {
    if (existsSync(target)) return target;
    await removeLeftovers(scratch, `${key}.part-`);
    const startedAt = Date.now();
    const elapsed = (): number => (Date.now() - startedAt) / 1000;
    buildPlan.expect(tool.label, tool.typicalSeconds);
    report(`building ${tool.label} …`);
    const part = join(scratch, `${key}.part-${randomUUID()}`);
    await mkdir(part);
    try {
      const left = (): string => {
        const seconds = buildPlan.secondsLeft(tool.label, elapsed());
        return seconds > 0 ? `about ${durationText(seconds)} left in all` : 'longer than usual';
      };
      await withProgress(`building ${tool.label}`, () => tool.build(part), left);
      await rename(part, target);
    } finally {
      await rm(part, { recursive: true, force: true });
    }
    buildPlan.finish(tool.label, elapsed());
    report(`${tool.label} is ready after ${Math.round(elapsed())} s`);
    return target;
  } finally {
    await release();
  }
}

function inputsHash(inputs: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256').update(`${process.platform}/${process.arch}\n`);
  for (const input of inputs) hash.update(`${Buffer.byteLength(input)}\n`).update(input);
  return hash.digest('hex').slice(0, 12);
}

async function removeLeftovers(dir: string, prefix: string): Promise<void> {
  const names = await readdir(dir);
  await Promise.all(
    names
      .filter((name) => name.startsWith(prefix))
      .map((name) => rm(join(dir, name), { recursive: true, force: true })),
  );
}

/**
 * Returns a function that releases the lock. A lock is abandoned if its process is gone (on the same host) or if it was not touched for a
 * minute.
 */
export async function acquireLock(path: string, waitingFor: string): Promise<() => Promise<void>> {
  const content = JSON.stringify({ pid: process.pid, host: hostname(), id: randomUUID() });
  if (!(await tryLock(path, content))) {
    report(`${waitingFor} …`);
    await withProgress(waitingFor, async () => {
      while (!(await tryLock(path, content))) {
        await breakIfAbandoned(path);
        await sleep(lockPollMs);
      }
    });
  }
  const heartbeat = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => report(`the lock ${path} is gone`));
  }, heartbeatMs);
  heartbeat.unref();
  return async () => {
    clearInterval(heartbeat);
    if ((await readLock(path))?.content === content) await rm(path, { force: true });
  };
}

/** Uses link(), which creates the lock with its content atomically, unlike open and write. */
async function tryLock(path: string, content: string): Promise<boolean> {
  const own = `${path}.${randomUUID()}`;
  await writeFile(own, content);
  try {
    await link(own, path);
    return true;
  } catch (error) {
    if (hasErrorCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await rm(own, { force: true });
  }
}

async function readLock(path: string): Promise<{ content: string; touchedAt: number } | null> {
  try {
    const [content, info] = await Promise.all([readFile(path, 'utf8'), stat(path)]);
    return { content, touchedAt: info.mtimeMs };
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return null;
    throw error;
  }
}

async function breakIfAbandoned(path: string): Promise<void> {
  const lock = await readLock(path);
  if (lock === null) return;
  const { pid, host } = JSON.parse(lock.content) as { pid: number; host: string };
  const isHolderGone = host === hostname() && !isAlive(pid);
  if (!isHolderGone && Date.now() - lock.touchedAt < staleAfterMs) return;
  // Two waiters may get here, and the second one may remove the new lock of the first. Then both build, and the rename in ensureBuilt
  // succeeds for one of them: that costs time, but does not break the tool.
  if ((await readLock(path))?.content === lock.content) await rm(path, { force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return hasErrorCode(error, 'EPERM');
  }
}
