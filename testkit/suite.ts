import { afterAll, describe, test } from '@jest/globals';
import { type HoldfastServer, hasExternalServer, startHoldfast } from './holdfast-server.ts';
import { ToolUnavailableError } from './toolchain/command.ts';
import { ensureToolchain, type ToolName } from './toolchain/toolchain.ts';

/** Long enough for a slow machine that is busy with builds. */
export const scenarioTimeoutMs = 900_000;

/** Requirements of a group of tests. */
export interface SuiteNeeds {
  tools?: readonly ToolName[];
  /** The tests stop the server or choose its settings, so they cannot use an external one. */
  ownServer?: boolean;
}

/**
 * Declares a group of tests. If its requirements are not met, skips it, with the reason in the output. In CI, a missing tool is a failure.
 */
export async function suite(name: string, needs: SuiteNeeds, declare: () => void): Promise<void> {
  if (needs.ownServer === true && hasExternalServer()) {
    return skip(name, 'they need their own server, but HOLDFAST_TEST_URL is set', declare);
  }
  const reason = process.env['HOLDFAST_TEST_LEFT_OUT'];
  if (reason !== undefined) return skip(name, reason, declare);
  try {
    await ensureToolchain({ only: needs.tools ?? ['pulumi-3.276', 'test-provider'] });
  } catch (error) {
    const inCi = (process.env['CI'] ?? '') !== '';
    if (!(error instanceof ToolUnavailableError) || inCi) throw error;
    return skip(name, error.message, declare);
  }
  describe(name, declare);
}

/**
 * Returns a function that provides the server of a test file. It is started on first use and stopped after the last
 * test.
 */
export function fileServer<Server extends HoldfastServer = HoldfastServer>(
  start: () => Promise<Server> = startHoldfast as () => Promise<Server>,
): () => Promise<Server> {
  let started: Promise<Server> | undefined;
  afterAll(async () => {
    const server = await started;
    for (const line of server?.faults() ?? []) process.stderr.write(`e2e: the server logged ${line}\n`);
    await server?.[Symbol.asyncDispose]();
  }, 300_000);
  return () => {
    started ??= start();
    return started;
  };
}

function skip(name: string, reason: string, declare: () => void): void {
  process.stderr.write(`e2e: the tests of "${name}" are skipped: ${reason}\n`);
  describe.skip(name, () => {
    declare();
    // Jest rejects a group without tests.
    test('is skipped', () => undefined);
  });
}
