import { type BodyEncoding, type ByteSource, inflate } from '../shared/checkpoints/byte-source.ts';
import type { AppContext } from '../shared/context.ts';
import { toRejection } from '../shared/platform/errors/outcome.ts';
import type { Job } from '../shared/platform/queue/jobs.ts';

interface HandedOver {
  readonly body: ByteSource;
  readonly encoding: BodyEncoding;
  readonly inflated: (maxBytes: number) => Promise<Buffer>;
}

/**
 * Does a job's work on the body that was handed over, which is deleted once the job is committed or refused: after a fault it
 * is needed for the next attempt.
 */
export async function withHandover(
  context: AppContext,
  job: { handoverKey: string; encoding: BodyEncoding },
  work: (body: HandedOver) => Promise<void>,
): Promise<void> {
  const body: ByteSource = () => context.handover.open(job.handoverKey);
  const inflated = async (maxBytes: number): Promise<Buffer> => {
    const chunks: Buffer[] = [];
    for await (const chunk of inflate(body, job.encoding, maxBytes)) chunks.push(chunk);
    return Buffer.concat(chunks);
  };
  try {
    await work({ body, encoding: job.encoding, inflated });
  } catch (error) {
    if (toRejection(error) !== null) await context.handover.delete(job.handoverKey);
    throw error;
  }
  await context.handover.delete(job.handoverKey);
}

/** Lets go of the body of a job that was given up. */
export async function dropHandover(context: AppContext, job: Job): Promise<void> {
  if ('handoverKey' in job) await context.handover.delete(job.handoverKey);
}
