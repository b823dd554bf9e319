import { type ChildProcess, spawn } from 'node:child_process';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { diskFolder } from '../../testkit/memory-folder.ts';
import { until } from '../../testkit/until.ts';
import { type AdminRun, runHoldfast } from './admin.ts';
import { masterKeys } from './test-app.ts';

interface BackupSettings {
  readonly databaseUrl?: string;
  readonly dataDir: string;
  readonly settings?: Readonly<Record<string, string>>;
}

/** Runs `holdfast backup` as its own process. */
export function runBackup(of: BackupSettings, ...args: string[]): Promise<AdminRun> {
  return runHoldfast(environmentOf(of), 'backup', ...args);
}

/** Sends the signal once `isReached`, which is asked again and again, says so. */
export async function killBackup(
  of: BackupSettings,
  args: readonly string[],
  isReached: (child: ChildProcess) => Promise<boolean>,
  signal: NodeJS.Signals = 'SIGKILL',
): Promise<ChildProcess> {
  const child = spawn(process.execPath, [holdfastProgram, 'backup', ...args], {
    env: environmentOf(of),
    stdio: 'pipe',
  });
  let stderr = '';
  child.stdout.resume();
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`It ended before it was killed: ${child.exitCode} ${stderr}`);
    return isReached(child);
  }, `holdfast backup ${args[0]} can be killed`);
  child.kill(signal);
  await closed;
  return child;
}

function environmentOf({ databaseUrl, dataDir, settings }: BackupSettings): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    TMPDIR: diskFolder(),
    HOLDFAST_DATA_DIR: dataDir,
    HOLDFAST_MASTER_KEYS: masterKeys,
    ...(databaseUrl === undefined ? {} : { HOLDFAST_DATABASE_URL: databaseUrl }),
    ...settings,
  };
}
