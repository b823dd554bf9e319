import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll } from '@jest/globals';
import { type AdminRun, runHoldfast } from './admin.ts';
import { importEnv } from './import-run.ts';
import { ok, type TestStack } from './state.ts';
import { type TestApp, testApp } from './test-app.ts';

type Run = AdminRun & { readonly text: string };

/** Two servers for all tests of a file, and a directory for archives of the first. */
export function archiveEnds() {
  const source = testApp();
  const target = testApp();
  const home = mkdtempSync(path.join(tmpdir(), 'holdfast-archive-'));
  afterAll(() => rmSync(home, { recursive: true, force: true }));
  return { source, target, home, organization: (name: string) => organizationOf({ source, target, home }, name) };
}

interface Ends {
  readonly source: TestApp;
  readonly target: TestApp;
  readonly home: string;
}

/** An organization at both ends. */
async function organizationOf({ home, source, target }: Ends, name: string) {
  const auth = `token ${await source.createUser(name, 'admin')}`;
  const authHere = `token ${await target.createUser(name, 'admin')}`;
  const directory = path.join(home, name);
  const env = (app: TestApp, others: NodeJS.ProcessEnv) => ({
    ...importEnv(app, ''),
    PULUMI_CONFIG_PASSPHRASE: 'correct horse',
    ...others,
  });
  const run = async (app: TestApp, others: NodeJS.ProcessEnv, ...words: string[]): Promise<Run> => {
    const ended = await runHoldfast(env(app, others), ...words);
    return { ...ended, text: ended.stdout + ended.stderr };
  };
  const exportWords = ['export', '--organization', name, '--archive', directory];
  const importWords = ['import', '--from', 'archive', directory, '--organization', name];
  return {
    ...{ auth, authHere, directory, exportWords },
    exportEnv: () => env(source, {}),
    createStack: async (stack: string, body = {}): Promise<TestStack> => {
      await ok(source.call('POST', `/api/stacks/${name}/proj`, { auth, body: { stackName: stack, ...body } }));
      return { auth, organization: name, project: 'proj', stack, path: `/api/stacks/${name}/proj/${stack}` };
    },
    export: (...options: string[]) => run(source, {}, ...exportWords, ...options),
    exportWith: (others: NodeJS.ProcessEnv, ...options: string[]) => run(source, others, ...exportWords, ...options),
    import: (...options: string[]) => run(target, {}, ...importWords, ...options),
    /** To and from a folder of the CLI. */
    exportFolder: (location: string, ...options: string[]) =>
      run(source, {}, 'export', '--organization', name, '--to', location, ...options),
    importFolder: (location: string, ...options: string[]) =>
      run(target, {}, 'import', '--from', location, '--organization', name, ...options),
    importWith: (others: NodeJS.ProcessEnv, ...options: string[]) => run(target, others, ...importWords, ...options),
    here: async (call: string) =>
      (await ok(target.call('GET', `/api/stacks/${name}/${call}`, { auth: authHere }))).json,
    there: async (call: string) => (await ok(source.call('GET', `/api/stacks/${name}/${call}`, { auth }))).json,
  };
}
