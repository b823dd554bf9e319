import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from 'jest';
import { bundleServer } from './testkit/bundles/bundled-server.ts';
import { useMemoryFolder } from './testkit/memory-folder.ts';

// Read by testkit/holdfast-program.ts in the processes that run tests.
process.env['HOLDFAST_TEST_PROGRAM'] ??= await bundleServer();

useMemoryFolder();

// Read by testkit/reference-states.ts. Only for this run.
const references = join(tmpdir(), `holdfast-references-${randomUUID()}`);
process.env['HOLDFAST_TEST_REFERENCES'] ??= references;
process.once('exit', () => rmSync(references, { recursive: true, force: true }));

// Node loads modules, not Jest: testkit/native-jest. Sources need no transform, because they have only erasable types.
const base = {
  testEnvironment: '<rootDir>/testkit/native-jest/native-environment.ts',
  runtime: '<rootDir>/testkit/native-jest/native-runtime.ts',
  transform: {},
} satisfies Config;

const withDatabase = {
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  setupFilesAfterEnv: ['<rootDir>/test/support/leak-guard.ts'],
} satisfies Config;

/**
 * The extra run has the files `*.extra.test.ts`, which need a tool that `npm test` omits because it takes long to
 * build.
 */
const extra = process.env['HOLDFAST_TEST_EXTRA'] === '1';

function testsIn(folder: string): Pick<Config, 'testMatch'> {
  const files = `<rootDir>/${folder}/**/*`;
  return { testMatch: extra ? [`${files}.extra.test.ts`] : [`${files}.test.ts`, '!**/*.extra.test.ts'] };
}

const config: Config = {
  // Every file has its own database, so files can run in parallel. The shared Postgres has connections for eight.
  maxWorkers: Math.min(availableParallelism(), 8),
  // Workers keep the test code of each file, and what tests leave behind. This is looked at between files; a new worker starts
  // then.
  workerIdleMemoryLimit: '1GB',
  testSequencer: '<rootDir>/testkit/slow-first.ts',
  // Each concurrent test of a file runs several programs at once.
  maxConcurrency: Math.max(2, availableParallelism()),
  // Generous, so that tests do not fail on a busy machine.
  testTimeout: 600_000,
  projects: [
    { ...base, displayName: 'unit', ...testsIn('src') },
    { ...base, ...withDatabase, displayName: 'integration', ...testsIn('test/integration') },
    { ...base, ...withDatabase, displayName: 'contracts', ...testsIn('test/contracts') },
    { ...base, displayName: 'deploy', ...testsIn('test/deploy') },
    { ...base, displayName: 'durability', ...testsIn('test/durability') },
    { ...base, displayName: 'faults', ...testsIn('test/faults') },
    { ...base, displayName: 'kubernetes', ...testsIn('test/kubernetes') },
    { ...base, displayName: 'abuse', ...testsIn('test/abuse') },
    { ...base, displayName: 'e2e', ...testsIn('e2e') },
    {
      ...base,
      displayName: 'e2e-cluster',
      globalSetup: '<rootDir>/e2e/cluster/global-setup.ts',
      globalTeardown: '<rootDir>/e2e/cluster/global-teardown.ts',
      setupFiles: ['<rootDir>/e2e/cluster/environment.ts'],
      ...testsIn('e2e'),
      // These stop the server they test or choose its settings; test/faults does that with a cluster. The last ones are about the output
      // of the CLI, which no replica or store changes.
      testPathIgnorePatterns: [
        '/(browser-login|web-[a-z]+|dashboard-updates|killed-server|checkpoint-modes|lock-queue-holds|oidc-login|revoked-token|client-expectations|config-commands|stack-commands|stack-outputs)(\\.extra)?\\.test\\.ts$',
      ],
    },
  ],
};

export default config;
