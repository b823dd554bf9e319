import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import {
  describeFailures,
  joinResults,
  listRepeatable,
  mergeRepeated,
  type TestResults,
} from '../testkit/test-results.ts';
import { ToolUnavailableError } from '../testkit/toolchain/command.ts';
import { makeTools, type ToolName } from '../testkit/toolchain/toolchain.ts';

// `npm test`: builds or installs the tools that the tests need, and runs the static checks and all tests except those of the extra run.
// Tests that need no tools leave processors idle at times, so tools are built with low priority while these tests run. Files that may have
// failed because of the load of the machine are repeated once, alone, and named. `npm run test:extra`: runs the tests whose tools take long
// to build. Arguments are passed to Jest, which then runs once.

const system: readonly ToolName[] = ['redis-server', 'caddy', 'zsh', 'fish', 'schemathesis'];
/** The tools of the first group of tests. */
const firstTools: readonly ToolName[] = ['versitygw', 'oapi-codegen', 'openapi-typescript', ...system];
const laterTools: readonly ToolName[] = [
  'test-provider',
  'pulumi-3.276',
  'lossy-disk',
  'shifted-clock',
  'actionlint',
  'config-checks',
  'chart-tools',
  'kubeconform',
  'kubernetes-schemas',
];
/** In order of preference: the first one can replace the second. Prepared with the later tools. */
const browsers: readonly ToolName[] = ['chromium-headless-shell', 'chromium'];
const extraTools: readonly ToolName[] = ['test-provider', 'pulumi-3.276', 'pulumi-3.142', 'minio', ...system];

const firstProjects = ['integration', 'contracts'];
/** These tests mostly wait: for their own deadlines, and for servers. Their Postgres has enough connections for eight workers. */
const firstWorkers = Math.min(2 * availableParallelism(), 8);
/** These tests wait, too, for command lines and browsers, but each of them starts several processes. */
const laterWorkers = Math.min(Math.ceil(1.5 * availableParallelism()), 8);
const laterProjects = ['deploy', 'durability', 'faults', 'kubernetes', 'abuse', 'e2e', 'e2e-cluster'];

const inCi = (process.env['CI'] ?? '') !== '';
const extra = process.argv.includes('--extra');
const jestArguments = process.argv.slice(2).filter((argument) => argument !== '--extra');

/** Prepares tools. If one is unavailable on this machine, its tests are skipped; in CI that is a failure. */
async function prepareTools(tools: readonly ToolName[]): Promise<boolean> {
  let ready = true;
  for (const [tool, outcome] of await makeTools(tools)) {
    // The tests use another browser, or say why there is none.
    if ('path' in outcome || browsers.includes(tool)) continue;
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

/** Runs a script of package.json. `quietly`: shows its output only when it has ended, because other scripts write meanwhile. */
async function npmRun(
  script: string,
  args: readonly string[] = [],
  { env = {}, quietly = false }: { env?: NodeJS.ProcessEnv; quietly?: boolean } = {},
): Promise<boolean> {
  const output = quietly ? 'pipe' : 'inherit';
  const child = spawn('npm', ['run', '--silent', script, '--', ...args], {
    cwd: root,
    stdio: ['inherit', output, output],
    env: { ...process.env, ...env },
  });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => chunks.push(chunk));
  const [status] = (await once(child, 'close')) as [number | null];
  process.stderr.write(Buffer.concat(chunks));
  return status === 0;
}

function readResults(file: string): TestResults | null {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as TestResults) : null;
}

/** A run of Jest. Its results are null if it did not finish. */
interface TestRun {
  readonly passed: boolean;
  readonly results: TestResults | null;
}

const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-results-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
const wanted = jestArguments.find((argument) => argument.startsWith('--outputFile='));
const others = jestArguments.filter((argument) => argument !== wanted && argument !== '--json');

async function runJest(name: string, args: readonly string[]): Promise<TestRun> {
  const file = path.join(directory, name);
  const passed = await npmRun('jest', ['--json', `--outputFile=${file}`, ...args]);
  return { passed, results: readResults(file) };
}

