import { ok, type TestStack } from './state.ts';
import type { TestApp, TestResponse } from './test-app.ts';
import { complete } from './update-calls.ts';

export const environment = { 'git.head': 'ab12'.repeat(10), 'git.dirty': 'false' };
/** Creates an update, or a preview. */
export const create = (app: TestApp, { auth, path }: TestStack, dryRun: boolean, head: object = environment) =>
  app.call('POST', `${path}/update`, { auth, body: { options: { dryRun }, metadata: { environment: head } } });

/** Afterwards, the stack has these outputs; it had `url` and `name`. */
export async function run(
  app: TestApp,
  stack: TestStack,
  outputs: object,
  dryRun: boolean,
  head = environment,
  meanwhile: (updateId: string) => unknown = () => {},
): Promise<TestResponse> {
  const created = await ok(create(app, stack, dryRun, head));
  const path = `${stack.path}/update/${created.json.updateID}`;
  const { json } = await ok(app.call('POST', path, { auth: stack.auth, body: {} }));
  const update = { id: created.json.updateID as string, path, lease: `update-token ${json.token}`, version: 0 };
  const urn = 'urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev';
  const metadata = { urn, op: 'same', old: { outputs: { url: 'hidden', name: 'n' } }, new: { outputs } };
  const other = { ...metadata, urn: `${urn}-other`, new: { outputs: {} } };
  const events = [metadata, other].map((each, sequence) => ({
    ...{ sequence, timestamp: 1 },
    resOutputsEvent: { metadata: each },
  }));
  await ok(app.call('POST', `${path}/events/batch`, { auth: update.lease, body: { events } }));
  await meanwhile(update.id);
  await ok(complete(app, update));
  return created;
}
