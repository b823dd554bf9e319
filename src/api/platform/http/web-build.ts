import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { isAlive } from '../../../shared/platform/processes/is-alive.ts';

/** The folder in which the process `pid` builds the web UI that will replace `target`. */
export function webBuildFolder(target: string, pid: number): string {
  return path.join(path.dirname(target), `.web-${pid}`);
}

/** A killed build leaves its folder behind. */
export async function isBeingBuilt(target: string): Promise<boolean> {
  const names = await readdir(path.dirname(target)).catch(() => []);
  return names.some((name) => {
    const [, pid] = /^\.web-(\d+)$/.exec(name) ?? [];
    return pid !== undefined && isAlive(Number(pid));
  });
}
