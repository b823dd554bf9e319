import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/** The used part of the output of `jest --json`. */
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
  /** Including failures outside the tests of the file. */
  readonly message: string;
  readonly assertionResults: readonly TestResult[];
}

interface TestResult {
  readonly status: string;
  readonly fullName: string;
  readonly failureMessages?: readonly string[];
}

/** The runs are of different files. */
export function joinResults(runs: readonly TestResults[]): TestResults {
  const sum = (count: (run: TestResults) => number): number => runs.reduce((total, run) => total + count(run), 0);
  return {
    numPassedTests: sum((run) => run.numPassedTests),
    numFailedTests: sum((run) => run.numFailedTests),
    numRuntimeErrorTestSuites: sum((run) => run.numRuntimeErrorTestSuites),
    testResults: runs.flatMap((run) => run.testResults),
  };
}

/** Folders with tests of one process, of pure rules and of guarantees against data loss: a failure is a fault, however rare it is. */
const finalFolders = ['src', 'test/contracts', 'test/durability', 'test/faults'];
/** More failures than this have a common cause. */
const maxRepeatedFiles = 5;

/**
 * The files, relative to `root`, whose failures may be due to the load of the machine: tests that start servers, clients and browsers and
 * wait for them. Empty if another file failed as well, or if many files did.
 */
export function listRepeatable(results: TestResults, root: string): string[] {
  const failed = [...new Set(results.testResults.filter(isFailed).map(({ name }) => path.relative(root, name)))];
  const isFinal = (file: string): boolean => finalFolders.some((folder) => file.startsWith(`${folder}/`));
  return failed.length > maxRepeatedFiles || failed.some(isFinal) ? [] : failed;
}

/** A repeated file has the results of its repetition. `passedLater` names the failed tests whose whole file passed when it was repeated. */
export function mergeRepeated(first: TestResults, repeated: TestResults): TestResults & { passedLater: string[] } {
  const last = new Map(repeated.testResults.map((file) => [file.name, file]));
  const passedFiles = first.testResults.filter((file) => isFailed(file) && last.get(file.name)?.status === 'passed');
  const passedLater = passedFiles.flatMap((file) =>
    listFailed(file).map(({ fullName }) => `${file.name}: ${fullName}`),
  );
  return { ...countTests(first.testResults.map((file) => last.get(file.name) ?? file)), passedLater };
}

function countTests(testResults: readonly FileResult[]): TestResults {
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const failedTests = tests.filter(({ status }) => status === 'failed').length;
  return {
    numPassedTests: tests.filter(({ status }) => status === 'passed').length,
    numFailedTests: failedTests,
    // Each failed test counts as one failure.
    numRuntimeErrorTestSuites: testResults.filter(isFailed).flatMap(listFailed).length - failedTests,
    testResults,
  };
}

const describedChars = 1_500;

/** Each failed test with the beginning of its failure message, for the end of a long log. */
export function describeFailures(results: TestResults, root: string): string[] {
  return results.testResults.filter(isFailed).flatMap((file) =>
    listFailed(file).map(({ failureMessages = [], fullName }) => {
      const text = stripVTControlCharacters(failureMessages.join('\n')).slice(0, describedChars);
      return `FAILED ${path.relative(root, file.name)}: ${fullName}\n${text.replace(/^/gm, '  ')}`;
    }),
  );
}

/** A failure outside the tests of the file, while loading or in a hook, counts as one failed test. */
function listFailed({ assertionResults, message }: FileResult): TestResult[] {
  const failed = assertionResults.filter(({ status }) => status === 'failed');
  return failed.length > 0 ? failed : [{ status: 'failed', fullName: '(the file)', failureMessages: [message] }];
}

function isFailed({ status }: FileResult): boolean {
  return status === 'failed';
}