/** Repeats files that may have failed because of the load. Writes the results of all runs to the file of `--outputFile=`. */
async function conclude(runs: readonly TestRun[]): Promise<boolean> {
  const passed = runs.every((run) => run.passed);
  const ended = runs.flatMap((run) => run.results ?? []);
  let results = joinResults(ended);
  if (ended.length < runs.length) {
    describe(results);
    return false;
  }
  const repeatable = passed ? [] : listRepeatable(results, root);
  let remained = !passed;
  if (repeatable.length > 0) {
    describe(results);
    console.error(`\nFAILED, repeated alone: ${repeatable.join(', ')}`);
    const repeated = await runJest('repeated', ['-i', '--forceExit', '--runTestsByPath', ...repeatable]);
    if (repeated.results) {
      const merged = mergeRepeated(results, repeated.results);
      for (const test of merged.passedLater)
        console.error(`FLAKY, failed once and passed when repeated: ${path.relative(root, test)}`);
      remained = !repeated.passed || merged.numFailedTests + merged.numRuntimeErrorTestSuites > 0;
      results = merged;
    }
  }
  if (remained) describe(results);
  if (wanted) writeFileSync(wanted.slice(wanted.indexOf('=') + 1), JSON.stringify(results));
  return !remained;
}

const described = new Set<string>();

/** Only tests that were not described before: a repetition, which is short, ends with its own failures. */
function describe(results: TestResults): void {
  for (const failure of describeFailures(results, root)) {
    const [test = ''] = failure.split('\n');
    if (!described.has(test)) console.error(`\n${failure}`);
    described.add(test);
  }
}

const notRun: TestRun = { passed: false, results: null };

/**
 * Runs the tests that need no tools while the first tools are built, then the tests that need no CLI while it is built, then the others.
 */
async function runInGroups(preparing: Promise<boolean>): Promise<boolean> {
  const unit = await runJest('unit', ['--selectProjects', 'unit']);
  if (!(await preparing)) return conclude([unit, notRun]);
  const building = prepareTools([...laterTools, ...browsers]);
  const first = await runJest('first', [`--maxWorkers=${firstWorkers}`, '--selectProjects', ...firstProjects]);
  if (!(await building)) return conclude([unit, first, notRun]);
  const later = await runJest('later', [`--maxWorkers=${laterWorkers}`, '--selectProjects', ...laterProjects]);
  return conclude([unit, first, later]);
}

async function runChosen(preparing: Promise<boolean>): Promise<boolean> {
  return (await preparing) && (await prepareTools(laterTools)) && conclude([await runJest('chosen', others)]);
}

if (extra) {
  const env = { HOLDFAST_TEST_EXTRA: '1', HOLDFAST_TEST_S3: 'minio' };
  const passed = (await prepareTools(extraTools)) && (await npmRun('jest', jestArguments, { env }));
  if (!passed) process.exitCode = 1;
} else {
  // Both run even if one fails, so that one run reports all problems.
  const checking = npmRun('check:static', [], { quietly: true });
  const preparing = Promise.all([
    prepareTools(firstTools),
    // Built here, so that tests that need it do not build it at the same time.
    npmRun('build:web', ['--if-stale'], { quietly: true }),
  ]).then(([ready, built]) => {
    // testkit/web-build.ts reads the variable.
    if (built) process.env['HOLDFAST_TEST_WEB'] = 'built';
    return ready;
  });
  const tested = await (others.length === 0 ? runInGroups(preparing) : runChosen(preparing));
  const checked = await checking;
  if (!checked) console.error('The static checks failed: see above, or run npm run check:static');
  console.error(
    'Not in this run: Pulumi CLI 3.142, and MinIO as the S3 server (blob store, outages, faults). npm run test:extra runs them;\n' +
      'it builds both once, which takes about 15 minutes on two cores.',
  );
  if (!checked || !tested) process.exitCode = 1;
}
