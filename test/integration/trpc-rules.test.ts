import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ruleKindNames } from '../../src/shared/updates/rules/rule-kinds.ts';
import { limitedKinds, queueKinds, retentionKinds } from '../../src/web/updates/rules/rule-labels.ts';
import { until } from '../../testkit/until.ts';
import { query } from '../support/database.ts';
import { grant, type Person, person } from '../support/grants.ts';
import { ask, command } from '../support/procedures.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const receiver = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(202).end('<b>taken</b>'));
});
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
afterAll(() => void receiver.close());
const target = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;

const app = testApp({ settings: { HOLDFAST_OUTGOING_ALLOW: target } });
let stack: TestStack;
let token: string;
let reviewer: Person;

const tokenOf = (auth: string) => auth.slice('token '.length);
const inOrganization = () => ({ organization: stack.organization });
const ofStack = () => ({ organization: stack.organization, project: stack.project, stack: stack.stack });
const get = async (name: string, input: object = {}, as = token) => {
  const { data, error } = await ask(app, as, name, { ...inOrganization(), ...input });
  expect(error).toBeNull();
  return data;
};
const change = async (name: string, input: object = {}, as = token) => {
  const { data, error } = await command(app, as, name, { ...inOrganization(), ...input });
  expect(error).toBeNull();
  return data;
};
/** All items of a list, page by page, each of which must be full but the last one. */
async function listAll(name: string, input: object = {}, limit = 2) {
  // biome-ignore lint/suspicious/noExplicitAny: items of every shape.
  const items: any[] = [];
  for (let cursor: string | null = null; ; ) {
    const page: { items: unknown[]; next: string | null } = await get(name, { ...input, limit, cursor });
    items.push(...page.items);
    if (page.next === null) return items;
    expect(page.items).toHaveLength(limit);
    cursor = page.next;
  }
}
async function lastAudit(action: string) {
  const { items } = await get('audit.list', { action });
  return items[0];
}

beforeAll(async () => {
  stack = await createStack(app);
  token = tokenOf(stack.auth);
  reviewer = await person(app, stack.organization, 'admin');
});

test('rules are set, listed page by page, and removed', async () => {
  const freeze = await change('rules.set', {
    kind: 'freeze',
    tag: { name: 'zone', value: 'eu' },
    settings: { until: '2099-01-01T00:00:00Z' },
    note: 'Sale',
  });
  expect(freeze).toMatchObject({ kind: 'freeze', scope: 'stacks with the tag zone=eu', note: 'Sale', project: null });
  const windows = [{ cron: '0 17 * * 5', timeZone: 'Europe/Berlin', minutes: 60 }];
  await change('rules.set', { kind: 'freeze', settings: { windows, until: '2000-01-01T00:00:00Z' } });
  await change('rules.set', { kind: 'freeze', settings: { windows } });
  const { id } = await change('rules.set', { kind: 'change-limit', project: 'proj', settings: { changes: 2 } });
  const again = { kind: 'change-limit', project: 'proj', settings: { changes: 3 } };
  expect(await get('rules.preview', again)).toMatchObject({ replaces: id });
  expect(await get('rules.preview', { ...again, project: 'other' })).toMatchObject({ replaces: null });
  expect(await get('rules.preview', { kind: 'freeze', settings: { windows } })).toMatchObject({ replaces: null });
  expect((await change('rules.set', again)).id).toBe(id);
  for (const stackName of ['a', 'b'])
    await change('rules.set', { kind: 'lock-wait', project: 'proj', stack: stackName, settings: { seconds: 1 } });

  const all = await listAll('rules.list');
  expect(all.map(({ kind, scope }) => `${kind} ${scope}`)).toEqual([
    'change-limit project proj',
    `freeze organization ${stack.organization}`,
    `freeze organization ${stack.organization}`,
    'freeze stacks with the tag zone=eu',
    'lock-wait stack proj/a',
    'lock-wait stack proj/b',
  ]);
  const [, over, weekly, sale] = all;
  expect(over.freeze).toEqual({ inForce: null, next: [] });
  expect(weekly.freeze.next).toHaveLength(3);
  const [first, second] = weekly.freeze.next;
  expect(Date.parse(first.until) - Date.parse(first.from)).toBe(3_600_000);
  // A week apart, but for the hour that a clock change takes or gives.
  expect(Math.round((Date.parse(second.from) - Date.parse(first.from)) / 86_400_000)).toBe(7);
  expect(
    new Date(first.from).toLocaleString('en', { timeZone: 'Europe/Berlin', weekday: 'long', hour: 'numeric' }),
  ).toMatch(/Friday.*5.PM/);
  expect(sale).toMatchObject({ freeze: { inForce: { until: '2099-01-01T00:00:00.000Z' }, next: [] } });
  expect(sale.setBy).toBe((await get('me.get')).login);
  expect((await get('rules.list', { kinds: ['change-limit', 'lock-wait'] })).items).toHaveLength(3);

  expect(await lastAudit('update-rule.set')).toMatchObject({ outcome: 'done', object: 'stack proj/b' });
  for (const rule of all) await change('rules.remove', { ruleId: rule.id });
  expect(await lastAudit('update-rule.remove')).toMatchObject({ outcome: 'done', object: 'stack proj/b' });
  expect(await get('rules.list')).toEqual({ items: [], next: null });
  expect(await command(app, token, 'rules.remove', { ...inOrganization(), ruleId: sale.id })).toMatchObject({
    status: 404,
  });
});

