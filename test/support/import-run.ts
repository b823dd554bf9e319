import { type AdminRun, runHoldfast } from './admin.ts';
import { masterKeys, type TestApp } from './test-app.ts';

/** The URL of the server that gets the stacks. */
export const targetUrl = 'https://holdfast.example';

/** The environment of an import into `app`. */
export function importEnv(app: TestApp, token: string): NodeJS.ProcessEnv {
  return {
    ...{ PATH: process.env['PATH'], HOLDFAST_DATABASE_URL: app.database.url, HOLDFAST_DATA_DIR: app.dataDir },
    ...{ HOLDFAST_MASTER_KEYS: masterKeys, HOLDFAST_PUBLIC_URL: `${targetUrl}/`, PULUMI_ACCESS_TOKEN: token },
  };
}

/** Runs `holdfast import` into an organization of `app`. */
export async function runImport(
  app: TestApp,
  from: { readonly url: string; readonly token: string },
  organization: string,
  ...options: string[]
): Promise<AdminRun & { readonly text: string }> {
  const words = ['import', '--from', from.url, '--organization', organization, ...options];
  const run = await runHoldfast(importEnv(app, from.token), ...words);
  return { ...run, text: run.stdout + run.stderr };
}
