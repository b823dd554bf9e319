import { gzipSync } from 'node:zlib';
import { createStack, gzipped, ok, type RunningUpdate, startUpdate, type TestStack } from './state.ts';
import { cliAccept, type TestApp } from './test-app.ts';

/** Its stack or update is ready for the call. */
export interface BodyRoute {
  readonly name: string;
  readonly kind: 'control' | 'payload';
  readonly method: string;
  readonly url: string;
  readonly auth: string;
  /** A body that the route would accept. */
  readonly valid: string;
}

/** In the states that the routes need; rejected calls leave them so. */
export interface Scene {
  readonly idle: TestStack;
  readonly waiting: TestStack & { readonly updatePath: string };
  readonly plain: TestStack & { readonly update: RunningUpdate };
  readonly journal: TestStack & { readonly update: RunningUpdate };
  readonly routes: readonly BodyRoute[];
}

export const routeNames = {
  payload: ['checkpoint', 'checkpointverbatim', 'checkpointdelta', 'journalentries', 'events/batch', 'import'],
  control: [
    'create stack',
    'create update',
    'start',
    'tags',
    'rename',
    'encrypt',
    'decrypt',
    'batch-encrypt',
    'batch-decrypt',
    'log-decryption',
    'renew_lease',
    'complete',
  ],
} as const;
export const allRouteNames = [...routeNames.payload, ...routeNames.control];

/** Big numbers, escapes and odd keys must survive. */
export const baseDocument =
  '{"version":3,"deployment":{"manifest":{"time":"2026-01-01T00:00:00Z","magic":"","version":""},"resources":[],"n":1.0}}';

export async function createScene(app: TestApp): Promise<Scene> {
  const idle = await createStack(app);
  const waiting = await createStack(app);
  const created = await ok(app.call('POST', `${waiting.path}/update`, { auth: waiting.auth, body: {} }));
  const updatePath = `${waiting.path}/update/${created.json.updateID}`;
  const plain = await createStack(app);
  const update = await startUpdate(app, plain);
  await ok(
    app.call('PATCH', `${update.path}/checkpointverbatim`, {
      auth: update.lease,
      ...gzipped(`{"version":3,"untypedDeployment":${baseDocument},"sequenceNumber":1}`),
    }),
  );
  const journalStack = await createStack(app);
  const journal = await startUpdate(app, journalStack, { journal: true });
  const encrypted = await ok(
    app.call('POST', `${idle.path}/encrypt`, { auth: idle.auth, body: { plaintext: 'YQ==' } }),
  );
  const ciphertext = encrypted.json.ciphertext as string;

  const payload = (name: string, method: string, url: string, auth: string, valid: string): BodyRoute => ({
    name,
    kind: 'payload',
    method,
    url,
    auth,
    valid,
  });
  const control = (name: string, method: string, url: string, auth: string, valid: unknown): BodyRoute => ({
    name,
    kind: 'control',
    method,
    url,
    auth,
    valid: JSON.stringify(valid),
  });
  const routes = [
    payload('checkpoint', 'PATCH', `${update.path}/checkpoint`, update.lease, baseDocument),
    payload(
      'checkpointverbatim',
      'PATCH',
      `${update.path}/checkpointverbatim`,
      update.lease,
      `{"version":3,"untypedDeployment":${baseDocument},"sequenceNumber":9}`,
    ),
    payload(
      'checkpointdelta',
      'PATCH',
      `${update.path}/checkpointdelta`,
      update.lease,
      `{"version":3,"checkpointHash":"${'0'.repeat(64)}","sequenceNumber":9,"deploymentDelta":[]}`,
    ),
    payload(
      'journalentries',
      'PATCH',
      `${journal.path}/journalentries`,
      journal.lease,
      '{"entries":[{"version":1,"kind":0,"sequenceID":1,"operationID":1}]}',
    ),
    payload(
      'events/batch',
      'POST',
      `${update.path}/events/batch`,
      update.lease,
      '{"events":[{"sequence":0,"timestamp":1,"cancelEvent":{}}]}',
    ),
    payload('import', 'POST', `${idle.path}/import`, idle.auth, baseDocument),
    control('create stack', 'POST', `/api/stacks/${idle.organization}/proj`, idle.auth, { stackName: 'new' }),
    control('create update', 'POST', `${idle.path}/update`, idle.auth, { name: 'p', metadata: { message: 'm' } }),
    control('start', 'POST', updatePath, waiting.auth, { tags: { a: 'b' } }),
    control('tags', 'PATCH', `${idle.path}/tags`, idle.auth, { a: 'b' }),
    control('rename', 'POST', `${idle.path}/rename`, idle.auth, { newName: 'other' }),
    control('encrypt', 'POST', `${waiting.path}/encrypt`, waiting.auth, { plaintext: 'YQ==' }),
    control('decrypt', 'POST', `${idle.path}/decrypt`, idle.auth, { ciphertext }),
    control('batch-encrypt', 'POST', `${waiting.path}/batch-encrypt`, waiting.auth, { plaintexts: ['YQ=='] }),
    control('batch-decrypt', 'POST', `${idle.path}/batch-decrypt`, idle.auth, { ciphertexts: [ciphertext] }),
    control('log-decryption', 'POST', `${idle.path}/decrypt/log-decryption`, idle.auth, { secretName: 'x' }),
    control('renew_lease', 'POST', `${update.path}/renew_lease`, update.lease, { duration: 300 }),
    control('complete', 'POST', `${update.path}/complete`, update.lease, { status: 'succeeded' }),
  ];
  return {
    idle,
    waiting: { ...waiting, updatePath },
    plain: { ...plain, update },
    journal: { ...journalStack, update: journal },
    routes,
  };
}

export function routeNamed(scene: Scene, name: string): BodyRoute {
  const route = scene.routes.find((candidate) => candidate.name === name);
  if (!route) throw new Error(`No route ${name}`);
  return route;
}

/** Headers of a call to the route. */
export function headersOf(route: BodyRoute, extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { Accept: cliAccept, 'Content-Type': 'application/json', Authorization: route.auth, ...extra };
}

/** Gzip that inflates to `bytes` spaces in a string of JSON. */
export function bomb(bytes: number): Buffer {
  const filler = Buffer.alloc(bytes, 0x20);
  return gzipSync(Buffer.concat([Buffer.from('{"a":"'), filler, Buffer.from('"}')]), { level: 9 });
}