test('a rule is tried before it is set', async () => {
  await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { zone: 'eu' } }));
  const windows = [{ cron: '30 6 * * *', timeZone: 'UTC', minutes: 5 }];
  const seen = await get('rules.preview', {
    kind: 'freeze',
    tag: { name: 'zone', value: 'eu' },
    settings: { windows },
  });
  expect(seen).toMatchObject({
    scope: 'stacks with the tag zone=eu',
    ...{ stackCount: 1, hasMoreStacks: false, stacks: [{ project: stack.project, stack: stack.stack }] },
  });
  expect(seen.freeze.next.map(({ from }: { from: string }) => from.slice(11, 16))).toEqual(['06:30', '06:30', '06:30']);
  expect(await get('rules.preview', { kind: 'lock-wait', project: 'none', settings: { seconds: 1 } })).toMatchObject({
    ...{ stackCount: 0, stacks: [], freeze: null },
  });
  const refused = await ask(app, token, 'rules.preview', {
    ...inOrganization(),
    ...{ kind: 'freeze', settings: { windows: [{ cron: '61 * * * *', timeZone: 'UTC', minutes: 5 }] } },
  });
  expect(refused).toMatchObject({ status: 400, error: { message: expect.stringContaining('is not valid') } });
  expect(await get('rules.list')).toEqual({ items: [], next: null });

  const denied = await person(app, stack.organization, 'admin');
  await grant(app, denied.organizationId, { userId: denied.userId }, 'deny', ['read']);
  expect(
    await get('rules.preview', { kind: 'lock-wait', settings: { seconds: 1 } }, tokenOf(denied.auth)),
  ).toMatchObject({ stackCount: 0, stacks: [] });
});

test('a frozen stack names the rule', async () => {
  const mine = { project: stack.project, stack: stack.stack };
  const rule = await change('rules.set', { kind: 'freeze', ...mine, settings: {}, note: 'Migration' });
  expect((await get('stacks.get', mine)).frozen).toEqual({
    ...{ ruleId: rule.id, scope: 'stack proj/dev', isOfStackAlone: true, note: 'Migration', until: null },
  });
  await change('rules.remove', { ruleId: rule.id });
  expect((await get('stacks.get', mine)).frozen).toBeNull();
});

