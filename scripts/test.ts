import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { CommandFailedError, ToolUnavailableError } from '../e2e/toolchain/command.ts';
import { ensureToolchain, type ToolName } from '../e2e/toolchain/toolchain.ts';

// `npm test`: makes the tools that the tests need, then runs the static checks and every test. Arguments go to Jest.

const tools: readonly ToolName[] = [
  'test-provider',
  'pulumi-3.255',
  'pulumi-3.200',
  'versitygw',
  'lossy-disk',
  'minio',
  'redis-server',
  'faketime',
  'caddy',
  'schemathesis',
];
const inCi = (process.env['CI'] ?? '') !== '';

/** Makes the tools. One that this machine cannot have leaves its tests out, except in CI, where that is a failure. */
async function makeTools(): Promise<boolean> {
  console.error('Tools for the tests: the first time takes up to a quarter of an hour, then they are kept.');
  for (const tool of tools) {
    try {
      await ensureToolchain({ only: [tool] });
    } catch (error) {
      if (!(error instanceof ToolUnavailableError || error instanceof CommandFailedError)) throw error;
      if (inCi || error instanceof CommandFailedError) {
        console.error(error.message);
        return false;
      }
      console.error(`Tests with ${tool} are left out: ${error.message}`);
    }
  }
  return true;
}

function npmRun(script: string, args: readonly string[] = []): boolean {
  const { status } = spawnSync('npm', ['run', '--silent', script, '--', ...args], {
    cwd: path.join(import.meta.dirname, '..'),
    stdio: 'inherit',
  });
  return status === 0;
}

if (await makeTools()) {
  // Both, whatever the first says: one run should tell all that is wrong.
  const checked = npmRun('check:static');
  const tested = npmRun('jest', process.argv.slice(2));
  if (!checked) console.error('The static checks failed: see above, or run npm run check:static');
  if (!checked || !tested) process.exitCode = 1;
} else {
  process.exitCode = 1;
}
