import { randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { BundleSecret } from '../../src/shared/bundle/bundle-key.ts';
import { bundleTask } from '../../src/shared/bundle/bundle-repository.ts';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import type { Folder } from '../../src/shared/platform/blobs/folder.ts';
import { keepBundle } from '../../src/workers/bundle/keep-bundle.ts';
import { deployment, ok, type TestStack } from './state.ts';
import type { TestApp } from './test-app.ts';

export const bundlePassphrase = 'correct horse battery';

/** A member that marks a secret value, and what the CLI encrypts: JSON. */
const signature = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270' };

/** Once; an earlier claim ends. */
export async function runBundle(
  app: TestApp,
  location: string,
  options: { open?: () => Promise<Folder>; signal?: AbortSignal; secret?: BundleSecret } = {},
): Promise<unknown> {
  const { open, secret = { passphrase: bundlePassphrase }, signal = new AbortController().signal } = options;
  const task = keepBundle(app.context, { location, secret }, { isPaced: false, ...(open ? { open } : {}) });
  const holder = randomUUID();
  const runs = createBackgroundTaskRepository(app.context.db);
  await runs.claim(bundleTask, holder, { claimSeconds: 600, everySeconds: 0 });
  try {
    return await task.run(signal, { position: null, holder });
  } finally {
    await runs.release(bundleTask, holder);
  }
}

export async function importState(app: TestApp, stack: TestStack, count: number, secret = 'hunter2'): Promise<void> {
  const plaintext = Buffer.from(JSON.stringify(secret)).toString('base64');
  const { json } = await ok(app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body: { plaintext } }));
  const document = deployment(count);
  const [first] = document.deployment['resources'] as { inputs: object }[];
  if (first) first.inputs = { input: { ...signature, ciphertext: json.ciphertext } };
  const { organization: owner, project, stack: name } = stack;
  const state = { url: 'http://localhost:9090', owner, project, stack: name };
  const { manifest, resources } = document.deployment;
  const body = { version: 3, deployment: { manifest, secrets_providers: { type: 'service', state }, resources } };
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body }));
}

interface Checkpoint {
  version: number;
  checkpoint: { stack: string; holdfast?: string; latest: { resources: { urn: string; inputs: object }[] } };
}

/** The state of a stack in a folder. */
export async function readBundled(directory: string, { organization, project, stack }: TestStack): Promise<Checkpoint> {
  const file = path.join(directory, organization, '.pulumi/stacks', project, `${stack}.json`);
  return JSON.parse(await readFile(file, 'utf8')) as Checkpoint;
}

let updatesInBundles = 0;

/** Adds a resource to the state in a folder, as an update of the CLI does. */
export async function updateInBundle(directory: string, at: TestStack, message: string): Promise<void> {
  const { organization, project, stack } = at;
  const root = path.join(directory, organization, '.pulumi');
  const state = await readBundled(directory, at);
  // The CLI writes only the members that it knows.
  delete state.checkpoint.holdfast;
  const { resources } = state.checkpoint.latest;
  const last = resources.at(-1) as { urn: string; inputs: object };
  resources.push({ ...last, urn: `${last.urn}-${message}` });
  // Two within a millisecond have two names.
  const nanoseconds = `${Date.now()}${String(++updatesInBundles).padStart(6, '0')}`;
  const seconds = Math.floor(Date.now() / 1000);
  const history = path.join(root, 'history', project, stack);
  await mkdir(history, { recursive: true });
  const info = { kind: 'update', startTime: seconds, endTime: seconds, message, result: 'succeeded' };
  await writeFile(path.join(history, `${stack}-${nanoseconds}.checkpoint.json`), JSON.stringify(state));
  await writeFile(
    path.join(history, `${stack}-${nanoseconds}.history.json`),
    JSON.stringify({ ...info, environment: {}, config: {}, resourceChanges: {} }),
  );
  await writeFile(path.join(root, 'stacks', project, `${stack}.json`), JSON.stringify(state));
}

/** The text of a file of a bundle. */
export function textOf(name: string, bytes: Buffer): string {
  return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
}
