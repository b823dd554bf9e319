import { afterAll, beforeAll } from '@jest/globals';
import { runImport } from './import-run.ts';
import { listenBehindFront, type SourceFront } from './source-front.ts';
import { ok, type RunningUpdate, type TestStack } from './state.ts';
import { type TestApp, testApp } from './test-app.ts';
import { complete, saveVerbatim } from './update-calls.ts';

/** Two servers for all tests of a file: stacks are imported from the first, behind a front, into the second. */
export function testEnds() {
  const source = testApp();
  const target = testApp();
  let started: SourceFront | null = null;
  beforeAll(async () => {
    started = await listenBehindFront(source);
  });
  afterAll(async () => started?.[Symbol.asyncDispose]());
  const front = (): SourceFront => {
    if (!started) throw new Error('The front runs during the tests only');
    return started;
  };
  return { source, target, front, organization: (name: string) => organizationOf(source, target, front(), name) };
}

const signature = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270' };

/** An organization at both ends, with a token for each. */
async function organizationOf(source: TestApp, target: TestApp, front: SourceFront, name: string) {
  const token = await source.createUser(name, 'admin');
  const auth = `token ${token}`;
  const authHere = `token ${await target.createUser(name, 'admin')}`;
  return {
    ...{ auth, authHere, token },
    createStack: async (stack: string, tags = {}): Promise<TestStack> => {
      await ok(source.call('POST', `/api/stacks/${name}/proj`, { auth, body: { stackName: stack, tags } }));
      return { auth, organization: name, project: 'proj', stack, path: `/api/stacks/${name}/proj/${stack}` };
    },
    run: (...options: string[]) => runImport(target, { url: front.url, token }, name, ...options),
    here: async (call: string) =>
      (await ok(target.call('GET', `/api/stacks/${name}/${call}`, { auth: authHere }))).json,
  };
}

export const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Encrypts a text at the server of the stack. */
export async function encrypt(app: TestApp, stack: TestStack, plaintext: string): Promise<string> {
  const body = { plaintext: base64(plaintext) };
  return (await ok(app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body }))).json.ciphertext as string;
}

/** A state with a secret, of the service's secrets provider or another. */
export function stateWith(
  stack: Pick<TestStack, 'organization' | 'project' | 'stack'>,
  ciphertext: string,
  version: number,
  provider: object | null = null,
): { version: number; deployment: { resources: object[] } } {
  const { organization: owner, project, stack: name } = stack;
  const urn = (type: string, of: string): string => `urn:pulumi:${name}::${project}::${type}::${of}`;
  const root = { urn: urn('pulumi:pulumi:Stack', `${project}-${name}`), custom: false, type: 'pulumi:pulumi:Stack' };
  const state = { url: 'https://source.example', owner, project, stack: name };
  const stash = { urn: urn('pulumi:index:Stash', 'a'), custom: true, id: 'a', type: 'pulumi:index:Stash' };
  const inputs = { version, key: { ...signature, ciphertext } };
  const deployment = {
    manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' },
    secrets_providers: provider ?? { type: 'service', state },
    resources: [root, { ...stash, parent: root.urn, inputs, outputs: {} }],
  };
  return { version: 3, deployment };
}

/** Runs an update that leaves this state. */
export async function runUpdate(
  app: TestApp,
  stack: TestStack,
  state: object,
  options: {
    readonly message?: string;
    readonly config?: object;
    readonly status?: string;
    readonly during?: (update: RunningUpdate) => Promise<unknown>;
  } = {},
): Promise<void> {
  const { config = {}, during, message = 'change', status } = options;
  const body = { config, metadata: { message, environment: { 'git.head': 'abc' } } };
  const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body }));
  const path = `${stack.path}/update/${json.updateID}`;
  const started = (await ok(app.call('POST', path, { auth: stack.auth, body: {} }))).json;
  const lease = `update-token ${started.token}`;
  const running = { id: json.updateID as string, path, lease, version: started.version as number };
  await ok(saveVerbatim(app, running, 1, state));
  await during?.(running);
  await ok(complete(app, running, status));
}
