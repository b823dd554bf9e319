import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ClusterProcess } from '../../testkit/cluster-process.ts';

const root = '/sys/fs/cgroup';
const periodUs = 20_000;

/** Gives processes a share of the machine's cores (Linux, root). */
export class CoreLimits implements Disposable {
  readonly #groups: string[] = [];

  /** Lets each of the processes use at most so many cores. Throws where control groups cannot be made. */
  limit(processes: readonly ClusterProcess[], cores: number): void {
    for (const { name, pid } of processes) {
      const { folder, isFirst } = makeGroup(`holdfast-bench-${process.pid}-${name}`);
      this.#groups.push(folder);
      const quota = String(Math.round(cores * periodUs));
      if (isFirst) {
        writeFileSync(path.join(folder, 'cpu.cfs_period_us'), String(periodUs));
        writeFileSync(path.join(folder, 'cpu.cfs_quota_us'), quota);
      } else writeFileSync(path.join(folder, 'cpu.max'), `${quota} ${periodUs}`);
      writeFileSync(path.join(folder, 'cgroup.procs'), String(pid));
    }
  }

  /** The processes must have ended. */
  [Symbol.dispose](): void {
    for (const folder of this.#groups) rmdirSync(folder);
  }
}

/** The first version of control groups has a tree for each resource. */
function makeGroup(name: string): { folder: string; isFirst: boolean } {
  const first = path.join(root, 'cpu', name);
  try {
    mkdirSync(first);
    return { folder: first, isFirst: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const folder = path.join(root, name);
  mkdirSync(folder);
  return { folder, isFirst: false };
}
