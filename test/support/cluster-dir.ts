import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Returns a new path in the system's temporary directory, for throw-away clusters. */
export function temporaryClusterDir(): string {
  return path.join(tmpdir(), `holdfast-postgres-${process.pid}-${randomBytes(4).toString('hex')}`);
}
