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

const config: Config = {
  // Every file has a database of its own, so all may run at once; the shared Postgres has connections for eight.
  maxWorkers: Math.min(availableParallelism(), 8),
  // Not a measure of speed: a machine that does much else at once must not fail for it.
  testTimeout: 60_000,
  projects: [
    { ...base, displayName: 'unit', testMatch: ['<rootDir>/src/**/*.test.ts'] },
    { ...base, ...withDatabase, displayName: 'integration', testMatch: ['<rootDir>/test/integration/**/*.test.ts'] },
    { ...base, ...withDatabase, displayName: 'contracts', testMatch: ['<rootDir>/test/contracts/**/*.test.ts'] },
    { ...base, displayName: 'durability', testMatch: ['<rootDir>/test/durability/**/*.test.ts'] },
    { ...base, displayName: 'faults', testMatch: ['<rootDir>/test/faults/**/*.test.ts'] },
    { ...base, displayName: 'abuse', testMatch: ['<rootDir>/test/abuse/**/*.test.ts'] },
    { ...base, displayName: 'e2e', testMatch: ['<rootDir>/e2e/**/*.test.ts'] },
    {
      ...base,
      displayName: 'e2e-cluster',
      globalSetup: '<rootDir>/e2e/cluster/global-setup.ts',
      globalTeardown: '<rootDir>/e2e/cluster/global-teardown.ts',
      setupFiles: ['<rootDir>/e2e/cluster/environment.ts'],
      testMatch: ['<rootDir>/e2e/**/*.test.ts'],
      // They end the server they test, or choose its settings; test/faults does that to a cluster.
      testPathIgnorePatterns: ['/(killed-server|checkpoint-modes|revoked-token)\\.test\\.ts$'],
    },
  ],
};

export default config;