test('approvals are requested, and given by other users than the requesters', async () => {
  const commits = ['a', 'b', 'c'].map((letter) => letter.repeat(40));
  for (const commit of commits)
    await change('approvals.ask', { ...ofStack(), commit, reason: `Because of ${commit[0]}` });
  const asked = await listAll('approvals.list');
  expect(asked.map(({ commit }) => commit)).toEqual([...commits].reverse());
  expect(asked[0]).toMatchObject({
    ...{ project: stack.project, stack: stack.stack, kind: 'update', request: 'Because of c', isValid: false },
    ...{ mayGive: false, refusal: expect.stringContaining('Another user'), updateId: null, approvedAt: null },
  });
  const given = { ...ofStack(), approvalId: asked[0].id, reason: 'Reviewed', minutes: 5 };
  expect(await command(app, token, 'approvals.give', given)).toMatchObject({ status: 403 });
  expect(await lastAudit('approval.give')).toMatchObject({ outcome: 'refused' });
  const other = tokenOf(reviewer.auth);
  expect((await get('approvals.ofStack', ofStack(), other)).items[0]).toMatchObject({ mayGive: true, refusal: null });
  await change('approvals.give', given, other);
  expect(await get('approvals.list', { given: true })).toMatchObject({
    items: [{ commit: commits[2], isValid: true, reason: 'Reviewed', approvedBy: reviewer.login }],
    next: null,
  });
  expect(await listAll('approvals.ofStack', { ...ofStack(), given: false })).toHaveLength(2);
  // The page of a preview has the request of its commit, however many are newer.
  const ofCommit = { ...ofStack(), given: false, commit: commits[0], limit: 1 };
  expect((await get('approvals.ofStack', ofCommit)).items).toMatchObject([{ commit: commits[0] }]);

  const viewer = await person(app, stack.organization, 'viewer');
  expect((await get('approvals.list', { given: false }, tokenOf(viewer.auth))).items[0]).toMatchObject({
    ...{ mayGive: false, refusal: null },
  });
  await grant(app, viewer.organizationId, { userId: viewer.userId }, 'deny', ['read']);
  expect((await get('approvals.list', {}, tokenOf(viewer.auth))).items).toEqual([]);
});

test('webhooks are made, changed, tried and removed, and their secrets are never shown', async () => {
  for (const place of [
    { call: 'webhooks', of: {} },
    { call: 'webhooks.ofStack', of: ofStack() },
  ]) {
    const { call, of } = place;
    const hook = { url: `${target}/hook`, format: 'raw', isActive: true, events: [], groups: [] };
    const made = await change(`${call}.create`, { ...of, ...hook, displayName: 'Alerts', secret: 'very-secret-word' });
    expect(made).toMatchObject({ displayName: 'Alerts', hasSecret: true });
    for (const displayName of ['Beta', 'Gamma']) await change(`${call}.create`, { ...of, ...hook, displayName });
    const listed = await listAll(`${call}.list`, of);
    expect(listed.map(({ displayName }) => displayName)).toEqual(['Alerts', 'Beta', 'Gamma']);
    expect(JSON.stringify([made, listed])).not.toMatch(/very-secret|"encrypted"|masterKeyId/);

    const one = { ...of, webhook: made.name };
    const ping = await change(`${call}.ping`, one);
    expect(ping).toMatchObject({
      event: 'ping',
      state: 'delivered',
      responseStatus: 202,
      responseBody: '<b>taken</b>',
    });
    expect(JSON.parse(ping.payload)).toMatchObject({ type: 'ping' });
    const again = await change(`${call}.redeliver`, { ...one, deliveryId: ping.id });
    expect(again.payload).toBe(ping.payload);
    await change(`${call}.ping`, one);
    const log = await listAll(`${call}.deliveries`, one);
    expect(log.map(({ event, state }) => [event, state])).toEqual(Array(3).fill(['ping', 'delivered']));
    expect(log[1]).toMatchObject({ id: again.id, isManual: true, attempts: 1, responseStatus: 202 });
    expect(JSON.stringify(log)).not.toContain('taken');
    const shown = await get(`${call}.delivery`, { ...one, deliveryId: again.id });
    expect(shown).toEqual(again);
    expect(JSON.stringify(shown)).not.toContain('very-secret');
    expect(shown.requestHeaders).toContain('webhook-signature');

    expect(await change(`${call}.change`, { ...one, ...hook, displayName: 'Alarms', isActive: false })).toMatchObject({
      ...{ displayName: 'Alarms', isActive: false, hasSecret: true },
    });
    expect(await change(`${call}.change`, { ...one, ...hook, displayName: 'Alarms', secret: null })).toMatchObject({
      hasSecret: false,
    });
    const others = await ask(app, token, `${call}.delivery`, {
      ...inOrganization(),
      ...{ ...of, webhook: listed[1].name, deliveryId: ping.id },
    });
    expect(others).toMatchObject({ status: 404 });
    await change(`${call}.remove`, one);
    expect(await lastAudit('webhook.remove')).toMatchObject({ outcome: 'done' });
    expect(await get(`${call}.list`, of)).toMatchObject({ items: [{}, {}] });
  }
  expect(await lastAudit('webhook.ping')).toMatchObject({ outcome: 'done' });
});

