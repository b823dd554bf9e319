import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import { findOnPath, report, runCommand, ToolUnavailableError, withProgress } from './command.ts';
import { acquireLock, cacheDir } from './tool-cache.ts';

const binDirs = ['/usr/local/bin', '/usr/bin', '/usr/local/sbin', '/usr/sbin', '/opt/homebrew/bin'];

/**
 * Finds a program on the machine, or installs its package with apt-get if running as root. Throws ToolUnavailableError.
 */
export async function ensureSystemProgram(programs: readonly string[], packageName: string): Promise<string> {
  const present = await findAny(programs);
  if (present !== null) return present;

  const apt = await findOnPath('apt-get', binDirs);
  if (apt === null || process.getuid?.() !== 0) {
    throw new ToolUnavailableError(
      `${programs[0]} was not found: install it (Debian and Ubuntu: apt-get install ${packageName}) and put it on PATH.`,
    );
  }
  await mkdir(cacheDir(), { recursive: true });
  const release = await acquireLock(join(cacheDir(), 'apt.lock'), 'waiting for the process that installs packages');
  try {
    return (await findAny(programs)) ?? (await install(apt, programs, packageName));
  } finally {
    await release();
  }
}

async function install(apt: string, programs: readonly string[], packageName: string): Promise<string> {
  report(`installing ${packageName} with apt-get …`);
  const env = { DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' };
  const wait = ['-o', 'DPkg::Lock::Timeout=300', '-q'];
  await withProgress(`installing ${packageName}`, async () => {
    await runCommand(apt, [...wait, 'update'], { env });
    await runCommand(apt, [...wait, 'install', '-y', '--no-install-recommends', packageName], { env });
  });
  const found = await findAny(programs);
  if (found === null) throw new ToolUnavailableError(`${packageName} is installed, but ${programs[0]} was not found.`);
  report(`${packageName} is installed`);
  return found;
}

async function findAny(programs: readonly string[]): Promise<string | null> {
  for (const program of programs) {
    const path = await findOnPath(program, binDirs);
    if (path !== null) return path;
  }
  return null;
}
