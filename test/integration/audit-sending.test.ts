import { randomUUID } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { operatorSource } from '../../src/shared/audit/audit-event.ts';
import { createAuditRepository } from '../../src/shared/audit/audit-repository.ts';
import { createAuditSendingRepository } from '../../src/shared/audit/audit-sending-repository.ts';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { createHeldOutgoingRepository } from '../../src/shared/platform/outgoing/held-outgoing-repository.ts';
import { dropOldAudit } from '../../src/workers/audit/audit-retention.ts';
import { type AuditReceiver, receiverCalls, sendAudit } from '../../src/workers/audit/send-audit.ts';
import { startBackgroundTask } from '../../src/workers/platform/background-task.ts';
import { chainAll } from '../support/chain-all.ts';
import { query } from '../support/database.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly status: number;
}

const app = testApp();
const received: Received[] = [];
/** Decides about a request; requests are answered when it settles. */
let answer: (body: string) => number | Promise<number> = () => 200;
let atOnce = 0;
let mostAtOnce = 0;

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', async () => {
    mostAtOnce = Math.max(mostAtOnce, ++atOnce);
    const body = Buffer.concat(chunks).toString();
    const status = await answer(body);
    atOnce--;
    received.push({ headers: request.headers, body, status });
    response.writeHead(status, status === 307 ? { location: '/elsewhere' } : {}).end();
  });
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

let organizations: string[] = [];
beforeEach(async () => {
  answer = () => 200;
  organizations = [`one-${randomUUID()}`, `two-${randomUUID()}`];
  for (const each of organizations) await app.context.identity.ensureOrganization(each);
  await chainAll(app);
  await send();
  received.length = 0;
});