test('admins of the organization do not reach webhooks of a stack by naming it', async () => {
  const hook = {
    url: `${target}/own`,
    format: 'raw',
    isActive: true,
    events: [],
    groups: [],
    displayName: 'Of the stack',
  };
  const { name } = await change('webhooks.ofStack.create', { ...ofStack(), ...hook });
  const { items } = await get('webhooks.list', ofStack());
  expect(items.map(({ displayName }: { displayName: string }) => displayName)).not.toContain('Of the stack');
  for (const call of ['webhooks.get', 'webhooks.deliveries'])
    expect(await ask(app, token, call, { ...ofStack(), webhook: name })).toMatchObject({ status: 404 });
});

test('packs are enabled in groups, and groups have stacks', async () => {
  const { organizationId } = reviewer;
  for (const name of ['costs', 'names', 'regions']) {
    await query(
      app,
      `with pack as (insert into policy_packs (organization_id, name, last_version) values ($1, $2, 2) returning id)
       insert into policy_pack_versions (pack_id, version, version_tag, display_name, description, sha256, size_bytes, stored_bytes, codec,
         inline_bytes, published_at)
       select id, n, '0.0.' || n, $2 || ' pack', '{"policies":[{"name":"no-public"}]}', '\\x00', 1, 1, 'none', '\\x00', now()
       from pack, generate_series(1, 2) n`,
      [organizationId, name],
    );
  }
  for (const group of ['zebra', 'audit']) await change('policies.createGroup', { group });
  expect((await listAll('policies.groups', {}, 1)).map(({ name }) => name)).toEqual([
    ...['default-policy-group', 'audit', 'zebra'],
  ]);
  const config = { 'no-public': 'advisory' };
  await change('policies.changeGroup', { group: 'audit', enable: { pack: 'names', tag: '0.0.1', config } });
  // Another version keeps the newest configuration, whatever the caller has read.
  const stricter = { 'no-public': 'mandatory' };
  const packsOf = async () => (await get('policies.group', { group: 'audit' })).packs;
  await change('policies.changeGroup', { group: 'audit', enable: { pack: 'names', tag: '0.0.1', config: stricter } });
  await change('policies.changeGroup', { group: 'audit', enable: { pack: 'names', tag: '0.0.2' } });
  expect(await packsOf()).toMatchObject([{ versionTag: '0.0.2', config: stricter }]);
  await change('policies.changeGroup', { group: 'audit', enable: { pack: 'names', config: {} } });
  expect(await packsOf()).toMatchObject([{ versionTag: '0.0.2', config: {} }]);
  // Another admin has seen another version, or that it was not enabled.
  for (const of of [
    { enable: { pack: 'names', tag: '0.0.1', seen: '0.0.1' } },
    { enable: { pack: 'names', tag: '0.0.1', seen: null } },
    { disable: { pack: 'names', seen: '0.0.1' } },
  ]) {
    const input = { ...inOrganization(), group: 'audit', ...of };
    expect(await command(app, token, 'policies.changeGroup', input)).toMatchObject({
      status: 409,
      error: { kind: 'edit-conflict', message: expect.stringContaining('the version of names in this group') },
    });
  }
  const seen = { pack: 'names', tag: '0.0.1', config, seen: '0.0.2' };
  await change('policies.changeGroup', { group: 'audit', enable: seen });
  await change('policies.changeGroup', { group: 'audit', enable: { pack: 'costs', seen: null } });
  await change('policies.changeGroup', { group: 'audit', disable: { pack: 'costs', seen: '0.0.2' } });
  await change('policies.changeGroup', { group: 'audit', addStack: { project: stack.project, stack: stack.stack } });
  expect(await get('policies.group', { group: 'audit' })).toEqual({
    ...{ name: 'audit', isDefault: false },
    packs: [{ name: 'names', displayName: 'names pack', versionTag: '0.0.1', config }],
  });
  const packs = await listAll('policies.packs');
  expect(packs.map(({ name }) => name)).toEqual(['costs', 'names', 'regions']);
  expect(packs[1]).toMatchObject({
    ...{ versionCount: 2, groups: [{ group: 'audit', tag: '0.0.1' }] },
    versions: [{ version: 2, tag: '0.0.2' }, { version: 1 }],
  });
  expect(await get('policies.groupStacks', { group: 'audit' })).toEqual({
    items: [{ project: stack.project, stack: stack.stack }],
    next: null,
  });
  expect(await lastAudit('policy-group.change')).toMatchObject({ outcome: 'done' });
  await change('policies.changeGroup', {
    group: 'audit',
    disable: { pack: 'names' },
    removeStack: { project: stack.project, stack: stack.stack },
  });
  expect(await get('policies.group', { group: 'audit' })).toMatchObject({ packs: [] });
  expect(await get('policies.groupStacks', { group: 'audit' })).toEqual({ items: [], next: null });
  await change('policies.removeGroup', { group: 'zebra' });
  expect(await get('policies.groups')).toMatchObject({ items: [{ isDefault: true }, { name: 'audit' }], next: null });
});

