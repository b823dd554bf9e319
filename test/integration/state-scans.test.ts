import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { ProcedureMeta } from '../../src/api/access/procedures/trpc.ts';
import type { StateScan } from '../../src/api/platform/admission/state-scans.ts';
import { appRouter } from '../../src/api/router.ts';
import { StateReader } from '../../src/shared/state/state-reader.ts';
import { stateReads } from '../../src/web/platform/app/call-link.ts';
import { queryPath, resultOf } from '../support/procedures.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { stateOf } from '../support/state-index.ts';
import { type TestResponse, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const app = testApp();
let stack: TestStack;
let open: StateScan[] = [];
let others = new AbortController();

const urn = 'urn:pulumi:dev::proj::test:index:Bucket::a';

beforeEach(async () => {
  stack = await createStack(app);
  await importState(stack, 3);
  await importState(stack, 4);
});

async function importState(to: TestStack, resources: number, outputs: object = {}): Promise<void> {
  const named = ['a', 'b', 'c', 'd'].slice(0, resources).map((name) => ({ name, outputs }));
  await ok(app.call('POST', `${to.path}/import`, { auth: to.auth, body: stateOf(to, named) }));
}

afterEach(emptyTheQueue);

/** Procedures that read whole states, with the rest of their inputs. The first test fails for one that is missing here. */
const scanning: Record<string, object | (() => object)> = {
  'resources.get': { urn },
  'resources.blame': { urn },
  'resources.graph': {},
  'secrets.reveal': { location: { of: 'resource', urn, part: 'outputs', path: ['key'] } },
  'stacks.get': {},
  'stacks.pending': {},
  'stacks.repair': { headVersion: 2, repairs: [{ index: 0, urn, repair: { action: 'clear' } }] },
  'versions.diff': { from: 1, to: 2 },
  'versions.diffStacks': () => ({ other: ref(), version: 1 }),
  'versions.resources': { version: 1 },
  'versions.restore': { version: 1, headVersion: 2 },
  'versions.text': { version: 1 },
};
const procedures = appRouter._def.procedures as unknown as Record<
  string,
  { readonly _def: { readonly type: string; readonly meta: ProcedureMeta } }
>;

const ref = () => ({ organization: stack.organization, project: stack.project, stack: stack.stack });

function call(name: string, signal?: AbortSignal): Promise<TestResponse> {
  const more = scanning[name];
  const input = { ...ref(), ...(typeof more === 'function' ? more() : more) };
  const isChange = procedures[name]?._def.type === 'mutation';
  const sent = { auth: stack.auth, accept: null, ...(signal && { signal }) };
  return isChange
    ? app.call('POST', `/trpc/${name}`, { ...sent, body: input })
    : app.call('GET', queryPath(name, input), sent);
}

/** What others have under way: all places, and a line as long as it may be. */
async function fillTheQueue(waiting = 100): Promise<void> {
  const reserveMemory = () => Promise.resolve();
  const begin = (userId: string): Promise<void> => {
    const scan = app.context.scans.open({
      ...{ caller: { tokenId: userId, userId }, organization: userId },
      ...{ signal: others.signal, reserveMemory },
    });
    open.push(scan);
    return scan.begin();
  };
  await Promise.all(['a', 'a', 'b', 'b'].map(begin));
  for (let at = 0; at < waiting; at++) void begin(`waiting ${at}`).catch(() => {});
}

function emptyTheQueue(): void {
  others.abort();
  others = new AbortController();
  for (const scan of open) scan.end();
  open = [];
}

test('every procedure that reads whole states is in the table', () => {
  const names = Object.entries(procedures).flatMap(([name, { _def }]) => (_def.meta.cost === 'states' ? [name] : []));
  expect(names.sort()).toEqual(Object.keys(scanning).sort());
});

test('the web UI sends each query that reads whole states as a request of its own', () => {
  const queries = Object.keys(scanning).filter((name) => procedures[name]?._def.type === 'query');
  expect([...stateReads].sort()).toEqual(queries.sort());
});

test.each(Object.keys(scanning))('%s reports a full queue', async (name) => {
  await fillTheQueue();
  const refused = await call(name);
  emptyTheQueue();
  const { data, error } = resultOf(refused);
  // The rest of the page is shown.
  if (name === 'stacks.get') expect(data).toMatchObject({ stack: 'dev', outputs: null });
  else if (name === 'stacks.pending') expect(data).toMatchObject({ isKnown: false });
  else {
    expect(error).toMatchObject({ code: 'SERVICE_UNAVAILABLE', kind: 'unavailable' });
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(refused.json.error.data.retryAfterSeconds).toBe(5);
  }
  const again = resultOf(await call(name));
  if (name === 'stacks.get') expect(again.data.outputs).toEqual([]);
  else if (name === 'stacks.pending') expect(again.data.isKnown).toBe(true);
  // There is no such secret, and no such operation.
  else expect([200, 400, 404]).toContain(again.status);
});

test('calls of one organization do not fill the queue for others, however many tokens it has', async () => {
  const reserveMemory = () => Promise.resolve();
  const refused: unknown[] = [];
  for (let at = 0; at < 110; at++) {
    const caller = { tokenId: `token ${at}`, userId: null };
    const scan = app.context.scans.open({ caller, organization: 'acme', signal: others.signal, reserveMemory });
    open.push(scan);
    void scan.begin().catch((error: unknown) => refused.push(error));
  }
  await until(() => refused.length > 0, 'the queue is full');
  expect(await places()).toEqual({ running: 3, waiting: 100 });
  await ok(call('versions.text'));
});

test('the outputs of a stack are read in slices, too', async () => {
  const body = { scopes: [{ permissions: ['outputs'], stacks: '*/*' }] };
  const { json } = await ok(app.call('POST', '/api/user/tokens', { auth: stack.auth, body }));
  const auth = `token ${json.tokenValue}`;
  await fillTheQueue();
  const refused = await app.call('GET', `${stack.path}/export`, { auth });
  expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
  // Exports of whole states are only sent on.
  await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
  emptyTheQueue();
  await ok(app.call('GET', `${stack.path}/export`, { auth }));
});

test('a request has one queue entry for all its calls, and leaves the queue when they are answered', async () => {
  const begun = jest.spyOn(app.context.scans, 'open');
  const input = Object.fromEntries(
    ['resources.get', 'versions.resources', 'versions.text'].map((name, at) => [at, { ...ref(), ...scanning[name] }]),
  );
  const path = `/trpc/resources.get,versions.resources,versions.text?batch=1&input=${encodeURIComponent(JSON.stringify(input))}`;
  await ok(app.call('GET', path, { auth: stack.auth, accept: null }));
  expect(begun).toHaveBeenCalledTimes(1);
  begun.mockRestore();
  expect(await places()).toEqual({ running: 0, waiting: 0 });
});

test.each(['resources.get', 'versions.diffStacks', 'versions.text'])(
  'nothing more is read for a client that is gone: %s',
  async (name) => {
    const { documentReader } = app.context;
    const original = documentReader.open.bind(documentReader);
    const gate = Promise.withResolvers<void>();
    let [opened, chunks, closed] = [0, 0, 0];
    const opening = jest.spyOn(documentReader, 'open').mockImplementation(async function* (...of) {
      opened++;
      try {
        for await (const chunk of original(...of)) {
          chunks++;
          yield chunk;
          await gate.promise;
          // A state that goes on.
          for (let at = 0; at < 1_000; at++) yield Buffer.from(' ');
          chunks++;
        }
      } finally {
        closed++;
      }
    });
    try {
      const client = new AbortController();
      const answered = call(name, client.signal).catch(() => null);
      await until(() => opened > 0 && chunks > 0, 'a state is read');
      expect((await places()).running).toBe(1);
      client.abort();
      await answered;
      gate.resolve();
      await until(async () => (await places()).running === 0, 'the place is free');
      expect(closed).toBe(opened);
      expect(chunks).toBe(opened);
    } finally {
      gate.resolve();
      opening.mockRestore();
    }
  },
);

test('a client that leaves the line is not served', async () => {
  await fillTheQueue(0);
  const read = jest.spyOn(StateReader.prototype, 'readVersion');
  const client = new AbortController();
  const answered = call('versions.text', client.signal).catch(() => null);
  await until(async () => (await places()).waiting === 1, 'the call waits');
  client.abort();
  await answered;
  await until(async () => (await places()).waiting === 0, 'the line is empty');
  emptyTheQueue();
  await until(async () => (await places()).running === 0, 'nothing runs');
  expect(read).not.toHaveBeenCalled();
  read.mockRestore();
});

test('a state is looked at in small parts', async () => {
  const large = await createStack(app);
  await importState(large, 4, { text: 'x'.repeat(500_000) });
  const reserveMemory = () => Promise.resolve();
  const caller = { tokenId: 'reader', userId: null };
  const { organization } = large;
  const scan = app.context.scans.open({ caller, organization, signal: new AbortController().signal, reserveMemory });
  const head = await scan.readHead(large);
  let bytes = 0;
  for await (const part of head?.state.bytes ?? []) {
    expect(part.length).toBeLessThanOrEqual(128 * 1024);
    bytes += part.length;
  }
  expect(bytes).toBe(head?.state.sizeBytes);
  scan.end();
});

async function places(): Promise<{ readonly running: number; readonly waiting: number }> {
  const text = await app.context.metrics.registry.metrics();
  const read = (name: string): number => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(text)?.[1]);
  return { running: read('holdfast_state_reads'), waiting: read('holdfast_state_reads_waiting') };
}
