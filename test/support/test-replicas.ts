import { afterAll, beforeAll } from '@jest/globals';
import { createTestApp, type TestApp } from './test-app.ts';
import type { TestSettings } from './test-settings.ts';

/** Replicas for all tests of a file, one for each of the settings: they share the database and the data directory of the first. */
export function testReplicas<const S extends readonly TestSettings[]>(
  ...settings: S
): { readonly [K in keyof S]: TestApp } {
  const apps: TestApp[] = [];
  beforeAll(async () => {
    for (const own of settings) {
      const [first] = apps;
      const shared = first ? { database: first.database, dataDir: first.dataDir } : {};
      apps.push(await createTestApp({ ...shared, settings: own }));
    }
  });
  afterAll(async () => {
    for (const app of apps.toReversed()) await app[Symbol.asyncDispose]();
  });
  return apps as unknown as { readonly [K in keyof S]: TestApp };
}
