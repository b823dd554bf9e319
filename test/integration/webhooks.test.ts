import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { checkSecrets, rewrapSecrets } from '../../src/cli/admin/rewrap-secrets.ts';
import { Outgoing } from '../../src/shared/platform/outgoing/outgoing.ts';
import { EncryptedSecrets } from '../../src/shared/secrets/encrypted-secrets.ts';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { DeliveryAttempts } from '../../src/shared/webhooks/delivery-attempt.ts';
import { DeliveryLoop } from '../../src/shared/webhooks/delivery-loop.ts';
import { listEvents } from '../../src/shared/webhooks/webhook-events.ts';
import { createWebhookRepository } from '../../src/shared/webhooks/webhook-repository.ts';
import { endExpiredUpdates } from '../../src/workers/updates/expire-leases.ts';
import { deleteOldDeliveries } from '../../src/workers/webhooks/delete-deliveries.ts';
import { runAdminCommand } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { keyRingOf } from '../support/key-ring.ts';
import { Receiver } from '../support/receiver.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, masterKeys, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { cancel, complete, expire } from '../support/update-calls.ts';
import { createHook, deliverDue, endPauses, readLog } from '../support/webhooks.ts';

const logged: string[] = [];
let receiver: Receiver;
let app: TestApp;
let stack: TestStack;
beforeAll(async () => {
  receiver = await Receiver.start();
  const log = { write: (line: string) => void logged.push(line) };
  app = await createTestApp({ overrides: { outgoing: receiver.outgoing() }, log });
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await query(app, 'delete from webhooks');
  await query(app, 'delete from webhook_events');
  receiver.received.length = 0;
  receiver.most = 0;
  receiver.answer = () => 200;
  stack = await createStack(app);
});

const hookUrl = (path = '/hook') => `${receiver.url}${path}`;
const types = () => receiver.bodies.map(({ type }) => type as string);
const waiting = async () => (await query(app, `select id from webhook_deliveries where state = 'waiting'`)).length;

/** One update from its creation to its end. */
async function runUpdate(kind = 'update', status = 'succeeded'): Promise<string> {
  const update = await startUpdate(app, stack, { kind });
  const changes = { create: 2, same: 1 };
  const events = [{ sequence: 0, timestamp: 0, summaryEvent: { resourceChanges: changes } }];
  await ok(app.call('POST', `${update.path}/events/batch`, { auth: update.lease, body: { events } }));
  await ok(complete(app, update, status));
  return update.id;
}

test('a restored database sends nothing until an operator says that it has taken over', async () => {
  await createHook(app, stack, 'organization', { payloadUrl: hookUrl() });
  expect((await runAdminCommand(app, 'after-restore')).stdout).toContain('wait until `holdfast admin take-over`');
  await runUpdate();
  await deliverDue(app);
  expect([types(), await waiting()]).toEqual([[], 2]);
  expect(await runAdminCommand(app, 'take-over')).toMatchObject({ code: 0 });
  await deliverDue(app);
  expect(types()).toEqual(['update_started', 'update_succeeded']);
});

