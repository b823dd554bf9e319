import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { listRepeatable, mergeRepeated, type TestResults } from '../testkit/test-results.ts';
import { ToolUnavailableError } from '../testkit/toolchain/command.ts';
import { makeTools, type ToolName } from '../testkit/toolchain/toolchain.ts';

// `npm test`: builds or installs the tools that the tests need, then runs the static checks and all tests except those
// of the extra run. Files that may have failed because of the load of the machine are repeated once, alone, and named.
// `npm run test:extra`: runs the tests whose tools take long to build. Arguments are passed to Jest.

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

const root = path.join(import.meta.dirname, '..');

function npmRun(script: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): boolean {
  const { status } = spawnSync('npm', ['run', '--silent', script, '--', ...args], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  return status === 0;
}

function readResults(file: string): TestResults | null {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as TestResults) : null;
}

/** Runs the tests; `--outputFile=` gets the results of the run and of what was repeated. */
function runTests(): boolean {
  const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-results-'));
  try {
    const wanted = jestArguments.find((argument) => argument.startsWith('--outputFile='));
    const others = jestArguments.filter((argument) => argument !== wanted && argument !== '--json');
    const resultsIn = (name: string): [string, string[]] => {
      const file = path.join(directory, name);
      return [file, ['--json', `--outputFile=${file}`]];
    };
    const [firstFile, firstArguments] = resultsIn('first');
    const passed = npmRun('jest', [...firstArguments, ...others]);
    let results = readResults(firstFile);
    const repeatable = passed || !results ? [] : listRepeatable(results, root);
    let remained = !passed;
    if (results && repeatable.length > 0) {
      console.error(`\nFAILED, repeated alone: ${repeatable.join(', ')}`);
      const [secondFile, secondArguments] = resultsIn('second');
      const passedLater = npmRun('jest', [...secondArguments, '-i', '--forceExit', '--runTestsByPath', ...repeatable]);
      const repeated = readResults(secondFile);
      if (repeated) {
        const merged = mergeRepeated(results, repeated);
        for (const test of merged.passedLater)
          console.error(`FLAKY, failed once and passed when repeated: ${path.relative(root, test)}`);
        remained = !passedLater || merged.numFailedTests + merged.numRuntimeErrorTestSuites > 0;
        results = merged;
      }
    }
    if (wanted && results) writeFileSync(wanted.slice(wanted.indexOf('=') + 1), JSON.stringify(results));
    return !remained;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

if (!(await prepareTools())) {
  process.exitCode = 1;
} else if (extra) {
  const passed = npmRun('jest', jestArguments, { HOLDFAST_TEST_EXTRA: '1', HOLDFAST_TEST_S3: 'minio' });
  if (!passed) process.exitCode = 1;
} else {
  // Run both even if the first fails, so that one run reports all problems.
  const checked = npmRun('check:static');
  // Here, so that tests that need it do not build it at the same time.
  npmRun('build:web', ['--if-stale']);
  const tested = runTests();
  if (!checked) console.error('The static checks failed: see above, or run npm run check:static');
  console.error(
    'Not in this run: Pulumi CLI 3.200, and MinIO as the S3 server (blob store, outages, faults). npm run test:extra runs them;\n' +
      'it builds both once, which takes about 15 minutes on two cores.',
  );
  if (!checked || !tested) process.exitCode = 1;
}
