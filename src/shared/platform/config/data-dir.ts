import { existsSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { DataDirClaim } from '../claim/data-dir-claim.ts';
import { codeOf } from '../errors/causes.ts';
import { OperatorError } from '../errors/errors.ts';
import { createFileDurably, makeFolderDurably, syncPath } from '../files/durable-files.ts';
import type { Logger } from '../logger/logger.ts';

class DataDirError extends OperatorError {
  override readonly name = 'DataDirError';
}

/** Throws DataDirInUseError and DataDirError. */
export async function claimDataDir(directory: string, logger: Logger): Promise<DataDirClaim> {
  try {
    makeFolderDurably(directory);
    return await DataDirClaim.acquire(directory, { logger });
  } catch (error) {
    throw codeOf(error) === undefined ? error : unusable(directory, error);
  }
}

export function readMasterKeys(directory: string): string | null {
  const file = masterKeysFile(directory);
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : null;
}

/**
 * Creates the key ring with `generate` if there is none, readable by the owner only. It is durable when this returns, because data
 * encrypted with a lost key ring can never be read again. Claim the directory first. `prepare` gets the temporary name of the file.
 */
export function ensureMasterKeys(
  directory: string,
  generate: () => string,
  prepare?: (temporary: string) => void,
): string {
  const file = masterKeysFile(directory);
  if (!existsSync(file)) createFileDurably(file, `${generate()}\n`, { mode: 0o600, prepare });
  // The process that created the file may have been killed before the sync.
  syncPath(file);
  syncPath(directory);
  return readFileSync(file, 'utf8').trim();
}

/**
 * Returns the name of the file, which only the owner of the process can read. Store the token before the database knows it: a process
 * killed in between then leaves a token that is not accepted, not an accepted token that is lost.
 */
export function storeFirstToken(directory: string, token: string): string {
  const file = path.resolve(directory, 'first-token');
  // Left by a first start that did not reach its commit.
  rmSync(file, { force: true });
  createFileDurably(file, `${token}\n`, { mode: 0o600 });
  return file;
}

function unusable(directory: string, error: unknown): DataDirError {
  return new DataDirError(`HOLDFAST_DATA_DIR: ${directory} cannot be used: ${(error as Error).message}`, {
    cause: error,
  });
}

export const masterKeysFile = (directory: string): string => path.join(directory, 'master-keys');
