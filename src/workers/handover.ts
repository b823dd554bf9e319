import type { BodyEncoding, ByteSource } from '../shared/checkpoints/byte-source.ts';
import type { AppContext } from '../shared/context.ts';
import type { Job } from '../shared/jobs/jobs.ts';
import type { BodySeal } from '../shared/platform/payloads/handover-store.ts';

interface HandedOver {
  readonly body: ByteSource;
  readonly encoding: BodyEncoding;
}

/**
 * The body that was handed over for a job. It stays until the job's end is written down: a job that is run again, after a fault
 * or by another worker, must find it.
 */
export function handedOver(
  context: AppContext,
  job: { handoverKey: string; encoding: BodyEncoding },
  seal: BodySeal | null,
): HandedOver {
  const body: ByteSource = () => context.handover.open(job.handoverKey, seal);
  return { body, encoding: job.encoding };
}

/** Lets go of the body of a job that has ended. */
export async function dropHandover(context: AppContext, job: Job): Promise<void> {
  if ('handoverKey' in job) await context.handover.delete(job.handoverKey);
}
