import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { applyPlan } from './apply-plan.ts';
import type { KindName, Spec } from './kinds/kind.ts';
import { OrganizationApi } from './organization-api.ts';
import type { Change } from './plan.ts';

interface Answer {
  readonly status?: number;
  readonly body?: object | null;
  readonly etag?: string;
  /** The connection ends before the body does. */
  readonly isCut?: boolean;
}

/** The server, by method and path; what is missing is answered with {}. */
let answers: Record<string, (body: Record<string, unknown>) => Answer> = {};
let notes: { set: string[]; remove: string[] };
let answerNotes: Answer;
const server = createServer(async (request, response) => {
  const call = `${request.method} ${request.url?.replace('/api/orgs/acme/', '')}`;
  const sent = request.headers['content-type'] ? ((await json(request)) as Record<string, unknown>) : {};
  if (call === 'PATCH managed-objects' && !answerNotes.status)
    for (const list of ['set', 'remove'] as const)
      notes[list].push(...((sent[list] as { name: string }[] | undefined) ?? []).map(({ name }) => name));
  const answer = call === 'PATCH managed-objects' ? answerNotes : (answers[call]?.(sent) ?? {});
  const { body = {}, etag, isCut = false, status = 200 } = answer;
  const text = body === null ? '' : JSON.stringify(body);
  response.writeHead(status, { 'content-length': text.length + (isCut ? 1 : 0), ...(etag ? { etag } : {}) });
  if (isCut) response.write(text, () => request.socket.destroy());
  else response.end(text);
});
let api: OrganizationApi;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  api = new OrganizationApi({ origin, token: 'hf-x' }, 'acme');
});
afterAll(() => void server.close());
beforeEach(() => {
  answers = {};
  notes = { set: [], remove: [] };
  answerNotes = {};
});

const hook = { name: 'a', displayName: 'a', payloadUrl: 'https://one.example', active: true, format: 'raw' };
const hookResponse = { ...hook, filters: [], groups: [], hasSecret: false };
const { url, ...spec } = {
  ...{ displayName: 'a', url: 'https://one.example', active: true, format: 'raw' },
  ...{ filters: [], groups: [], secret: null },
};

function create(kind: KindName, name: string, wanted: Spec): Change {
  return { action: 'create', kind, organization: 'acme', name, fields: [], wanted };
}

function deletion(kind: KindName, name: string, present: Spec): Change {
  const about = { action: 'delete', kind, organization: 'acme', name, fields: [] } as const;
  return { ...about, present: { object: name, name, spec: present } };
}

function apply(changes: readonly Change[], stop?: AbortSignal): Promise<readonly string[]> {
  const plan = { api, changes, unchanged: 0, waiting: [], noted: [], released: [] };
  return applyPlan(plan, { parallel: 1, onDone: () => {}, ...(stop ? { stop } : {}) });
}

const hooks = ['a', 'b', 'c'].map((name) => create('Webhook', name, { url: 'https://one.example' }));

test('a response that breaks off is one refusal, and what was done besides is noted', async () => {
  answers['POST hooks'] = ({ name }) => (name === 'b' ? { isCut: true } : {});
  expect(await apply(hooks)).toEqual([
    expect.stringMatching(/^Webhook acme\/b: http:.*not reachable.*; the change may have been made/),
  ]);
  expect(notes.set).toEqual(['a', 'c']);
});

test('what was done before an error of the program is noted', async () => {
  answers['POST update-rules'] = ({ note }) => (note === 'b' ? { body: null } : { body: { id: String(note) } });
  answers['GET update-rules'] = () => ({ body: { rules: [] } });
  const rules = ['a', 'b', 'c'].map((note) =>
    create('UpdateRule', note, { rule: 'change-limit', project: note, settings: { changes: 5 }, note }),
  );
  await expect(apply(rules)).rejects.toThrow(TypeError);
  expect(notes.set).toEqual(['a']);
});

test('notes that are not written are a refusal', async () => {
  answerNotes = { status: 500, body: { message: 'broken' } };
  expect(await apply([...hooks, create('StackWebhook', 'p/s/d', { url: 'https://one.example' })])).toEqual([
    'The server has no note of 3 objects (broken): apply the same configuration again before you change it',
  ]);
});

test('a stopped run begins no further change, and notes what was done', async () => {
  const stop = new AbortController();
  answers['POST hooks'] = ({ name }) => {
    if (name === 'b') stop.abort();
    return {};
  };
  expect(await apply(hooks, stop.signal)).toEqual([]);
  expect(notes.set).toEqual(['a', 'b']);
});

test('a change whose response was lost is found made, though its repeat is refused', async () => {
  let at = { ...hookResponse };
  let etag = '"1"';
  answers['GET hooks/a'] = () => ({ body: at, etag });
  answers['PATCH hooks/a'] = ({ payloadUrl }) => {
    if (etag !== '"1"') return { status: 412, body: { message: 'changed meanwhile' } };
    at = { ...at, payloadUrl: String(payloadUrl) };
    etag = '"2"';
    return { isCut: true };
  };
  const present = { object: 'a', name: 'a', spec: { url, ...spec } };
  const change: Change = {
    ...{ action: 'change', kind: 'Webhook', organization: 'acme', name: 'a', present },
    fields: [{ field: 'url', from: url, to: 'https://two.example' }],
    wanted: { url: 'https://two.example' },
  };
  expect(await apply([change])).toEqual([]);
  expect([at.payloadUrl, notes.set]).toEqual(['https://two.example', ['a']]);
});

test('a change whose response was lost is refused if somebody else has changed the object', async () => {
  let at = { ...hookResponse };
  answers['GET hooks/a'] = () => ({ body: at, etag: '"1"' });
  let isFirst = true;
  answers['PATCH hooks/a'] = () => {
    if (!isFirst) return { status: 412, body: { message: 'changed meanwhile' } };
    isFirst = false;
    at = { ...at, active: false };
    return { isCut: true };
  };
  const present = { object: 'a', name: 'a', spec: { url, ...spec } };
  const change: Change = {
    ...{ action: 'change', kind: 'Webhook', organization: 'acme', name: 'a', present },
    fields: [{ field: 'url', from: url, to: 'https://two.example' }],
    wanted: { url: 'https://two.example' },
  };
  expect(await apply([change])).toEqual([expect.stringContaining('active is false now, and was true in the plan')]);
});

test('deletions whose response was lost are made, alone and together', async () => {
  const there = new Set(['a', 'one', 'two']);
  const remove = (name: string, isCut: boolean): Answer =>
    there.delete(name) ? { isCut } : { status: 404, body: { message: 'there is none' } };
  answers['GET hooks/a'] = () => ({ body: hookResponse });
  answers['DELETE hooks/a'] = () => remove('a', true);
  answers['PATCH grants'] = ({ remove: ids }) =>
    (ids as string[]).map((id) => remove(id, true)).find(({ status }) => status) ?? { isCut: true };
  for (const id of ['one', 'two']) answers[`DELETE grants/${id}`] = () => remove(id, false);
  const gone = [deletion('Webhook', 'a', { url, ...spec }), deletion('Grant', 'one', {}), deletion('Grant', 'two', {})];
  expect(await apply(gone)).toEqual([]);
  expect([there.size, notes.remove]).toEqual([0, ['a', 'one', 'two']]);
});
