import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, test } from '@jest/globals';

const root = join(import.meta.dirname, '../..');

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

/** Runs the files `*.fixture.ts` one after the other in one process. */
function runFixtures(folder: string): Report {
  const config = {
    rootDir: root,
    roots: ['<rootDir>/test/support/native-jest'],
    testMatch: ['**/*.fixture.ts'],
    testEnvironment: '<rootDir>/testkit/native-jest/native-environment.ts',
    runtime: '<rootDir>/testkit/native-jest/native-runtime.ts',
    transform: {},
  };
  const report = join(folder, 'report.json');
  const jest = join(root, 'node_modules/jest/bin/jest.js');
  const { stderr } = spawnSync(
    process.execPath,
    [jest, '-i', '--config', JSON.stringify(config), '--json', '--outputFile', report],
    {
      cwd: root,
      encoding: 'utf8',
      env: {
        ...process.env,
        HOLDFAST_TEST_CHANGED: 'before',
        HOLDFAST_TEST_DELETED: 'before',
        HOLDFAST_TEST_LEFT_FILE: join(folder, 'left'),
      },
    },
  );
  try {
    return JSON.parse(readFileSync(report, 'utf8')) as Report;
  } catch (error) {
    throw new Error(`Jest wrote no report: ${stderr}`, { cause: error });
  }
}

test('test files of one process leave nothing to each other, and none fails unnoticed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-native-jest-'));
  try {
    const files = new Map(
      runFixtures(folder).testResults.map((result) => [
        basename(result.name, '.fixture.ts'),
        {
          failed: result.assertionResults.filter(({ status }) => status !== 'passed').map(({ title }) => title),
          status: result.status,
          message: result.message,
        },
      ]),
    );
    const passed = { status: 'passed', failed: [], message: '' };
    expect(Object.fromEntries(files)).toEqual({
      one: passed,
      another: passed,
      'failing-disposal': {
        status: 'failed',
        failed: ['fails, and so does its disposal'],
        message: expect.stringMatching(/The test fails.*The disposal fails/s),
      },
      'failing-hook': { status: 'failed', failed: [], message: expect.stringContaining('The hook fails') },
      'failing-setup': { status: 'failed', failed: ['passes'], message: expect.stringContaining('The setup fails') },
      'late-rejection': {
        status: 'failed',
        failed: [],
        message: expect.stringContaining('Nobody awaits this after the last test'),
      },
      rejection: {
        status: 'failed',
        failed: ['does not await what fails'],
        message: expect.stringContaining('Nobody awaits this'),
      },
    });
    // Listeners for the exit ran when their files ended.
    expect(readFileSync(join(folder, 'left'), 'utf8')).toBe('ended\nended\n');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
