import { type StartWait, untilAvailable, type Verdict } from '../lifecycle/start-wait.ts';
import { type BlobStoreFault, BlobStoreUnavailableError } from './blob-store.ts';

/** Faults of a server that is unavailable or still starting. */
const transient: ReadonlySet<BlobStoreFault> = new Set(['unreachable', 'timeout', 'throttled', 'faulty']);

/** Throws PartUnavailableError; at once if S3 rejects the credentials or the bucket does not exist. */
export function untilBlobStore<T>(
  where: { readonly bucket: string; readonly endpoint?: string | null },
  attempt: () => Promise<T>,
  wait: StartWait,
): Promise<T> {
  const server = where.endpoint ? new URL(where.endpoint).host : 'AWS';
  return untilAvailable({ name: `S3 at ${server}, bucket ${where.bucket} (HOLDFAST_S3_*)`, attempt, judge }, wait);
}

function judge(error: unknown): Verdict | null {
  if (!(error instanceof BlobStoreUnavailableError)) return null;
  return transient.has(error.fault) ? { passing: error.message } : { final: error.message };
}
