import { afterAll, beforeAll, describe } from '@jest/globals';
import { type S3Server, type S3ServerKind, startS3Server } from '../../testkit/s3-server.ts';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';

/**
 * Defines tests that need an S3 server, which is started for them only. Where it is not available (no Go or no
 * network), they are skipped and the reason is printed; in CI that is a failure.
 */
export async function describeOnS3(kind: S3ServerKind, define: (server: () => S3Server) => void): Promise<void> {
  const reason = await reasonToSkip(kind);
  let server: S3Server | undefined;
  const running = (): S3Server => {
    if (server === undefined) throw new Error(`${kind} is not running`);
    return server;
  };
  if (reason !== null) {
    process.stderr.write(`skipping tests on ${kind}: ${reason}\n`);
    describe.skip(kind, () => define(running));
    return;
  }
  describe(kind, () => {
    beforeAll(async () => {
      server = await startS3Server(kind);
    });
    afterAll(() => server?.stop());
    define(running);
  });
}

async function reasonToSkip(kind: S3ServerKind): Promise<string | null> {
  try {
    await ensureToolchain({ only: [kind] });
    return null;
  } catch (error) {
    if (process.env['CI']) throw error;
    return error instanceof Error ? error.message : String(error);
  }
}
