import { execFile } from 'node:child_process';
import { jest } from '@jest/globals';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { assertOutput } from './outputs.ts';
import { masterKeys, type TestApp } from './test-app.ts';

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

/** Runs a command in this process on the app's settings: most tests do not need a separate one. */
export async function runInProcess(app: TestApp, ...words: string[]): Promise<AdminRun> {
  const printed = { log: '', error: '' };
  const spies = (['log', 'error'] as const).map((stream) =>
    jest.spyOn(console, stream).mockImplementation((text: unknown) => {
      printed[stream] += `${text}\n`;
    }),
  );
  try {
    const { secrets, ...others } = app.context.config;
    const config = { ...others, secrets: { ...secrets, masterKeys }, logLevel: 'silent' as const };
    const code = (await runCommandLine(words, () => config)) ?? -1;
    return { code, stdout: printed.log, stderr: printed.error };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** Runs `holdfast` as its own process. With --json, what it prints must be as its schema says. */
export function runHoldfast(env: NodeJS.ProcessEnv, ...args: string[]): Promise<AdminRun> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [holdfastProgram, ...args],
      { env, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
        try {
          if (args.includes('--json') && stdout !== '') assertOutput(args, stdout);
          resolve({ code, stdout, stderr });
        } catch (mismatch) {
          reject(mismatch);
        }
      },
    );
  });
}
