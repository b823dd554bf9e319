import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { ToolUnavailableError } from '../testkit/toolchain/command.ts';
import { makeTools, type ToolName } from '../testkit/toolchain/toolchain.ts';

// `npm test`: builds or installs the tools that the tests need, then runs the static checks and all tests except those
// of the extra run. `npm run test:extra`: runs the tests whose tools take long to build. Arguments are passed to Jest.

const everyRun: readonly ToolName[] = [
  'test-provider',
  'pulumi-3.255',
  'versitygw',
  'lossy-disk',
  'redis-server',
  'faketime',
  'caddy',
  'schemathesis',
];
const extraRun: readonly ToolName[] = ['test-provider', 'pulumi-3.255', 'pulumi-3.200', 'minio', ...everyRun.slice(4)];

const inCi = (process.env['CI'] ?? '') !== '';
const extra = process.argv.includes('--extra');
const jestArguments = process.argv.slice(2).filter((argument) => argument !== '--extra');

/** Prepares the tools. If one is unavailable on this machine, its tests are skipped; in CI that is a failure. */
async function prepareTools(): Promise<boolean> {
  let ready = true;
  for (const [tool, outcome] of await makeTools(extra ? extraRun : everyRun)) {
    if ('path' in outcome) continue;
    const { error } = outcome;
    if (inCi || !(error instanceof ToolUnavailableError)) {
      console.error(error.message);
      ready = false;
    } else {
      console.error(`Tests with ${tool} are skipped: ${error.message}`);
    }
  }
  return ready;
}

function npmRun(script: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): boolean {
  const { status } = spawnSync('npm', ['run', '--silent', script, '--', ...args], {
    cwd: path.join(import.meta.dirname, '..'),
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  return status === 0;
}

if (!(await prepareTools())) {
  process.exitCode = 1;
} else if (extra) {
  const passed = npmRun('jest', jestArguments, { HOLDFAST_TEST_EXTRA: '1', HOLDFAST_TEST_S3: 'minio' });
  if (!passed) process.exitCode = 1;
} else {
  // Run both even if the first fails, so that one run reports all problems.
  const checked = npmRun('check:static');
  const tested = npmRun('jest', jestArguments);
  if (!checked) console.error('The static checks failed: see above, or run npm run check:static');
  console.error(
    'Not in this run: Pulumi CLI 3.200, and MinIO as the S3 server (blob store, outages, faults). npm run test:extra runs them;\n' +
      'it builds both once, which takes about 15 minutes on two cores.',
  );
  if (!checked || !tested) process.exitCode = 1;
}