const urlOfReceiver = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/hidden?key=hidden`;
const receiver = (format: AuditReceiver['format'] = 'jsonl', url = urlOfReceiver()): AuditReceiver => ({
  url,
  token: 'token-of-the-receiver',
  format,
  outgoing: receiverCalls(url, app.context.config.outgoingAllow),
});
const logged: string[] = [];
const logger = createLogger({ level: 'trace' }, { write: (line: string) => void logged.push(line) });

/** One run of any worker. */
const send = (format: AuditReceiver['format'] = 'jsonl') =>
  sendAudit({ db: app.context.db, logger }, receiver(format), new AbortController().signal);
const endPause = async () => {
  await query(app, 'update audit_sending set next_at = now()');
  await query(app, 'update audit_chains set send_after = now()');
};
/** Until something is sent again, of this organization. */
const pauseOf = async (organization = organizations[0]): Promise<number> => {
  const [row] = await query<{ pause: number }>(
    app,
    `select extract(epoch from greatest(s.next_at, c.send_after) - clock_timestamp())::float8 as pause
     from audit_sending s, organizations o left join audit_chains c on c.organization_id = o.id where o.name = $1`,
    [organization],
  );
  return row?.pause ?? Number.NaN;
};

/** Adds an event and chains it into a batch of its own. */
async function add(object: string, organization = organizations[0] as string): Promise<void> {
  await createAuditRepository(app.context.db).insert(operatorSource('somebody'), {
    action: 'stack.tags',
    organization,
    object,
    details: {},
  });
  await chainAll(app);
}
const objectsOf = (all: readonly Received[]) => all.map(({ body }) => (JSON.parse(body) as { object: string }).object);
const idsOf = (all: readonly Received[]) => all.map(({ headers }) => headers['idempotency-key']);

test('a restored database sends nothing until an operator says that it has taken over', async () => {
  const held = createHeldOutgoingRepository(app.context.db);
  await held.hold();
  await add('held');
  expect([await send(), received.length]).toEqual([0, 0]);
  await held.release();
  expect(await send()).toBe(1);
});

test('each batch is posted once, in order; after a crash before it was noted, again under the same id', async () => {
  for (const object of ['a', 'b', 'c']) await add(object);
  expect(await send()).toBe(3);
  expect(await send()).toBe(0);
  expect(objectsOf(received)).toEqual(['a', 'b', 'c']);
  expect(received[0]?.headers).toMatchObject({
    authorization: 'Bearer token-of-the-receiver',
    'content-type': 'application/x-ndjson',
  });
  expect(new Set(idsOf(received)).size).toBe(3);
  await query(app, 'update audit_chains set sent_batch = sent_batch - 1 where sent_batch > 1');
  await send();
  const again = received.slice(3).filter(({ body }) => body === received[2]?.body);
  expect(idsOf(again)).toEqual([idsOf(received)[2]]);
});

test('a receiver that is away gets everything later; the pauses grow, for all workers, and chaining goes on', async () => {
  await add('a');
  answer = () => 503;
  const pauses: number[] = [];
  for (let attempt = 1; attempt <= 9; attempt++) {
    expect(await send()).toBe(0);
    pauses.push(Math.round(await pauseOf()));
    // Another worker, or this one after a restart.
    expect(await send()).toBe(0);
    expect(received.length).toBe(attempt);
    await endPause();
  }
  expect(pauses.every((pause, index) => Math.abs(pause - Math.min(30 * 2 ** index, 3600)) <= 20)).toBe(true);
  await add('b');
  expect(await createAuditSendingRepository(app.context.db).readWaitingSeconds('sent')).toBeGreaterThan(0);
  answer = () => 200;
  expect(await send()).toBe(2);
  expect(objectsOf(received.slice(9))).toEqual(['a', 'b']);
  expect(await createAuditSendingRepository(app.context.db).readWaitingSeconds('sent')).toBe(0);
  expect(new Set(idsOf(received.slice(0, 10))).size).toBe(1);
  // From the beginning, after a success.
  await add('c');
  answer = () => 503;
  await send();
  expect(await pauseOf()).toBeLessThanOrEqual(30);
  await endPause();
});

test('a refused batch blocks only its organization, and is never skipped', async () => {
  const [one, two] = organizations as [string, string];
  await add('poison', one);
  await add('behind', one);
  for (const object of ['x', 'y']) await add(object, two);
  answer = (body) => (body.includes('poison') ? 400 : 200);
  expect(await send()).toBe(2);
  const accepted = () => objectsOf(received.filter(({ status }) => status === 200));
  expect(accepted()).toEqual(['x', 'y']);
  await endPause();
  answer = () => 200;
  expect(await send()).toBe(2);
  expect(accepted()).toEqual(['x', 'y', 'poison', 'behind']);
});

test('a refused batch does not delay others, however often it is refused', async () => {
  const [one, two] = organizations as [string, string];
  await add('poison', one);
  answer = (body) => (body.includes('poison') ? 400 : 200);
  for (let attempt = 1; attempt <= 7; attempt++) {
    expect(await send()).toBe(0);
    expect(received.length).toBe(attempt);
    await endPause();
  }
  await send();
  expect(await pauseOf(one)).toBeGreaterThan(3_000);
  expect(await pauseOf(two)).toBeLessThanOrEqual(0);
  await add('x', two);
  expect(await send()).toBe(1);
  expect(received.length).toBe(9);
  // Accepted at last: the next refusal is the first one.
  await endPause();
  answer = () => 200;
  expect(await send()).toBe(1);
  await add('again', one);
  answer = () => 400;
  await send();
  expect(await pauseOf(one)).toBeLessThanOrEqual(30);
  await endPause();
});

test('what was accepted in the same run begins the pauses anew', async () => {
  const [one] = organizations as [string];
  await add('a', one);
  await add('b', one);
  answer = () => 400;
  for (let attempt = 1; attempt <= 5; attempt++) {
    await send();
    await endPause();
  }
  answer = (body) => (body.includes('"b"') ? 400 : 200);
  expect(await send()).toBe(1);
  expect(await pauseOf(one)).toBeLessThanOrEqual(30);
  await endPause();
  // Of the receiver, too.
  answer = () => 401;
  for (let attempt = 1; attempt <= 5; attempt++) {
    await send();
    await endPause();
  }
  await add('c', one);
  answer = (body) => (body.includes('"b"') ? 200 : 401);
  expect(await send()).toBe(1);
  expect(await pauseOf(one)).toBeLessThanOrEqual(30);
  await endPause();
});

test('a receiver that refuses everything is left alone for a while', async () => {
  const all = [...organizations, `three-${randomUUID()}`, `four-${randomUUID()}`];
  for (const each of all.slice(2)) await app.context.identity.ensureOrganization(each);
  for (const each of all) await add('a', each);
  answer = () => 500;
  expect(await send()).toBe(0);
  expect(received.length).toBe(3);
  expect(await send()).toBe(0);
  expect(received.length).toBe(3);
  await endPause();
  received.length = 0;
  answer = () => 401;
  expect(await send()).toBe(0);
  expect(received.length).toBe(1);
  expect(await pauseOf(all[3])).toBeGreaterThan(30);
  await endPause();
});

test('organizations whose batches the receiver cannot take do not stop the others', async () => {
  const poisoned = ['three', 'four', 'five'].map((each) => `${each}-${randomUUID()}`);
  for (const each of poisoned) await app.context.identity.ensureOrganization(each);
  answer = (body) => (body.includes('poison') ? 500 : 200);
  for (const each of poisoned) await add('poison', each);
  await send();
  for (const object of ['x', 'y']) {
    await endPause();
    received.length = 0;
    for (const each of organizations) await add(object, each);
    expect(await send()).toBe(2);
    expect(received.map(({ status }) => status)).toEqual([200, 200, 500, 500, 500]);
    expect(await pauseOf()).toBeLessThanOrEqual(0);
  }
  // Nor what comes next, if there was nothing else to send.
  await endPause();
  expect(await send()).toBe(0);
  await add('z');
  expect(await send()).toBe(1);
  answer = () => 200;
  await endPause();
  await send();
});

test('no request is larger than a megabyte, however large events are', async () => {
  const [organization] = organizations as [string];
  // As quotes are doubled in CSV.
  const details = JSON.stringify({ note: '"'.repeat(4_000) });
  await query(
    app,
    `insert into audit_events (organization_id, organization, action, outcome, actor, login, token_name, sign_in, role, granted_by, address,
       user_agent, ci_run, object, request_id, details)
     select id, name, 'stack.tags', 'done', 'server', '', '', '', '', '', '', '', '', 'large', '', $2
     from organizations, generate_series(1, 500) where name = $1`,
    [organization, details],
  );
  await chainAll(app);
  const batches = await send('csv');
  expect(batches).toBeGreaterThan(1);
  const lines = received.flatMap(({ body }) => body.split('\r\n').filter((line) => line.includes('large')));
  expect(lines.length).toBe(500);
  expect(Math.max(...received.map(({ body }) => Buffer.byteLength(body)))).toBeLessThan(1_000_000);
});

test('a redirect is not followed, and neither token nor address is logged', async () => {
  await add('a');
  answer = () => 307;
  expect(await send()).toBe(0);
  expect(received.length).toBe(1);
  await endPause();
  const away = receiver('jsonl', 'http://127.0.0.1:9/hidden');
  expect(await sendAudit({ db: app.context.db, logger }, away, new AbortController().signal)).toBe(0);
  await endPause();
  expect(logged.join('')).toContain('audit events were not accepted');
  expect(logged.join('')).not.toMatch(/hidden|token-of-the-receiver/);
});

test('the receiver that the operator has named may be called, and no neighbor of it', async () => {
  const limits = { timeoutMs: 60_000, maxBytes: 1_000 };
  const { outgoing, url } = receiver();
  expect((await outgoing.call(url, limits)).status).toBe(200);
  const origin = new URL(url).origin;
  for (const other of [
    'https://127.0.0.2/',
    `${origin.replace('127.0.0.1', '127.0.0.2')}/`,
    `${origin}1/`,
    'http://localhost/',
  ])
    await expect(outgoing.call(other, limits)).rejects.toMatchObject({ reason: 'refused' });
  const secure = receiverCalls('https://siem.internal/events', app.context.config.outgoingAllow);
  await expect(secure.call('http://siem.internal/events', limits)).rejects.toMatchObject({ reason: 'refused' });
});

test('CSV has its header in each batch, and no formula; CEF has a line per event', async () => {
  await add('=cmd|calc');
  expect(await send('csv')).toBe(1);
  const [head, line] = (received[0] as Received).body.split('\r\n');
  expect(head).toMatch(/^number,timestamp,event,/);
  expect(line).toContain(",'=cmd|calc,");
  expect(received[0]?.headers['content-type']).toContain('text/csv');
  await add('a=b');
  expect(await send('cef')).toBe(1);
  expect(received[1]?.body).toMatch(/^CEF:0\|Holdfast\|.* cs1=a\\=b .*\n$/);
});

test('two workers do not send at once', async () => {
  for (const object of ['a', 'b', 'c', 'd']) await add(object);
  mostAtOnce = 0;
  answer = async () => {
    await sleep(20);
    return 200;
  };
  const config = { ...app.context.config, sweepSeconds: 1 };
  const runs = createBackgroundTaskRepository(app.context.db);
  const run = (signal: AbortSignal) => sendAudit({ db: app.context.db, logger }, receiver(), signal);
  const task = { name: 'send-audit', everySeconds: 1, run };
  const stops = [1, 2, 3].map(() => startBackgroundTask({ ...app.context, config }, runs, randomUUID(), task));
  await until(() => received.length >= 4, 'all batches are sent');
  await Promise.all(stops.map((stop) => stop()));
  expect(mostAtOnce).toBe(1);
  expect(objectsOf(received)).toEqual(['a', 'b', 'c', 'd']);
});

test('retention waits until old events were sent', async () => {
  const { config } = app.context;
  const audit = { ...config.audit, retentionDays: 45, receiverUrl: receiver().url };
  const context = { ...app.context, config: { ...config, audit } };
  await query(
    app,
    `select add_audit_partition((date_trunc('month', now() at time zone 'UTC') - interval '4 months')::date)`,
  );
  await createAuditRepository(app.context.db).insert(operatorSource('somebody'), {
    action: 'stack.tags',
    organization: organizations[0] as string,
    object: 'old',
    details: {},
  });
  await query(app, `update audit_events set occurred_at = occurred_at - interval '4 months' where object = 'old'`);
  await chainAll(app);
  expect(await dropOldAudit(context)).toBe(0);
  expect(await send()).toBe(1);
  expect(await dropOldAudit(context)).toBe(1);
  // What retention has dropped before it was to be sent holds nothing up.
  await query(app, 'update audit_chains set sent_batch = 0');
  await send();
  expect(await send()).toBe(0);
});