describe('what is delivered', () => {
  test('start and end of updates, ends of previews, imports, and stacks that come and go', async () => {
    await createHook(app, stack, 'organization', { payloadUrl: hookUrl() });
    await runUpdate();
    await runUpdate('preview');
    await runUpdate('destroy', 'failed');
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) }));
    const other = `/api/stacks/${stack.organization}/proj`;
    await ok(app.call('POST', other, { auth: stack.auth, body: { stackName: 'other' } }));
    await ok(app.call('DELETE', `${other}/other`, { auth: stack.auth }));
    await deliverDue(app);
    expect(types().sort()).toEqual(
      [
        ...['update_started', 'update_succeeded', 'preview_started', 'preview_succeeded'],
        ...['update_started', 'destroy_failed', 'import_succeeded', 'stack_created', 'stack_deleted'],
      ].sort(),
    );
    const ended = receiver.bodies.find(({ type }) => type === 'update_succeeded');
    expect(ended).toMatchObject({
      organization: { name: stack.organization },
      user: { name: expect.stringMatching(/^admin-/) },
      projectName: 'proj',
      stackName: 'dev',
      kind: 'update',
      result: 'succeeded',
      resourceChanges: { create: 2, same: 1 },
      version: 1,
    });
    const begun = receiver.bodies.find(({ type }) => type === 'update_started');
    expect(begun).not.toHaveProperty('result');
    expect(begun.resourceChanges).toEqual({});
    // They are sent at once and arrive in any order.
    const kinds = receiver.received.map(({ body, headers }) => [JSON.parse(body).type, headers['pulumi-webhook-kind']]);
    expect(Object.fromEntries(kinds)).toMatchObject({
      ...{ update_started: 'stack_update', preview_started: 'stack_preview', stack_created: 'stack' },
    });
  });

  const kinds = ['update', 'preview', 'refresh', 'destroy'];
  const outcomes = { succeeded: 'succeeded', failed: 'failed', cancelled: 'failed' };
  const ends = kinds.flatMap((kind) =>
    Object.entries(outcomes).map(([status, outcome]) => ({ kind, status, event: `${kind}_${outcome}` })),
  );

  test('each event of stacks is one of an end, or of the test above', () => {
    const others = ['stack_created', 'stack_deleted', 'import_succeeded'];
    const all = listEvents().flatMap(({ group, name }) => (group === 'stacks' ? [name] : []));
    expect(all.sort()).toEqual([...new Set([...ends.map(({ event }) => event), ...others])].sort());
  });

  test.each(ends)('the end of $kind with $status: $event', async ({ event, kind, status }) => {
    await createHook(app, stack, 'organization', { payloadUrl: hookUrl('/all') });
    await createHook(app, stack, 'stack', { displayName: 'own', payloadUrl: hookUrl('/own'), filters: [event] });
    const others = ends.map((end) => end.event).filter((name) => name !== event);
    const filters = [...new Set(others)];
    await createHook(app, stack, 'stack', { displayName: 'others', payloadUrl: hookUrl('/others'), filters });
    await runUpdate(kind, status);
    await deliverDue(app);
    const got = receiver.received.map(({ body, headers, path }) => {
      const { kind: of, result, type } = JSON.parse(body);
      return { path, type, of, result, sent: headers['pulumi-webhook-kind'] };
    });
    const sent = kind === 'preview' ? 'stack_preview' : 'stack_update';
    const started = kind === 'preview' ? 'preview_started' : 'update_started';
    const end = { type: event, of: kind, result: status, sent };
    expect(got).toHaveLength(3);
    expect(got).toEqual(
      expect.arrayContaining([
        { path: '/all', type: started, of: kind, result: undefined, sent },
        { path: '/all', ...end },
        { path: '/own', ...end },
      ]),
    );
  });

  test('updates that are cancelled, and those whose lease ends', async () => {
    await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_failed'] });
    await ok(cancel(app, stack, await startUpdate(app, stack)));
    await expire(app, (await startUpdate(app, stack)).id);
    await endExpiredUpdates(app.context);
    await deliverDue(app);
    expect(types()).toEqual(['update_failed', 'update_failed']);
    expect(receiver.bodies.map(({ result }) => result)).toContain('cancelled');
  });

  test('only what is committed, and all of it', async () => {
    await createHook(app, stack, 'stack', { payloadUrl: hookUrl() });
    const update = await startUpdate(app, stack);
    await expect(
      app.context.db.inTransaction(async (tx) => {
        const { lockUpdate, cancelUpdate } = await import('../../src/shared/updates/cancel-or-expire.ts');
        const locked = await lockUpdate(tx, update.id);
        if (locked) await cancelUpdate(tx, locked, 'cancelled');
        throw new Error('rolled back');
      }),
    ).rejects.toThrow('rolled back');
    await deliverDue(app);
    expect(types()).toEqual(['update_started']);
    await ok(complete(app, update));
    // The call that came again after its response was lost.
    await ok(complete(app, update));
    await deliverDue(app);
    expect(types()).toEqual(['update_started', 'update_succeeded']);
  });

  test('by filters and groups; a webhook of a stack gets events of that stack only', async () => {
    const filtered = async (path: string, hook: object, scope: 'stack' | 'organization' = 'organization') =>
      createHook(app, stack, scope, { displayName: path, payloadUrl: hookUrl(path), ...hook });
    await filtered('/failed', { filters: ['update_failed'] });
    await filtered('/stacks', { groups: ['stacks'] });
    await filtered('/drift', { groups: ['deployments'] });
    await filtered('/inactive', { active: false });
    await filtered('/own', {}, 'stack');
    const first = stack;
    stack = { ...first, stack: 'second', path: first.path.replace(/dev$/, 'second') };
    const body = { stackName: 'second' };
    await ok(app.call('POST', `/api/stacks/${first.organization}/proj`, { auth: first.auth, body }));
    await runUpdate();
    stack = first;
    await runUpdate('update', 'failed');
    await deliverDue(app);
    const notified = receiver.received.map(({ body: text, path }) => `${path} ${JSON.parse(text).type}`);
    expect(notified.sort()).toEqual([
      '/failed update_failed',
      '/own update_failed',
      '/own update_started',
      '/stacks stack_created',
      '/stacks update_failed',
      '/stacks update_succeeded',
    ]);
  });

  test('nothing to a webhook that was made inactive, not even what waited', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    await runUpdate();
    await ok(app.call('PATCH', hook, { auth: stack.auth, body: { active: false } }));
    await deliverDue(app);
    await runUpdate();
    await deliverDue(app);
    // Of the later update, nothing was recorded.
    expect(await readLog(app, stack, hook)).toMatchObject([{ state: 'left-out' }]);
    expect(receiver.received).toEqual([]);
  });

  test('without a webhook nothing is recorded', async () => {
    await runUpdate();
    expect(await query(app, 'select id from webhook_events')).toEqual([]);
  });
});

