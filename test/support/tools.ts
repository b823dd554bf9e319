import { describe } from '@jest/globals';
import { ensureToolchain, type ToolName } from '../../testkit/toolchain/toolchain.ts';

/** The reason is also printed; null when the tests can run. Throws in CI instead. */
async function reasonToSkip(tools: readonly ToolName[]): Promise<string | null> {
  try {
    await ensureToolchain({ only: [...tools] });
    return null;
  } catch (error) {
    if (process.env['CI']) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`skipping tests with ${tools.join(' and ')}: ${reason}\n`);
    return reason;
  }
}

/** Skips the tests where the tools are not available. */
export async function describeWithTools(name: string, tools: readonly ToolName[], define: () => void): Promise<void> {
  if ((await reasonToSkip(tools)) === null) describe(name, define);
  else describe.skip(name, define);
}

/** Prints a message if not. */
export async function hasTools(tools: readonly ToolName[]): Promise<boolean> {
  return (await reasonToSkip(tools)) === null;
}
