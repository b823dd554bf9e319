import { spawn } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { BackupError } from '../../shared/backup/backup-error.ts';
import {
  type Backups,
  backupTasks,
  hasPassed,
  type LastVerification,
  noteVerified,
  readBackupStatus,
  unverifiedSince,
} from '../../shared/backup/backup-status.ts';
import type { AppContext } from '../../shared/context.ts';
import type { BackgroundTaskRepository } from '../../shared/platform/background-tasks/background-task-repository.ts';
import { findPostgresBinaries } from '../../shared/platform/db/postgres-binaries.ts';
import type { BackgroundTask } from '../platform/background-task.ts';
import { assertPauseOver } from './attempt-pause.ts';

const checkEverySeconds = 3600;
const dayMs = 24 * 3600 * 1000;
/** A day less than the alert permits. */
const verifyEveryMs = 7 * dayMs;
const maxProblems = 20;

interface Options {
  /** The program that Node runs for `holdfast backup verify`. */
  readonly program: string;
  readonly lowerPriority?: (pid: number) => void;
  /** In ms since 1970. */
  readonly now?: () => number | Promise<number>;
}

/**
 * Verifies the newest scheduled backup each week, in a separate process, because a verification needs more memory than a worker may use.
 * After a fault, it verifies again the next day.
 */
export function verifyNewestBackup(
  { logger }: Pick<AppContext, 'logger'>,
  location: string,
  runs: BackgroundTaskRepository,
  { lowerPriority = runBelowNormal, now = runs.readClock, program }: Options,
): BackgroundTask {
  return {
    name: backupTasks.verify,
    everySeconds: checkEverySeconds,
    run: async (signal) => {
      const { backups, verification } = await readBackupStatus(runs);
      const newest = backups?.backups[0];
      const begunAt = await now();
      if (!backups || !newest || !isVerificationDue(backups, begunAt)) return;
      if (verification && isRecent(verification, begunAt)) {
        // The task fails until a verification finds no faults.
        assertNoFaults(verification);
        return;
      }
      const { failure: earlier, ...last } = verification ?? { at: null, backup: null, problems: [], skipped: null };
      if (earlier) assertPauseOver(earlier, begunAt);
      const skipped = await whyNot(newest.isEncrypted);
      const begun = { count: (earlier?.count ?? 0) + 1, at: begunAt };
      const verifyNewest = async (): Promise<string[]> => {
        try {
          return await verify({ id: newest.id, location, lowerPriority, program, signal });
        } catch (error) {
          const failure = { ...begun, error: (error as Error).message };
          // After an orderly stop, the next process begins at once.
          if (!signal.aborted)
            await runs.saveResult(backupTasks.verify, JSON.stringify({ ...last, failure } satisfies LastVerification));
          throw error;
        }
      };
      const problems = skipped === null ? await verifyNewest() : [];
      const at = await now();
      if (skipped === null && problems.length === 0) await noteVerified(runs, { at, id: newest.id, location });
      await runs.saveResult(
        backupTasks.verify,
        JSON.stringify({ at, backup: newest.id, problems, skipped } satisfies LastVerification),
      );
      if (skipped !== null) logger.warn({ backup: newest.id, reason: skipped }, 'the newest backup is not verified');
      else if (problems.length === 0) logger.info({ backup: newest.id }, 'backup verified');
      else assertNoFaults({ backup: newest.id, problems });
    },
  };
}

function isVerificationDue(backups: Backups, now: number): boolean {
  const at = unverifiedSince(backups, now);
  return at !== null && now - at >= verifyEveryMs;
}

function isRecent({ at }: LastVerification, now: number): boolean {
  return at !== null && hasPassed(at, now) && now - at < dayMs;
}

function assertNoFaults({ backup, problems }: Pick<LastVerification, 'backup' | 'problems'>): void {
  if (problems.length > 0) throw new BackupError(`Backup ${backup} has faults: ${problems.join('; ')}`);
}

async function whyNot(isEncrypted: boolean): Promise<string | null> {
  if (isEncrypted) return 'It is encrypted, and workers have no identity: run `holdfast backup verify` elsewhere.';
  try {
    await findPostgresBinaries();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

function runBelowNormal(pid: number): void {
  setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
}

/** Returns the faults. Throws if the verification could not run. */
function verify({
  id,
  location,
  lowerPriority,
  program,
  signal,
}: {
  readonly id: string;
  readonly location: string;
  readonly lowerPriority: (pid: number) => void;
  readonly program: string;
  readonly signal: AbortSignal;
}): Promise<string[]> {
  const args = [program, 'backup', 'verify', id, '--from', location, '--json'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], signal, killSignal: 'SIGTERM' });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.once('close', (code) => {
      try {
        const { problems } = JSON.parse(output.stdout) as { problems: string[] };
        resolve(problems.slice(0, maxProblems));
      } catch (cause) {
        reject(new Error(`The verification ended with ${code}: ${output.stderr.trim()}`, { cause }));
      }
    });
    try {
      if (child.pid !== undefined) lowerPriority(child.pid);
    } catch {
      // The service manager does not permit it, or the child process has ended.
    }
  });
}