describe('signatures', () => {
  const whsec = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`;

  test('match Standard Webhooks and the vendor', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), secret: whsec });
    await runUpdate();
    await deliverDue(app);
    expect(receiver.received).toHaveLength(2);
    for (const { body, headers } of receiver.received) {
      expect(new Webhook(whsec).verify(body, headers as Record<string, string>)).toEqual(JSON.parse(body));
      expect(() => new Webhook(whsec).verify(`${body} `, headers as Record<string, string>)).toThrow();
      expect(headers['pulumi-webhook-signature']).toBe(createHmac('sha256', whsec).update(body).digest('hex'));
    }
    const { json, text } = await ok(app.call('GET', hook, { auth: stack.auth }));
    expect(json).toMatchObject({ hasSecret: true, secretCiphertext: '' });
    const stored = JSON.stringify(await query(app, 'select *, encode(secret, $1) from webhooks', ['escape']));
    for (const each of [text, stored, logged.join('')]) expect(each).not.toContain(whsec.slice(6, 30));
  });

  test('are made where the master keys are: by API replicas, while workers make the other requests', async () => {
    const filters = ['update_succeeded'];
    await createHook(app, stack, 'stack', { payloadUrl: hookUrl('/signed'), filters, secret: whsec });
    await createHook(app, stack, 'stack', { displayName: 'plain', payloadUrl: hookUrl('/plain'), filters });
    await runUpdate();
    const paths = () => receiver.received.map(({ path }) => path);
    const deliver = async (share: 'signed' | 'unsigned') => {
      const delivery = new DeliveryLoop(app.context, share);
      await delivery.begin(new AbortController().signal);
      await delivery.settle();
      return paths();
    };
    expect(await deliver('unsigned')).toEqual(['/plain']);
    expect(await deliver('unsigned')).toEqual(['/plain']);
    expect(await deliver('signed')).toEqual(['/plain', '/signed']);
  });

  test('survive the retirement of a master key; a secret that is copied to another webhook is none', async () => {
    const [oldKeys, newKey] = [masterKeys, KeyRing.generate().replace(/^[^:]+/, 'next')];
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), secret: whsec });
    const both = new EncryptedSecrets(keyRingOf(`${newKey},${oldKeys}`));
    expect(await checkSecrets(app.context.db, both)).toMatchObject({ done: 1, lost: [] });
    expect(await rewrapSecrets(app.context.db, both)).toMatchObject({ done: 1, lost: [] });
    expect(await rewrapSecrets(app.context.db, both)).toMatchObject({ done: 0, lost: [] });
    const lost = await checkSecrets(app.context.db, new EncryptedSecrets(keyRingOf(oldKeys)));
    expect(lost).toMatchObject({ done: 0, lost: [{ masterKeyId: 'next' }] });
    await using later = await createTestApp({
      database: app.database,
      masterKeys: newKey,
      overrides: { outgoing: receiver.outgoing() },
    });
    await ok(later.call('POST', `${hook}/ping`, { auth: stack.auth }));
    const { body, headers } = receiver.received.at(-1) as { body: string; headers: Record<string, string> };
    expect(new Webhook(whsec).verify(body, headers)).toEqual(JSON.parse(body));
    const other = await createHook(later, stack, 'stack', {
      displayName: 'other',
      payloadUrl: hookUrl('/other'),
      secret: 'x',
    });
    await query(app, `update webhooks set secret = (select secret from webhooks where display_name = 'chat')`);
    expect((await ok(later.call('POST', `${other}/ping`, { auth: stack.auth }))).json).toMatchObject({
      responseCode: 0,
      responseBody: expect.stringContaining('cannot be decrypted'),
    });
    expect(receiver.received).toHaveLength(1);
  });

  test('a new secret is a change for a client that has read the webhook, another encryption of the same is none', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), secret: 'first' });
    const etag = async () => (await ok(app.call('GET', hook, { auth: stack.auth }))).headers['etag'];
    const read = await etag();
    const next = new EncryptedSecrets(keyRingOf(`${KeyRing.generate().replace(/^[^:]+/, 'newer')},${masterKeys}`));
    expect(await checkSecrets(app.context.db, next)).toMatchObject({ done: 1, lost: [] });
    const before = await query(app, 'select secret, master_key_id from webhooks');
    expect(await rewrapSecrets(app.context.db, next)).toMatchObject({ done: 1, lost: [] });
    expect(await query(app, 'select secret, master_key_id from webhooks')).not.toEqual(before);
    expect(await etag()).toBe(read);
    await ok(app.call('PATCH', hook, { auth: stack.auth, body: { secret: 'second' } }));
    expect(await etag()).not.toBe(read);
  });

  test('a secret that is changed while the keys are replaced stays the new one', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), secret: 'first' });
    const webhooks = createWebhookRepository(app.context.db);
    const [read] = await webhooks.listSecrets(null, null, 1);
    if (!read) throw new Error('no secret');
    await ok(app.call('PATCH', hook, { auth: stack.auth, body: { secret: 'second' } }));
    expect(await webhooks.replaceSecret(read.id, read.encrypted, read)).toBe(false);
    await ok(app.call('POST', `${hook}/ping`, { auth: stack.auth }));
    const { body = '', headers } = receiver.received.at(-1) ?? {};
    expect(headers?.['pulumi-webhook-signature']).toBe(createHmac('sha256', 'second').update(body).digest('hex'));
  });

  test('a secret is kept, replaced and removed', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), secret: 'first' });
    const change = async (body: object) => ok(app.call('PATCH', hook, { auth: stack.auth, body }));
    const signature = async () => {
      await ok(app.call('POST', `${hook}/ping`, { auth: stack.auth }));
      return receiver.received.at(-1)?.headers['pulumi-webhook-signature'];
    };
    const expected = (secret: string) =>
      createHmac('sha256', secret)
        .update(receiver.received.at(-1)?.body ?? '')
        .digest('hex');
    await change({ displayName: 'renamed' });
    expect(await signature()).toBe(expected('first'));
    await change({ secret: 'second' });
    expect(await signature()).toBe(expected('second'));
    // Otherwise the secret would sign for, or go to, the owner of the other server.
    const elsewhere = await app.call('PATCH', hook, {
      auth: stack.auth,
      body: { payloadUrl: 'https://other.example/' },
    });
    expect(elsewhere.status).toBe(400);
    const otherPort = { payloadUrl: 'http://127.0.0.1:1/hook' };
    expect((await app.call('PATCH', hook, { auth: stack.auth, body: otherPort })).status).toBe(400);
    await change({ secret: '__remove-secret' });
    expect(await signature()).toBeUndefined();
  });
});

describe('attempts', () => {
  test('are made again after growing pauses, under the same id and with the same body, until they succeed', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    receiver.answer = () => ({ status: 503, body: 'later' });
    await runUpdate();
    const pauses: number[] = [];
    for (let attempt = 1; attempt <= 4; attempt++) {
      expect(await deliverDue(app)).toBe(1);
      expect(await deliverDue(app)).toBe(0);
      const [row] = await query<{ pause: number }>(
        app,
        'select extract(epoch from next_at - attempted_at)::float8 as pause from webhook_deliveries',
      );
      pauses.push(row?.pause ?? 0);
      await endPauses(app);
    }
    expect(pauses).toEqual([...pauses].sort((one, other) => one - other));
    expect(pauses[0]).toBeGreaterThanOrEqual(4);
    expect(await readLog(app, stack, hook)).toMatchObject([
      { kind: 'update_succeeded', state: 'waiting', responseCode: 503, responseBody: 'later', requestUrl: hookUrl() },
    ]);
    receiver.answer = () => 200;
    expect(await deliverDue(app)).toBe(1);
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(await readLog(app, stack, hook)).toMatchObject([{ state: 'delivered', responseCode: 200 }]);
    await endPauses(app);
    expect(await deliverDue(app)).toBe(0);
  });

  test('end after a day, or when the receiver is gone for good', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    receiver.answer = () => 500;
    await runUpdate();
    let made = 0;
    for (; (await deliverDue(app)) > 0; made++) await endPauses(app);
    expect(made).toBe(11);
    receiver.answer = () => 410;
    await runUpdate();
    await deliverDue(app);
    expect((await readLog(app, stack, hook)).map(({ state }: { state: string }) => state)).toEqual([
      'failed',
      'failed',
    ]);
  });

  test('end after a day if the secret cannot be decrypted, too, and say so', async () => {
    const filters = ['update_succeeded'];
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters, secret: 'lost' });
    await query(app, `update webhooks set secret = '\\x00'`);
    await runUpdate();
    expect(await deliverDue(app)).toBe(1);
    expect(await deliverDue(app)).toBe(0);
    const reason = { responseBody: expect.stringContaining('cannot be decrypted'), requestUrl: '' };
    expect(await readLog(app, stack, hook)).toMatchObject([{ state: 'waiting', ...reason }]);
    await query(app, 'update webhook_deliveries set attempts = 10, next_at = now()');
    await deliverDue(app);
    expect(await readLog(app, stack, hook)).toMatchObject([{ state: 'failed', ...reason }]);
    expect(receiver.received).toEqual([]);
  });

  test('of several workers never overlap, and a slow receiver does not delay another', async () => {
    await createHook(app, stack, 'stack', { displayName: 'slow', payloadUrl: hookUrl('/slow'), groups: ['stacks'] });
    await createHook(app, stack, 'stack', { displayName: 'fast', payloadUrl: hookUrl('/fast'), groups: ['stacks'] });
    // Of events without an update, nothing but the claim keeps the workers apart.
    const created = { displayName: 'created', payloadUrl: hookUrl('/created'), filters: ['stack_created'] };
    await createHook(app, stack, 'organization', created);
    for (const stackName of ['second', 'third'])
      await ok(app.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body: { stackName } }));
    for (let at = 0; at < 6; at++) await runUpdate();
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    receiver.answer = async ({ path }) => {
      if (path !== '/fast') await gate;
      return 200;
    };
    const workers = [1, 2, 3].map(() => new DeliveryLoop(app.context, 'all'));
    const signal = new AbortController().signal;
    const fast = () => receiver.received.filter(({ path }) => path === '/fast').length;
    await until(async () => {
      await Promise.all(workers.map((worker) => worker.begin(signal)));
      return fast() === 6;
    }, 'the other one gets all');
    expect(receiver.received.filter(({ path }) => path === '/slow').length).toBeLessThanOrEqual(4);
    open();
    await Promise.all(workers.map((worker) => worker.settle()));
    await deliverDue(app);
    const ids = receiver.received.map(({ headers, path }) => `${path} ${headers['webhook-id']}`);
    expect(ids).toHaveLength(14);
    expect(new Set(ids).size).toBe(14);
  });

  /** Begins an attempt that its receiver answers by 500 once `open` is called. */
  async function beginHeldAttempt() {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    await runUpdate();
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    receiver.answer = async () => {
      await gate;
      return 500;
    };
    const frozen = new DeliveryLoop(app.context, 'all');
    expect(await frozen.begin(new AbortController().signal)).toBe(1);
    await until(() => receiver.received.length === 1, 'the first attempt');
    return { frozen, hook, open };
  }

  test('of a process that died are made again, and what it records late changes nothing', async () => {
    const { frozen, hook, open } = await beginHeldAttempt();
    expect(await deliverDue(app)).toBe(0);
    // Its claim is over.
    await endPauses(app);
    receiver.answer = () => 200;
    expect(await deliverDue(app)).toBe(1);
    open();
    await frozen.settle();
    expect(await readLog(app, stack, hook)).toMatchObject([{ state: 'delivered', responseCode: 200 }]);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  });

  test('abandoned by a stopping process are made by others', async () => {
    await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    await runUpdate();
    const stop = new AbortController();
    const { promise: never, resolve: open } = Promise.withResolvers<number>();
    receiver.answer = () => never;
    const stopping = new DeliveryLoop(app.context, 'all');
    await stopping.begin(stop.signal);
    await until(() => receiver.received.length === 1, 'the first attempt');
    stop.abort();
    await stopping.settle();
    receiver.answer = () => 200;
    expect(await deliverDue(app)).toBe(1);
    expect(await waiting()).toBe(0);
    open(200);
  });

  test('of a process that died say nothing about the later one, though that waits again', async () => {
    const { frozen, hook, open } = await beginHeldAttempt();
    await endPauses(app);
    receiver.answer = () => 503;
    expect(await deliverDue(app)).toBe(1);
    open();
    await frozen.settle();
    expect(await readLog(app, stack, hook)).toMatchObject([{ state: 'waiting', responseCode: 503 }]);
  });

  test('of a process that stops late are not taken from the one that makes them meanwhile', async () => {
    await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    await runUpdate();
    const { promise: gate, resolve: open } = Promise.withResolvers<number>();
    receiver.answer = () => gate;
    const stop = new AbortController();
    const [late, other] = [new DeliveryLoop(app.context, 'all'), new DeliveryLoop(app.context, 'all')];
    await late.begin(stop.signal);
    await until(() => receiver.received.length === 1, 'the first attempt');
    await endPauses(app);
    await other.begin(new AbortController().signal);
    await until(() => receiver.received.length === 2, 'the second attempt');
    stop.abort();
    await late.settle();
    expect(await deliverDue(app)).toBe(0);
    open(200);
    await other.settle();
    expect(await waiting()).toBe(0);
    expect(receiver.received).toHaveLength(2);
  });

  test('of a process that was stopped for a while before it sent are left to others', async () => {
    await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    await runUpdate();
    const { now } = performance;
    let stoppedMs = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + stoppedMs);
    const findUnusual = async (): Promise<readonly string[]> => {
      stoppedMs = 31_000;
      return [];
    };
    const deliveryAttempts = new DeliveryAttempts({ ...app.context, findUnusual });
    const stopped = new DeliveryLoop({ ...app.context, deliveryAttempts }, 'all');
    try {
      expect(await stopped.begin(new AbortController().signal)).toBe(1);
      await stopped.settle();
    } finally {
      clock.mockRestore();
    }
    expect(receiver.received).toEqual([]);
    expect(await deliverDue(app)).toBe(1);
    expect(receiver.received).toHaveLength(1);
  });

  test('about one update are made one at a time, so that its end does not overtake its start', async () => {
    await createHook(app, stack, 'stack', { payloadUrl: hookUrl() });
    const update = await startUpdate(app, stack);
    const { promise: gate, resolve: open } = Promise.withResolvers<number>();
    receiver.answer = () => gate;
    const [first, second] = [new DeliveryLoop(app.context, 'all'), new DeliveryLoop(app.context, 'all')];
    const signal = new AbortController().signal;
    expect(await first.begin(signal)).toBe(1);
    await ok(complete(app, update));
    try {
      expect(await second.begin(signal)).toBe(0);
    } finally {
      open(200);
      await Promise.all([first.settle(), second.settle()]);
    }
    await deliverDue(app);
    expect(types()).toEqual(['update_started', 'update_succeeded']);
  });

  test('that users ask for are made a few at a time for each organization', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl() });
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    receiver.answer = async () => {
      await gate;
      return 200;
    };
    const pings = Array.from({ length: 25 }, () => app.call('POST', `${hook}/ping`, { auth: stack.auth }));
    expect((await Promise.race(pings)).status).toBe(429);
    expect(receiver.received.length).toBeLessThanOrEqual(4);
    open();
    const statuses = (await Promise.all(pings)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(24);
    expect(receiver.received).toHaveLength(24);
  });

  test('reach no private address and follow no redirect', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    receiver.answer = () => ({ status: 307, headers: { location: hookUrl('/elsewhere') } });
    const ping = async () => (await ok(app.call('POST', `${hook}/ping`, { auth: stack.auth }))).json;
    expect(await ping()).toMatchObject({ responseCode: 307, state: 'failed' });
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook']);
    for (const payloadUrl of [
      'https://127.0.0.1/',
      'https://169.254.169.254/latest',
      'http://example.com/',
      'https://[::1]/',
    ]) {
      await ok(app.call('PATCH', hook, { auth: stack.auth, body: { payloadUrl } }));
      const { responseBody, responseCode } = await ping();
      expect([responseCode, responseBody]).toEqual([0, expect.stringContaining('may not be called')]);
    }
    await using plain = await createTestApp({
      database: app.database,
      overrides: { outgoing: new Outgoing({ allow: { hosts: new Set(), networks: [], plainOrigins: new Set() } }) },
    });
    await ok(app.call('PATCH', hook, { auth: stack.auth, body: { payloadUrl: hookUrl() } }));
    await runUpdate();
    await deliverDue(plain);
    expect(receiver.received).toHaveLength(1);
  });

  test('a long response is a response', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl() });
    receiver.answer = () => ({ status: 200, body: 'x'.repeat(1_000_000) });
    const { json } = await ok(app.call('POST', `${hook}/ping`, { auth: stack.auth }));
    expect([json.responseCode, json.responseBody.length]).toEqual([200, 4096]);
  });

  test('the log has the headers of a response, without cookies', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl() });
    receiver.answer = () => ({ status: 200, headers: { 'x-shown': 'yes', 'set-cookie': 'session=hidden' } });
    const { json } = await ok(app.call('POST', `${hook}/ping`, { auth: stack.auth }));
    expect(json.responseHeaders).toContain('x-shown: yes');
    expect(JSON.stringify(json)).not.toContain('hidden');
  });
});

describe('formats', () => {
  test('Slack and Teams get texts in which names are no links', async () => {
    await createHook(app, stack, 'stack', {
      displayName: 's',
      payloadUrl: hookUrl('/slack'),
      format: 'slack',
      filters: ['update_succeeded'],
    });
    await createHook(app, stack, 'stack', {
      displayName: 't',
      payloadUrl: hookUrl('/teams'),
      format: 'ms_teams',
      filters: ['update_succeeded'],
    });
    await runUpdate();
    await deliverDue(app);
    const bodyOf = (path: string) => JSON.parse(receiver.received.find((each) => each.path === path)?.body ?? '{}');
    expect(bodyOf('/slack').text).toMatch(/^✔ \*org\S+\/proj\/dev\*: update succeeded \(2 create\) by admin-/);
    const [{ content, contentType }] = bodyOf('/teams').attachments;
    expect(contentType).toBe('application/vnd.microsoft.card.adaptive');
    expect(content.body[1].text).toBe('✔ update succeeded \\(2 create\\)');
  });
});

describe('webhooks', () => {
  test('are created, listed, changed and removed as the CLI does it', async () => {
    // What `pulumi stack webhook new` sends (pkg/cmd/pulumi/stack/stack_webhook_new.go).
    const sent = {
      ...{
        organizationName: stack.organization,
        projectName: 'proj',
        stackName: 'dev',
        name: '',
        displayName: 'My Hook',
      },
      ...{
        payloadUrl: 'https://example.com/hook',
        active: true,
        format: 'raw',
        hasSecret: false,
        secretCiphertext: '',
      },
    };
    const hooks = `${stack.path}/hooks`;
    const { json: made } = await ok(
      app.call('POST', hooks, { auth: stack.auth, body: { ...sent, filters: ['update_failed'] } }),
    );
    expect(made).toMatchObject({
      ...sent,
      name: expect.stringMatching(/^[0-9a-f]{8}$/),
      filters: ['update_failed'],
      groups: [],
    });
    expect((await app.call('POST', hooks, { auth: stack.auth, body: sent })).status).toBe(409);
    expect((await ok(app.call('GET', hooks, { auth: stack.auth }))).json).toEqual([made]);
    expect((await ok(app.call('GET', `/api/orgs/${stack.organization}/hooks`, { auth: stack.auth }))).json).toEqual([]);
    const path = `${hooks}/${made.name}`;
    // The CLI sends the whole webhook, and leaves out lists that are empty.
    const { filters, groups, ...whole } = made;
    const { json: edited } = await ok(app.call('PATCH', path, { auth: stack.auth, body: { ...whole, active: false } }));
    expect(edited).toEqual({ ...made, active: false, filters: [] });
    // Others may send what changes only.
    await ok(app.call('PATCH', path, { auth: stack.auth, body: { groups: ['stacks'] } }));
    const { json: changed } = await ok(app.call('PATCH', path, { auth: stack.auth, body: { active: true } }));
    expect(changed).toEqual({ ...made, filters: [], groups: ['stacks'] });
    expect((await app.call('DELETE', path, { auth: stack.auth })).status).toBe(204);
    for (const [method, end] of [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/ping'],
      ['GET', '/deliveries'],
    ] as const)
      expect(
        (await app.call(method, `${path}${end}`, { auth: stack.auth, ...(method === 'PATCH' ? { body: {} } : {}) }))
          .status,
      ).toBe(404);
  });

  test.each([
    [{ payloadUrl: 'ftp://example.com' }, /https/],
    [{ payloadUrl: 'https://me:pw@example.com' }, /password/],
    [{ format: 'pulumi_deployments' }, /format/],
    [{ filters: ['update_exploded'] }, /no event/],
    [{ groups: ['everything'] }, /no group/],
    [{ secret: 'ä' }, /ASCII/],
    [{ secret: 'whsec_short' }, /Base64/],
    [{ name: 'a/b' }, /letters/],
    [{ displayName: '' }, /displayName/],
  ])('%j is refused', async (wrong, message) => {
    const body = { displayName: 'chat', payloadUrl: 'https://example.com', ...wrong };
    const { json, status } = await app.call('POST', `${stack.path}/hooks`, { auth: stack.auth, body });
    expect([status, json.message]).toEqual([400, expect.stringMatching(message)]);
  });

  test('an event is delivered again on request, under its id', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    await runUpdate();
    await deliverDue(app);
    const [{ id, payload }] = await readLog(app, stack, hook);
    expect(payload).toBe(receiver.received[0]?.body);
    const { json } = await ok(app.call('POST', `${hook}/deliveries/${id}/redeliver`, { auth: stack.auth }));
    expect(json).toMatchObject({ kind: 'update_succeeded', payload, responseCode: 200, state: 'delivered' });
    expect(json.requestHeaders).toContain('webhook-id: ');
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    for (const unknown of ['none', '00000000-0000-4000-8000-000000000000'])
      expect((await app.call('POST', `${hook}/deliveries/${unknown}/redeliver`, { auth: stack.auth })).status).toBe(
        404,
      );
    const other = await createHook(app, stack, 'stack', { displayName: 'other', payloadUrl: hookUrl('/other') });
    expect((await app.call('POST', `${other}/deliveries/${id}/redeliver`, { auth: stack.auth })).status).toBe(404);
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook', '/hook']);
  });

  test('go with their stack, and their log with them; those of the organization stay', async () => {
    const own = await createHook(app, stack, 'stack', { payloadUrl: hookUrl('/own') });
    await createHook(app, stack, 'organization', { payloadUrl: hookUrl('/all') });
    await ok(app.call('POST', `${own}/ping`, { auth: stack.auth }));
    receiver.received.length = 0;
    await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
    await deliverDue(app);
    expect(receiver.received.map(({ path }) => path)).toEqual(['/all']);
    expect(receiver.bodies).toMatchObject([{ type: 'stack_deleted', stackName: 'dev' }]);
    await query(app, 'delete from stacks where deleted_at is not null');
    expect(
      await query(app, `select id from webhook_deliveries where webhook_id not in (select id from webhooks)`),
    ).toEqual([]);
  });

  test('of all stacks that an admin may administer are listed page by page, without those of deleted stacks', async () => {
    const { organization } = stack;
    const admin = await person(app, organization, 'admin');
    const named = (name: string) => ({ ...stack, stack: name, path: stack.path.replace('/dev', `/${name}`) });
    for (const name of ['gone', 'other', 'closed'])
      await ok(app.call('POST', `/api/stacks/${organization}/proj`, { auth: stack.auth, body: { stackName: name } }));
    for (const name of ['dev', 'gone', 'other', 'closed'])
      await createHook(app, named(name), 'stack', { name: 'one', payloadUrl: hookUrl(), secret: 'very-hidden' });
    await createHook(app, stack, 'organization', { payloadUrl: hookUrl('/all') });
    await ok(app.call('DELETE', named('gone').path, { auth: stack.auth }));
    await grant(app, admin.organizationId, { userId: admin.userId }, 'deny', ['admin'], { stacks: '*/closed' });
    expect((await app.call('GET', `${named('closed').path}/hooks`, { auth: admin.auth })).status).toBe(403);
    const list = async (more = '') =>
      (await ok(app.call('GET', `/api/orgs/${organization}/stack-hooks${more}`, { auth: admin.auth }))).json;
    const first = await list();
    expect(first).toEqual({ hooks: expect.any(Array) });
    const shown = { organizationName: organization, projectName: 'proj', name: 'one', hasSecret: true };
    expect(first.hooks.map((hook: { stackName: string }) => hook.stackName).sort()).toEqual(['dev', 'other']);
    for (const hook of first.hooks) expect(hook).toMatchObject(shown);
    expect(JSON.stringify(first)).not.toContain('very-hidden');
    await query(
      app,
      `insert into webhooks (organization_id, stack_id, name, display_name, url, format, is_active, events, event_groups)
       select organization_id, stack_id, 'n' || n, 'n' || n, url, format, true, '{}', '{}'
       from webhooks, generate_series(1, 500) n where stack_id = (
         select s.id from stacks s join projects p on p.id = s.project_id where p.organization_id = $1 and s.name = 'other')`,
      [admin.organizationId],
    );
    const denied = await grant(app, admin.organizationId, { userId: admin.userId }, 'deny', ['admin'], {
      stacks: '*/other',
    });
    // The last one of a page is hidden: the position names none of it.
    const rest = [await list()];
    expect(rest[0].continuationToken).not.toMatch(/\/n\d/);
    for (let next = rest[0]; next.continuationToken !== undefined; rest.push(next))
      next = await list(`?continuationToken=${encodeURIComponent(next.continuationToken)}`);
    expect(rest.flatMap(({ hooks }) => hooks.map((hook: { stackName: string }) => hook.stackName))).toEqual(['dev']);
    await query(app, 'delete from grants where id = $1', [denied]);
    const names = new Set<string>();
    let token: string | undefined;
    let pages = 0;
    do {
      const page = await list(token === undefined ? '' : `?continuationToken=${encodeURIComponent(token)}`);
      for (const { name, stackName } of page.hooks) names.add(`${stackName}/${name}`);
      token = page.continuationToken;
      pages++;
    } while (token !== undefined);
    expect([names.size, pages]).toEqual([502, 2]);
    const wrong = `/api/orgs/${organization}/stack-hooks?continuationToken=none`;
    expect((await app.call('GET', wrong, { auth: admin.auth })).status).toBe(400);
  });

  test('events recorded while a webhook was removed are deleted, and block nothing', async () => {
    await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    await runUpdate();
    await query(app, 'alter table webhooks disable trigger webhooks_forgotten');
    await query(app, 'delete from webhooks');
    await query(app, 'alter table webhooks enable trigger webhooks_forgotten');
    expect(await deliverDue(app)).toBe(0);
    await query(app, `update webhook_deliveries set next_at = now() - interval '1 hour'`);
    await deleteOldDeliveries(app.context, new AbortController().signal);
    expect(await waiting()).toBe(0);
  });

  test('a long log of a removed webhook is not deleted at once', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl() });
    await query(
      app,
      `with told as (
         insert into webhook_events (organization_id, organization, event)
         select organization_id, 'o', 'update_succeeded' from webhooks, generate_series(1, 12000) returning id
       )
       insert into webhook_deliveries (webhook_id, event_id, state, next_at)
       select w.id, t.id, case when random() < 0.5 then 'waiting' else 'delivered' end, now() - interval '1 hour' from webhooks w, told t`,
    );
    await ok(app.call('DELETE', hook, { auth: stack.auth }));
    const left = () => query(app, 'select state from webhook_deliveries');
    expect(await left()).toHaveLength(2000);
    expect(await deliverDue(app)).toBe(0);
    const clean = () => deleteOldDeliveries(app.context, new AbortController().signal);
    await clean();
    expect(new Set((await left()).map(({ state }) => state))).toEqual(new Set(['delivered']));
    await query(app, `update webhook_events set occurred_at = occurred_at - interval '31 days'`);
    await clean();
    expect(await left()).toEqual([]);
  });

  test('their log is kept for 30 days, what still waits for longer', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    const clean = () => deleteOldDeliveries(app.context, new AbortController().signal);
    await runUpdate();
    await deliverDue(app);
    await clean();
    expect(await readLog(app, stack, hook)).toHaveLength(1);
    receiver.answer = () => 500;
    await runUpdate();
    await deliverDue(app);
    await query(app, `update webhook_events set occurred_at = occurred_at - interval '31 days'`);
    await query(app, `update webhook_deliveries set attempted_at = attempted_at - interval '31 days'`);
    await clean();
    expect(await readLog(app, stack, hook)).toMatchObject([{ state: 'waiting' }]);
  });

  test('the log of an old event that was delivered again lately is kept', async () => {
    const hook = await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    await runUpdate();
    await deliverDue(app);
    await query(app, `update webhook_events set occurred_at = occurred_at - interval '31 days'`);
    await query(app, `update webhook_deliveries set attempted_at = attempted_at - interval '31 days'`);
    const [{ id }] = await readLog(app, stack, hook);
    await ok(app.call('POST', `${hook}/deliveries/${id}/redeliver`, { auth: stack.auth }));
    await deleteOldDeliveries(app.context, new AbortController().signal);
    expect(await readLog(app, stack, hook)).toHaveLength(2);
  });

  test('what has been due for long is still delivered after the log was cleaned', async () => {
    await createHook(app, stack, 'stack', { payloadUrl: hookUrl(), filters: ['update_succeeded'] });
    await runUpdate();
    await query(app, `update webhook_deliveries set next_at = now() - interval '1 day'`);
    await deleteOldDeliveries(app.context, new AbortController().signal);
    expect(await deliverDue(app)).toBe(1);
    expect(types()).toEqual(['update_succeeded']);
  });

  test('the audit log has their server, not the path of the URL, nor the secret', async () => {
    await createHook(app, stack, 'stack', { payloadUrl: hookUrl('/services/T0/hidden'), secret: 'very-hidden' });
    const events = await query<{ details: string; object: string }>(
      app,
      `select details, object from audit_events where action = 'webhook.create' and organization = $1`,
      [stack.organization],
    );
    expect(events).toHaveLength(1);
    expect(events[0]?.details).toContain(receiver.url);
    expect(JSON.stringify(events) + logged.join('')).not.toContain('hidden');
  });
});
