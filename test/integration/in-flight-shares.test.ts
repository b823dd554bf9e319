import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { openGatedBlobs } from '../support/gated-blobs.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, deployment, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp, type TestResponse } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { head, WireServer } from '../support/wire.ts';

const mib = 1024 * 1024;
const budget = 4 * mib;
const budgetSettings = {
  inFlightBytes: budget,
  HOLDFAST_REDIS_IN_FLIGHT_BYTES: String(budget),
  HOLDFAST_INLINE_BYTES: '1',
};

let app: TestApp;
let directory: string | null = null;
afterEach(async () => {
  await app?.[Symbol.asyncDispose]();
  if (directory) await rm(directory, { recursive: true, force: true });
  directory = null;
});

/** A deployment of about this size that does not compress. */
function incompressible(bytes: number): Buffer {
  return Buffer.from(JSON.stringify(deployment(1, randomBytes(bytes / 4).toString('hex'))));
}

/** Body bytes currently on their way to workers. */
async function held(): Promise<number> {
  await app.context.payloads.check(60_000);
  return app.context.payloads.bytesHeld();
}

/**
 * A checkpoint of which `bytes` have been sent, chunked unless it states its length; `send` continues a chunked one.
 */
async function begin(server: WireServer, stack: TestStack, bytes: number, declared: number | null = null) {
  const update = await startUpdate(app, stack);
  const connection = server.connect();
  const headers = {
    Authorization: update.lease,
    Accept: 'application/vnd.pulumi+9',
    'Content-Type': 'application/json',
    ...(declared === null ? { 'Transfer-Encoding': 'chunked' } : {}),
  };
  const send = (data: Buffer): Promise<void> =>
    connection.write(Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]));
  await connection.write(head('PATCH', `${update.path}/checkpoint`, { headers, length: declared }));
  const data = incompressible(bytes).subarray(0, bytes);
  await (declared === null ? send(data) : connection.write(data));
  await until(async () => (await held()) >= bytes, 'the budget is full');
  return { connection, send };
}

/** A checkpoint that is too large to be committed by the API itself. */
async function save(stack: TestStack, bytes: number): Promise<TestResponse> {
  const update = await startUpdate(app, stack);
  return app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: incompressible(bytes) });
}

test('a stalled sender loses its budget to others that need it', async () => {
  app = await createTestApp({ settings: budgetSettings });
  const server = await WireServer.listen(app);
  const [silent, other] = [await createStack(app), await createStack(app)];
  const { connection } = await begin(server, silent, 4 * mib - 1, 4 * mib);
  // As the CLI does: it repeats the call a few times.
  let answer = await save(other, 600_000);
  for (let attempt = 1; attempt < 3 && answer.status === 503; attempt++)
    answer = await save(await createStack(app), 600_000);
  expect(answer.status).toBe(204);
  expect(await connection.answer()).toMatchObject({ status: 503, json: { code: 503 } });
  connection.destroy();
  await until(async () => (await held()) === 0, 'the whole budget is free');
});

test('a sender of unknown size that fills the budget yields to another organization, however busy it is', async () => {
  app = await createTestApp({ settings: budgetSettings });
  const server = await WireServer.listen(app);
  const [busy, other] = [await createStack(app), await createStack(app)];
  const { connection, send } = await begin(server, busy, 5 * mib);
  const sending = setInterval(() => void send(Buffer.alloc(64 * 1024, 0x20)), 200);
  try {
    expect((await save(other, 600_000)).status).toBe(204);
    expect(await exportedNames(app, other)).toHaveLength(1);
    expect(await connection.answer()).toMatchObject({ status: 503 });
  } finally {
    clearInterval(sending);
    connection.destroy();
  }
});

test('an organization with many bodies waiting for workers leaves budget for another one', async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'holdfast-budget-'));
  const gated = await openGatedBlobs(directory);
  app = await createTestApp({ settings: budgetSettings, overrides: { blobs: gated.blobs } });
  const first = await createStack(app);
  const stacks = [first];
  for (let index = 1; index < 8; index++) {
    const name = `dev${index}`;
    await app.call('POST', `/api/stacks/${first.organization}/proj`, { auth: first.auth, body: { stackName: name } });
    stacks.push({ ...first, stack: name, path: `/api/stacks/${first.organization}/proj/${name}` });
  }
  const other = await createStack(app);
  gated.shut();
  try {
    const many = stacks.map((stack) => save(stack, 900_000));
    const refused: TestResponse[] = [];
    for (const each of many) void each.then((answer) => answer.status === 503 && refused.push(answer));
    // Each is either rejected or received completely, so the usage is stable.
    const isFull = async () => refused.length > 0 && (await held()) >= (stacks.length - refused.length) * 900_000;
    await until(isFull, 'the budget is used up to their limit');
    const before = await held();
    const saved = save(other, 600_000);
    await until(async () => (await held()) >= before + 500_000, 'the other one is let in');
    expect(refused[0]?.headers['retry-after']).toBeDefined();
    gated.open();
    expect((await saved).status).toBe(204);
    const answers = await Promise.all(many);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204, 503]));
  } finally {
    gated.open();
  }
  await until(async () => (await held()) === 0, 'the whole budget is free');
});