const endless = '9'.repeat(19);
const id = '00000000-0000-4000-8000-000000000000';
test.each([
  ['approvals.list', [endless, id]],
  ['approvals.list', ['1', 'none']],
  ['stacks.list', [endless, id]],
  ['stacks.list', ['1', 'none']],
  ['rules.list', ['freeze', '', '', '', '', endless, id]],
  ['rules.list', ['freeze', '', '', '', '', '1', 'none']],
  ['ci.refusals', [endless, '1']],
  ['ci.drift', ['1', 'none']],
  ['operator.locks', [endless, id]],
  ['operator.organizations', [1.5, 'a']],
  ['operator.organizations', [1e300, 'a']],
])('a cursor of %s that no list has returned is refused: %j', async (name, position) => {
  await query(app, `update users set site_admin = true where login = $1`, [reviewer.login]);
  const cursor = Buffer.from(JSON.stringify(position)).toString('base64url');
  const { error } = await ask(app, reviewer.token, name, { ...inOrganization(), days: 7, cursor });
  expect(error).toMatchObject({ code: 'BAD_REQUEST', message: expect.stringContaining('cursor') });
});

test('limits are shown with what is used', async () => {
  const { organizationId } = reviewer;
  await query(app, 'insert into organization_quotas (organization_id, stacks, updates) values ($1, 7, 0)', [
    organizationId,
  ]);
  await query(
    app,
    `insert into organization_storage (organization_id, day, state_bytes, journal_bytes, event_bytes, measured_at, took_ms)
     values ($1, current_date, 12000, 300, 45, now(), 0)`,
    [organizationId],
  );
  // Limits are a few seconds old.
  await until(async () => (await get('limits.get')).items[0].limit === 7, 'the limits are read', {
    timeoutMs: 120_000,
  });
  const seen = await get('limits.get');
  // Of earlier tests.
  const [packs] = await query<{ bytes: number }>(
    app,
    `select coalesce(sum(coalesce(v.stored_bytes, 0) + pg_column_size(v.description)), 0)::int as bytes
     from policy_packs p join policy_pack_versions v on v.pack_id = p.id where p.organization_id = $1`,
    [organizationId],
  );
  expect(seen.items).toEqual([
    { name: 'stacks', limit: 7, used: 1 },
    { name: 'keptBytes', limit: null, used: 12_345 + (packs?.bytes ?? 0) },
    { name: 'inFlightBytes', limit: null, used: 0 },
    { name: 'updates', limit: null, used: 0 },
    { name: 'requestsPerSecond', limit: null, used: null },
  ]);
  expect(seen.measuredAt).toMatch(/Z$/);
  // Only days within the last 90, of this organization.
  await query(
    app,
    `insert into organization_storage (organization_id, day, state_bytes, journal_bytes, event_bytes)
     select o.id, (now() at time zone 'UTC')::date - n, 100 - n, 2, 3 from organizations o, unnest(array[120, 30, 20]) n`,
  );
  const days = (await get('limits.get')).days.filter(({ eventBytes }: { eventBytes: number }) => eventBytes === 3);
  expect(days.map(({ stateBytes }: { stateBytes: number }) => stateBytes)).toEqual([70, 80]);
  expect(Object.keys(seen.requestsPerMinute)).toEqual(['token', 'user', 'address']);
});

test('each kind of rule appears on the page of rules', () => {
  expect(['freeze', ...queueKinds, ...limitedKinds, ...retentionKinds].sort()).toEqual([...ruleKindNames].sort());
});
