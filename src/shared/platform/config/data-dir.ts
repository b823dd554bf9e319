import { existsSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { DataDirClaim } from '../claim/data-dir-claim.ts';
import { codeOf } from '../errors/causes.ts';
import { OperatorError } from '../errors/errors.ts';
import { createFileDurably, makeFolderDurably, syncPath } from '../files/durable-files.ts';
import type { Logger } from '../logger/logger.ts';

/** The data directory cannot be created or written. */
class DataDirError extends OperatorError {
  override readonly name = 'DataDirError';
}

/** Creates the data directory if needed and claims it for this process. Throws DataDirInUseError and DataDirError. */
export async function claimDataDir(directory: string, logger: Logger): Promise<DataDirClaim> {
  try {
    makeFolderDurably(directory);
    return await DataDirClaim.acquire(directory, { logger });
  } catch (error) {
    throw codeOf(error) === undefined ? error : unusable(directory, error);
  }
}

/** Returns null if there is no key ring. */
export function readMasterKeys(directory: string): string | null {
  const file = masterKeysFile(directory);
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : null;
}

/**
 * Reads the key ring, or creates it with `generate`, readable by the owner only. The key ring is durable when this returns, because data
 * encrypted with a lost key ring can never be read again. Claim the directory first. `prepare` gets the temporary name of the file.
 */
export function ensureMasterKeys(
  directory: string,
  generate: () => string,
  prepare?: (temporary: string) => void,
): string {
  const file = masterKeysFile(directory);
  if (!existsSync(file)) createFileDurably(file, `${generate()}\n`, { mode: 0o600, prepare });
  // Even if the file existed: the process that created it may have been killed before the sync.
  syncPath(file);
  syncPath(directory);
  return readFileSync(file, 'utf8').trim();
}

/**
 * Stores the first admin's token, readable by the owner of the process only. Returns the name of the file. The token must be stored before
 * the database knows it. A process killed in between then leaves a token that is not accepted, not an accepted token that is lost.
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

/** The master keys of embedded mode. */
export const masterKeysFile = (directory: string): string => path.join(directory, 'master-keys');
