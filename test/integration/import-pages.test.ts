import { expect, test } from '@jest/globals';
import { base64, stateWith } from '../support/import-ends.ts';
import { runImport } from '../support/import-run.ts';
import { type SourceFront, sendJson, startFront } from '../support/source-front.ts';
import { testApp } from '../support/test-app.ts';

const target = testApp();

const path = '/api/stacks/acme/shop/long';
const long = { organization: 'acme', project: 'shop', stack: 'long' };
const listedStack = (stackName: string) => ({ orgName: 'acme', projectName: 'shop', stackName });
/** An update without its state, so that an import reads no more of it. */
const listed = (version: number, others: object = { stateDeletedAt: '2026-01-01T00:00:00Z' }) => ({
  ...{ kind: 'update', result: 'succeeded', version, updateID: `id-${version}`, ...others },
  ...{ startTime: 1_700_000_000 + version, endTime: 1_700_000_000 + version },
});
const page = (newest: number) => ({
  updates: [listed(newest, {}), ...Array.from({ length: 99 }, (_, at) => listed(newest - 1 - at))],
});

/** A service that answers a path with the same, whatever the query. */
async function startService(answers: Readonly<Record<string, unknown>>): Promise<SourceFront> {
  return startFront((call, response) => {
    const url = call.url ?? '';
    if (url.endsWith('/batch-decrypt')) return sendJson(response, { plaintexts: {} });
    const version = Number(/\/export\/(\d+)$/.exec(url)?.[1] ?? 0);
    if (version > 0) return sendJson(response, stateWith(long, base64('a'), version));
    const answer = answers[url] ?? answers[url.replace(/\?.*$/, '')];
    if (answer === undefined) return sendJson(response, { code: 404, message: 'Not Found' }, 404);
    sendJson(response, answer);
  });
}

/** The service with one stack, and the import of it. */
async function serviceWith(name: string, answers: Readonly<Record<string, unknown>>) {
  const service = await startService({
    '/api/user': { githubLogin: 'ann' },
    '/api/user/stacks': { stacks: [listedStack('long')] },
    [path]: { tags: {} },
    ...answers,
  });
  await target.createUser(name, 'admin');
  const from = { url: service.url, token: 'pul-test' };
  return {
    service,
    run: (...options: string[]) => runImport(target, from, name, '--source-organization', 'acme', ...options),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

test('a service that answers each page of updates or previews with the first one ends, and says that others may be missing', async () => {
  const kept = { kind: 'preview', eventsDeletedAt: '2026-01-01T00:00:00Z' };
  const previews = Array.from({ length: 100 }, (_, at) => listed(1, { ...kept, updateID: `preview-${at}` }));
  await using whole = await serviceWith('whole', { [`${path}/updates`]: page(100) });
  expect((await whole.run('--apply')).text).not.toContain('missing');
  expect(whole.service.calls.filter((call) => call.includes('/updates?'))).toHaveLength(2);

  await using part = await serviceWith('part', {
    [`${path}/updates`]: page(300),
    [`${path}/updates/latest/previews`]: { updates: previews },
  });
  const missing = (what: string) =>
    `shop/long: the source answers with the same page of ${what} again, so others may be missing`;
  expect((await part.run()).text).toContain(missing('updates').slice('shop/long: '.length));
  const applied = await part.run('--apply');
  expect(applied.code).toBe(1);
  expect(applied.text).toContain(missing('updates'));
  expect(applied.text).toContain(missing('previews'));
  expect(applied.text).toContain('Imported 1 version and 100 previews of 1 stack into part.');
  const verified = await part.run('--verify');
  expect([verified.code, verified.text]).toEqual([1, expect.stringContaining(missing('updates'))]);
});

test('a page that is shorter than it was asked for is not the last one if the service counts more', async () => {
  const call = (number: number) => `${path}/updates?output-type=service&pageSize=100&page=${number}`;
  await using short = await serviceWith('short', {
    [call(1)]: { updates: [listed(3, {}), listed(2, {})], itemsPerPage: 2, total: 3 },
    [call(2)]: { updates: [listed(1, {})], itemsPerPage: 2, total: 3 },
    [call(3)]: { updates: [], itemsPerPage: 2, total: 3 },
  });
  expect((await short.run('--apply')).text).toContain('Imported 3 versions of 1 stack into short.');
});

test('tokens that come again end a list of stacks, with a remark, and leave out the events of an update', async () => {
  const stacks = (token: string) => `/api/user/stacks?organization=acme${token && `&continuationToken=${token}`}`;
  const event = (sequence: number) => ({ sequence, timestamp: 1, stdoutEvent: { message: 'm', color: 'raw' } });
  const events = `${path}/update/id-1/events`;
  await using circle = await serviceWith('circle', {
    [stacks('')]: { stacks: [listedStack('long')], continuationToken: 'a' },
    [stacks('a')]: { stacks: [listedStack('gone')], continuationToken: 'b' },
    [stacks('b')]: { stacks: [listedStack('long')], continuationToken: 'a' },
    [`${path}/updates`]: { updates: [listed(1, {})] },
    [events]: { events: [event(0)], continuationToken: 'a' },
    [`${events}?continuationToken=a`]: { events: [event(1)], continuationToken: 'b' },
    [`${events}?continuationToken=b`]: { events: [event(0)], continuationToken: 'a' },
  });
  const remark = `${circle.service.url}/acme answers with the same page of stacks again, so others may be missing`;
  expect((await circle.run()).text).toContain(remark);
  const applied = await circle.run('--apply', '--stack', 'shop/long');
  expect([applied.code, applied.text]).toEqual([1, expect.stringContaining(remark)]);
  expect(applied.text).toContain('/export/1: without its events: ');
  expect(applied.text).toContain('answers with the same page of events again');
  expect(applied.text).toContain('Imported 1 version of 1 stack into circle.');

  // A server that gives the last token again at the end has ended.
  await using last = await serviceWith('last', {
    [stacks('')]: { stacks: [listedStack('long')], continuationToken: 'a' },
    [stacks('a')]: { stacks: [], continuationToken: 'a' },
    [`${path}/updates`]: { updates: [listed(1, {})] },
    [events]: { events: [event(0)], continuationToken: 'a' },
    [`${events}?continuationToken=a`]: { events: [], continuationToken: 'a' },
  });
  const whole = await last.run('--apply');
  expect([whole.code, whole.text]).toEqual([1, expect.stringContaining('the source could not decrypt 1 secret')]);
  expect(whole.text).not.toMatch(/again|without/);
});
