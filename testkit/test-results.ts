import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/** What `jest --json` writes, as far as it is used here. */
export interface TestResults {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  /** Files that could not be run. */
  readonly numRuntimeErrorTestSuites: number;
  readonly testResults: readonly FileResult[];
}

export interface FileResult {
  /** Absolute path. */
  readonly name: string;
  readonly status: string;
  readonly assertionResults: readonly TestResult[];
}

interface TestResult {
  readonly status: string;
  readonly fullName: string;
  readonly failureMessages?: readonly string[];
}

/** The results of several runs, of different files, as those of one. */
export function joinResults(runs: readonly TestResults[]): TestResults {
  const sum = (count: (run: TestResults) => number): number => runs.reduce((total, run) => total + count(run), 0);
  return {
    numPassedTests: sum((run) => run.numPassedTests),
    numFailedTests: sum((run) => run.numFailedTests),
    numRuntimeErrorTestSuites: sum((run) => run.numRuntimeErrorTestSuites),
    testResults: runs.flatMap((run) => run.testResults),
  };
}

/** Tests of one process, of pure rules and of what must never be lost: a failure is a fault, however seldom it is. */
const finalFolders = ['src', 'test/contracts', 'test/durability', 'test/faults'];
/** More failures than this have a cause in common. */
const maxRepeatedFiles = 3;

/**
 * The files, relative to `root`, whose failures may be due to the load of the machine: tests that start servers, clients and
 * browsers and wait for them. Empty if another file failed as well, or if many did.
 */
export function listRepeatable(results: TestResults, root: string): string[] {
  const failed = [...new Set(results.testResults.filter(isFailed).map(({ name }) => path.relative(root, name)))];
  const isFinal = (file: string): boolean => finalFolders.some((folder) => file.startsWith(`${folder}/`));
  return failed.length > maxRepeatedFiles || failed.some(isFinal) ? [] : failed;
}

/**
 * The results of both runs as those of one. A test that failed counts as passed if its file passed as a whole when it was
 * repeated. `passedLater` names these tests.
 */
export function mergeRepeated(first: TestResults, repeated: TestResults): TestResults & { passedLater: string[] } {
  const stillFailed = new Set(repeated.testResults.filter(isFailed).map(({ name }) => name));
  const ran = new Set(repeated.testResults.map(({ name }) => name));
  const hasPassed = (file: FileResult): boolean => isFailed(file) && ran.has(file.name) && !stillFailed.has(file.name);
  const passedFiles = first.testResults.filter(hasPassed);
  const failuresOf = (file: FileResult): string[] =>
    file.assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
  const passedLater = passedFiles.flatMap((file) =>
    (failuresOf(file).length > 0 ? failuresOf(file) : ['(the file)']).map((test) => `${file.name}: ${test}`),
  );
  const passedTests = passedFiles.reduce((sum, file) => sum + failuresOf(file).length, 0);
  const loadedLater = passedFiles.filter(({ assertionResults }) => assertionResults.length === 0);
  const loadedTests = repeated.testResults
    .filter(({ name }) => loadedLater.some((file) => file.name === name))
    .reduce(
      (sum, { assertionResults }) => sum + assertionResults.filter(({ status }) => status === 'passed').length,
      0,
    );
  return {
    ...first,
    numPassedTests: first.numPassedTests + passedTests + loadedTests,
    numFailedTests: first.numFailedTests - passedTests,
    numRuntimeErrorTestSuites: first.numRuntimeErrorTestSuites - loadedLater.length,
    passedLater,
  };
}

const describedChars = 1_500;

/** Each failed test with the beginning of its failure, for the end of a long log. */
export function describeFailures(results: TestResults, root: string): string[] {
  return results.testResults.filter(isFailed).flatMap(({ assertionResults, name }) =>
    assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ failureMessages = [], fullName }) => {
        const text = stripVTControlCharacters(failureMessages.join('\n')).slice(0, describedChars);
        return `FAILED ${path.relative(root, name)}: ${fullName}\n${text.replace(/^/gm, '  ')}`;
      }),
  );
}

function isFailed({ status }: FileResult): boolean {
  return status === 'failed';
}
