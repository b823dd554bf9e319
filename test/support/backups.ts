import { execFile } from 'node:child_process';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import type { AdminRun } from './admin.ts';
import { masterKeys } from './test-app.ts';

/** Runs `holdfast backup` as its own process. */
export function runBackup(
  { databaseUrl, dataDir, settings }: { databaseUrl?: string; dataDir: string; settings?: Record<string, string> },
  ...args: string[]
): Promise<AdminRun> {
  const env = {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    HOLDFAST_DATA_DIR: dataDir,
    HOLDFAST_MASTER_KEYS: masterKeys,
    ...(databaseUrl === undefined ? {} : { HOLDFAST_DATABASE_URL: databaseUrl }),
    ...settings,
  };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [holdfastProgram, 'backup', ...args],
      { env, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr }),
    );
  });
}
