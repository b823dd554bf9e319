import { describe, expect, test } from '@jest/globals';
import {
  describeFailures,
  type FileResult,
  joinResults,
  listRepeatable,
  mergeRepeated,
  type TestResults,
} from '../../testkit/test-results.ts';

const file = (name: string, tests: Record<string, string>, status?: string): FileResult => ({
  name: `/repo/${name}`,
  message: '',
  status: status ?? (Object.values(tests).includes('failed') ? 'failed' : 'passed'),
  assertionResults: Object.entries(tests).map(([fullName, each]) => ({ fullName, status: each })),
});

const results = (...testResults: FileResult[]): TestResults => {
  const count = (status: string): number =>
    testResults.flatMap(({ assertionResults }) => assertionResults).filter((each) => each.status === status).length;
  return {
    numPassedTests: count('passed'),
    numFailedTests: count('failed'),
    numRuntimeErrorTestSuites: testResults.filter(
      (each) => each.status === 'failed' && !each.assertionResults.some(({ status }) => status === 'failed'),
    ).length,
    testResults,
  };
};

const passed = file('e2e/a.test.ts', { one: 'passed', two: 'passed' });
const failed = file('e2e/b.test.ts', { three: 'passed', four: 'failed' });

describe('files that are repeated', () => {
  test('failed ones', () => {
    expect(listRepeatable(results(passed, failed), '/repo')).toEqual(['e2e/b.test.ts']);
    expect(listRepeatable(results(passed), '/repo')).toEqual([]);
  });

  test.each(['src/a.test.ts', 'test/contracts/a.test.ts', 'test/durability/a.test.ts', 'test/faults/a.test.ts'])(
    'none if %s failed as well',
    (name) => {
      expect(listRepeatable(results(failed, file(name, { five: 'failed' })), '/repo')).toEqual([]);
    },
  );

  test('none if many failed', () => {
    const many = Array.from({ length: 6 }, (_, at) => file(`e2e/${at}.test.ts`, { one: 'failed' }));
    expect(listRepeatable(results(...many.slice(1)), '/repo')).toHaveLength(5);
    expect(listRepeatable(results(...many), '/repo')).toEqual([]);
  });
});

test('failures are described with their file, their test and the beginning of the message', () => {
  const failures = {
    status: 'failed',
    fullName: 'four',
    failureMessages: [`\u001b[31mexpected 1\u001b[0m${'x'.repeat(9_000)}`],
  };
  const described = describeFailures(results(passed, { ...failed, assertionResults: [failures] }), '/repo');
  expect(described).toHaveLength(1);
  expect(described[0]).toMatch(/^FAILED e2e\/b\.test\.ts: four\n {2}expected 1x+$/);
  expect(described[0]?.length).toBeLessThan(2_000);
});

test('a file that failed outside its tests is described with the reason', () => {
  const broken = { ...file('e2e/c.test.ts', {}, 'failed'), message: '\u001b[1mCannot find module\u001b[0m' };
  const torn = { ...file('e2e/d.test.ts', { one: 'passed' }, 'failed'), message: 'afterAll: in use' };
  expect(describeFailures(results(passed, broken, torn), '/repo')).toEqual([
    'FAILED e2e/c.test.ts: (the file)\n  Cannot find module',
    'FAILED e2e/d.test.ts: (the file)\n  afterAll: in use',
  ]);
});

test('runs of different files count as one', () => {
  const broken = file('e2e/c.test.ts', {}, 'failed');
  expect(joinResults([results(passed), results(failed, broken)])).toEqual(results(passed, failed, broken));
});

describe('results of both runs', () => {
  test('a test that passed when repeated is named and counts as passed', () => {
    const repeated = results(file('e2e/b.test.ts', { three: 'passed', four: 'passed' }));
    expect(mergeRepeated(results(passed, failed), repeated)).toMatchObject({
      numPassedTests: 4,
      numFailedTests: 0,
      passedLater: ['/repo/e2e/b.test.ts: four'],
    });
  });

  test('a file of which another test failed when repeated counts as failed', () => {
    const repeated = results(file('e2e/b.test.ts', { three: 'failed', four: 'passed' }));
    expect(mergeRepeated(results(passed, failed), repeated)).toMatchObject({
      numPassedTests: 3,
      numFailedTests: 1,
      passedLater: [],
    });
  });

  test('of two files, only the one that failed again is described, with its last reason', () => {
    const withReason = (name: string, reason: string): FileResult => ({
      ...file(name, {}, 'failed'),
      assertionResults: [{ status: 'failed', fullName: 'four', failureMessages: [reason] }],
    });
    const first = results(passed, withReason('e2e/b.test.ts', 'first'), withReason('e2e/c.test.ts', 'once'));
    const again = results(withReason('e2e/b.test.ts', 'second'), file('e2e/c.test.ts', { four: 'passed' }));
    const merged = mergeRepeated(first, again);
    expect(describeFailures(merged, '/repo')).toEqual(['FAILED e2e/b.test.ts: four\n  second']);
    expect(merged).toMatchObject({ numPassedTests: 3, numFailedTests: 1, passedLater: ['/repo/e2e/c.test.ts: four'] });
  });

  test('a file that was cut short counts the tests that ran when it was repeated', () => {
    const again = results(file('e2e/b.test.ts', { three: 'passed', four: 'passed', five: 'passed' }));
    expect(mergeRepeated(results(passed, failed), again)).toMatchObject({ numPassedTests: 5, numFailedTests: 0 });
  });

  test('a file that failed outside its tests and passed when repeated', () => {
    const torn = file('e2e/d.test.ts', { one: 'passed' }, 'failed');
    const merged = mergeRepeated(results(torn), results(file('e2e/d.test.ts', { one: 'passed' })));
    expect(merged).toMatchObject({ numPassedTests: 1, numFailedTests: 0, numRuntimeErrorTestSuites: 0 });
    expect(merged.passedLater).toEqual(['/repo/e2e/d.test.ts: (the file)']);
  });

  test('a file that was not repeated counts as failed', () => {
    expect(mergeRepeated(results(failed), results())).toMatchObject({ numFailedTests: 1, passedLater: [] });
  });

  test('a file that could not be run', () => {
    const broken = results(passed, file('e2e/c.test.ts', {}, 'failed'));
    expect(mergeRepeated(broken, results(file('e2e/c.test.ts', { one: 'passed', two: 'passed' })))).toMatchObject({
      numPassedTests: 4,
      numRuntimeErrorTestSuites: 0,
      passedLater: ['/repo/e2e/c.test.ts: (the file)'],
    });
    expect(mergeRepeated(broken, broken)).toMatchObject({ numRuntimeErrorTestSuites: 1 });
  });
});
