import { afterAll, describe, test } from '@jest/globals';
import { type HoldfastServer, hasExternalServer, startHoldfast } from './holdfast-server.ts';
import { ToolUnavailableError } from './toolchain/command.ts';
import { ensureToolchain, type ToolName } from './toolchain/toolchain.ts';

/** Long enough for a slow machine that is building something else at the same time. */
export const scenarioTimeoutMs = 480_000;

/** What a group of tests needs. */
export interface SuiteNeeds {
  tools?: readonly ToolName[];
  /** The tests end the server or choose its settings, so they cannot run against one that is up already. */
  ownServer?: boolean;
}

/**
 * Declares a group of tests. It is left out, with the reason in the output, when its needs are not met; in CI a lacking
 * tool is a failure.
 */
export async function suite(name: string, needs: SuiteNeeds, declare: () => void): Promise<void> {
  if (needs.ownServer === true && hasExternalServer()) {
    return leaveOut(name, 'they need a server of their own, and HOLDFAST_TEST_URL is set', declare);
  }
  const reason = process.env['HOLDFAST_TEST_LEFT_OUT'];
  if (reason !== undefined) return leaveOut(name, reason, declare);
  try {
    await ensureToolchain({ only: needs.tools ?? ['pulumi-3.255', 'test-provider'] });
  } catch (error) {
    const inCi = (process.env['CI'] ?? '') !== '';
    if (!(error instanceof ToolUnavailableError) || inCi) throw error;
    return leaveOut(name, error.message, declare);
  }
  describe(name, declare);
}

/** The server of a test file: started when it is first asked for, ended after the last test. */
export function fileServer<Server extends HoldfastServer = HoldfastServer>(
  start: () => Promise<Server> = startHoldfast as () => Promise<Server>,
): () => Promise<Server> {
  let started: Promise<Server> | undefined;
  afterAll(async () => {
    const server = await started;
    for (const line of server?.faults() ?? []) process.stderr.write(`e2e: the server logged ${line}\n`);
    await server?.[Symbol.asyncDispose]();
  }, 120_000);
  return () => {
    started ??= start();
    return started;
  };
}

function leaveOut(name: string, reason: string, declare: () => void): void {
  process.stderr.write(`e2e: the tests of «${name}» are left out: ${reason}\n`);
  describe.skip(name, () => {
    declare();
    // Jest refuses a group without tests.
    test('is left out', () => undefined);
  });
}
