import { type AdminRun, runHoldfast } from './admin.ts';
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
  return runHoldfast(env, 'backup', ...args);
}
