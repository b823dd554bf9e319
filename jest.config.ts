import { availableParallelism } from 'node:os';
import type { Config } from 'jest';

const base = {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2024', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
  },
} satisfies Config;

const withDatabase = {
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  setupFilesAfterEnv: ['<rootDir>/test/support/leak-guard.ts'],
} satisfies Config;

/**
 * The extra run has the files that need a tool which `npm test` does without, because it takes long to build. All of them end in
 * `.extra.test.ts`.
 */
const extra = process.env['HOLDFAST_TEST_EXTRA'] === '1';

function testsIn(folder: string): Pick<Config, 'testMatch'> {
  const files = `<rootDir>/${folder}/**/*`;
  return { testMatch: extra ? [`${files}.extra.test.ts`] : [`${files}.test.ts`, '!**/*.extra.test.ts'] };
}

const config: Config = {
  // Every file has a database of its own, so all may run at once; the shared Postgres has connections for eight.
  maxWorkers: Math.min(availableParallelism(), 8),
  // Each of a file's concurrent tests runs several programs at once.
  maxConcurrency: Math.max(2, availableParallelism()),
  // Not a measure of speed: a machine that does much else at once must not fail for it.
  testTimeout: 120_000,
  projects: [
    { ...base, displayName: 'unit', ...testsIn('src') },
    { ...base, ...withDatabase, displayName: 'integration', ...testsIn('test/integration') },
    { ...base, ...withDatabase, displayName: 'contracts', ...testsIn('test/contracts') },
    { ...base, displayName: 'durability', ...testsIn('test/durability') },
    { ...base, displayName: 'faults', ...testsIn('test/faults') },
    { ...base, displayName: 'abuse', ...testsIn('test/abuse') },
    { ...base, displayName: 'e2e', ...testsIn('e2e') },
    {
      ...base,
      displayName: 'e2e-cluster',
      globalSetup: '<rootDir>/e2e/cluster/global-setup.ts',
      globalTeardown: '<rootDir>/e2e/cluster/global-teardown.ts',
      setupFiles: ['<rootDir>/e2e/cluster/environment.ts'],
      ...testsIn('e2e'),
      // They end the server they test, or choose its settings; test/faults does that to a cluster.
      testPathIgnorePatterns: ['/(killed-server|checkpoint-modes|revoked-token)(\\.extra)?\\.test\\.ts$'],
    },
  ],
};

export default config;
