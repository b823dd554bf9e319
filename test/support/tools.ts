import { describe } from '@jest/globals';
import { ensureToolchain, type ToolName } from '../../testkit/toolchain/toolchain.ts';

/** Why tests with these tools must be skipped, which is also printed; null when they can run. Throws in CI instead. */
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

/** Defines tests that need tools, and skips them where the tools are not available. */
export async function describeWithTools(name: string, tools: readonly ToolName[], define: () => void): Promise<void> {
  if ((await reasonToSkip(tools)) === null) describe(name, define);
  else describe.skip(name, define);
}

/** Whether the tools are available; prints a message if not. */
export async function hasTools(tools: readonly ToolName[]): Promise<boolean> {
  return (await reasonToSkip(tools)) === null;
}
