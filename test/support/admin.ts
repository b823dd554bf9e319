import { execFile } from 'node:child_process';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import type { TestApp } from './test-app.ts';

export interface AdminRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `holdfast admin` as its own process on the app's database and data folder, without master keys. */
export function runAdminCommand(app: TestApp, ...args: string[]): Promise<AdminRun> {
  return runAdminWith({}, app, ...args);
}

/** The same with additional settings. */
export function runAdminWith(
  settings: Readonly<Record<string, string>>,
  app: TestApp,
  ...args: string[]
): Promise<AdminRun> {
  const env = {
    PATH: process.env['PATH'],
    HOLDFAST_DATABASE_URL: app.database.url,
    HOLDFAST_DATA_DIR: app.dataDir,
    HOLDFAST_DATABASE_POOL_SIZE: '2',
    ...settings,
  };
  return runHoldfast(env, 'admin', ...args);
}

/** Runs `holdfast` as its own process. */
export function runHoldfast(env: NodeJS.ProcessEnv, ...args: string[]): Promise<AdminRun> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [holdfastProgram, ...args],
      { env, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
        resolve({ code, stdout, stderr });
      },
    );
  });
}
