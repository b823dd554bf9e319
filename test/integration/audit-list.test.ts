import { beforeAll, describe, expect, test } from '@jest/globals';
import { defaultListBounds } from '../../src/api/audit/audit-service.ts';
import { operatorSource } from '../../src/shared/audit/audit-event.ts';
import { createAuditRepository } from '../../src/shared/audit/audit-repository.ts';
import { listEvents } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { ask } from '../support/procedures.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
let stack: TestStack;
const count = 230;

interface Listed {
  readonly auditLogEvents: readonly {
    readonly number: number;
    readonly event: string;
    readonly timestamp: number;
    readonly user: { readonly githubLogin: string };
  }[];
  readonly continuationToken?: string;
}

const get = (path: string, auth = stack.auth) =>
  app.call('GET', `/api/orgs/${stack.organization}/auditlogs${path}`, { auth });
const list = async (search = ''): Promise<Listed> => (await ok(get(search))).json;

beforeAll(async () => {
  stack = await createStack(app);
  const rows = createAuditRepository(app.context.db);
  for (let at = 0; at < count; at++) {
    const action = at % 10 === 0 ? 'organization.quota' : 'member.add';
    await rows.insert(operatorSource('root'), { action, organization: stack.organization, object: `o${at}` });
  }
  // Many events at the same time, in pages of 100.
  await query(app, `update audit_events set occurred_at = date_trunc('second', occurred_at) where actor = 'operator'`);
});

describe('the list', () => {
  test('has all events once, newest first, in pages', async () => {
    const numbers: number[] = [];
    let token: string | undefined;
    let pages = 0;
    do {
      const page = await list(token ? `?continuationToken=${token}` : '');
      numbers.push(...page.auditLogEvents.map(({ number }) => number));
      token = page.continuationToken;
      pages++;
    } while (token !== undefined);
    const stored = await query<{ number: string }>(
      app,
      'select number from audit_events where organization = $1 order by occurred_at desc, number desc',
      [stack.organization],
    );
    expect(numbers).toEqual(stored.map(({ number }) => Number(number)));
    expect(numbers.length).toBe(count + 1);
    expect(pages).toBe(3);
  });

  test('can be filtered by action, user and time', async () => {
    expect((await list('?eventType=organization.quota')).auditLogEvents.length).toBe(count / 10);
    const [created, ...others] = (await list('?eventType=stack.create')).auditLogEvents;
    expect(others).toEqual([]);
    const { githubLogin } = created?.user ?? { githubLogin: '' };
    expect((await list(`?user=${githubLogin}`)).auditLogEvents).toMatchObject([{ event: 'stack.create' }]);
    expect((await list('?user=root')).auditLogEvents).toEqual([]);
    expect((await list('?user=operator:root&eventType=member.add')).auditLogEvents.length).toBe(100);
    expect((await list(`?startTime=${(created?.timestamp ?? 0) - 5}`)).auditLogEvents).toEqual([]);
    expect((await list('?startTime=2199-01-01T00:00:00Z')).auditLogEvents.length).toBe(100);
  });

  test('can be filtered from and up to a time with v2', async () => {
    const filtered = async (search: string) => (await list(`/v2?${search}`)).auditLogEvents;
    const [created] = await filtered('eventFilter=stack.create');
    const { timestamp = 0, user } = created ?? {};
    expect(await filtered(`userFilter=${user?.githubLogin}`)).toMatchObject([{ event: 'stack.create' }]);
    const ofCreation = 'eventFilter=stack.create';
    const found = async (range: string) => (await filtered(`${ofCreation}&${range}`)).length;
    expect(await found(`startTime=${timestamp}&endTime=${timestamp}`)).toBe(1);
    expect(await found(`startTime=${timestamp + 1}`)).toBe(0);
    expect(await found(`endTime=${timestamp - 1}`)).toBe(0);
    expect(await found('startTime=2199-01-01T00:00:00Z')).toBe(0);
    const page = await list('/v2?eventFilter=member.add');
    expect(page.auditLogEvents.length).toBe(100);
    const next = await list(`/v2?eventFilter=member.add&continuationToken=${page.continuationToken}`);
    expect(next.auditLogEvents[0]?.number).toBeLessThan(page.auditLogEvents.at(-1)?.number as number);
    const csv = (await ok(get(`/v2/export?${ofCreation}&startTime=${timestamp}&endTime=${timestamp}`))).text;
    expect(csv.trimEnd().split('\r\n').length).toBe(2);
  });

  test('never scans more than a few thousand events for a page', async () => {
    const busy = await createStack(app);
    await query(
      app,
      `insert into audit_events (organization_id, organization, action, outcome, actor, login, token_name, sign_in, role, granted_by, address,
         user_agent, ci_run, object, request_id, details)
       select id, name, case when n = 1 then 'organization.quota' else 'member.add' end, 'done', case when n = 2 then 'server' else 'user' end,
         case when n = 2 then '' else 'busy' end, '', '', '', '', '', '', '', '', '', '{}'
       from organizations, generate_series(1, 6000) n where name = $1 order by n`,
      [busy.organization],
    );
    const { organization } = busy;
    for (const filter of [{ actor: 'server:' }, { actor: 'busy', action: 'organization.quota' }]) {
      const find = async (more = {}) =>
        (await ask(app, busy.auth.replace('token ', ''), 'audit.list', { organization, ...filter, ...more })).data;
      const first = await find();
      expect(first).toEqual({ items: [], next: expect.any(String) });
      expect((await find({ cursor: first.next })).items).toHaveLength(1);
    }
    const path = `/api/orgs/${busy.organization}/auditlogs?user=busy&eventType=member.add`;
    const { json } = await ok(app.call('GET', path, { auth: busy.auth }));
    expect(json.auditLogEvents).toHaveLength(100);
  });

  test('is searched until a page is full: the CLI reads one, and ends at an empty one', async () => {
    const busy = await createStack(app);
    await query(
      app,
      `insert into audit_events (occurred_at, organization_id, organization, action, outcome, actor, login, token_name, sign_in, role,
         granted_by, address, user_agent, ci_run, object, request_id, details)
       select now() - interval '1 hour' + n * interval '700 microseconds', id, name, case when n in (1, 2, 5900) then 'token.create' else 'member.add' end, 'done', 'user',
         'busy', '', '', '', '', '', '', '', '', '', '{}'
       from organizations, generate_series(1, 12000) n where name = $1 order by n`,
      [busy.organization],
    );
    const { organization } = busy;
    for (const filters of [
      'auditlogs?user=busy&eventType=token.create',
      'auditlogs/v2?userFilter=busy&eventFilter=token.create',
    ]) {
      const { headers, json } = await ok(app.call('GET', `/api/orgs/${organization}/${filters}`, { auth: busy.auth }));
      expect(json.auditLogEvents).toHaveLength(3);
      expect(json.continuationToken).toBeUndefined();
      expect(headers).not.toHaveProperty('x-pulumi-warning');
    }

    const { fillMs } = defaultListBounds;
    try {
      Object.assign(defaultListBounds, { fillMs: 0 });
      const path = `/api/orgs/${organization}/auditlogs/v2?userFilter=busy&eventFilter=token.create`;
      const first = await ok(app.call('GET', path, { auth: busy.auth }));
      expect(first.json).toEqual({ auditLogEvents: [], continuationToken: expect.any(String) });
      const warning = first.headers['x-pulumi-warning'];
      const [, since = ''] = /^No event since (\S+Z) matches.*--all.*--end-time/.exec(warning as string) ?? [];
      const some = await ok(app.call('GET', `${path}&endTime=${since}`, { auth: busy.auth }));
      expect(some.json.auditLogEvents).toHaveLength(1);
      expect(some.headers['x-pulumi-warning']).toMatch(/may be more events before \S+Z.*--all.*--end-time/);
      // `pulumi api --all` would take an empty page for the end, without the warning.
      const headersOf = { 'user-agent': 'pulumi-cli/1 (3.276.0; linux; cmd=api)' };
      const byApi = await app.call('GET', path, { auth: busy.auth, headers: headersOf });
      expect([byApi.status, byApi.json.message]).toEqual([
        400,
        expect.stringMatching(`continue with endTime=${since}`),
      ]);
      await ok(app.call('GET', `${path}&endTime=${since}`, { auth: busy.auth, headers: headersOf }));
      // CLIs that call the first version have no --end-time: their --start-time is the end.
      const older = `/api/orgs/${organization}/auditlogs?user=busy&eventType=token.create`;
      const { headers } = await ok(app.call('GET', older, { auth: busy.auth }));
      expect(headers['x-pulumi-warning']).toMatch(`continue with --start-time ${since}`);

      // As the CLI does with --all.
      const found: number[] = [];
      for (let page = first; ; ) {
        found.push(page.json.auditLogEvents.length);
        const { continuationToken } = page.json;
        if (continuationToken === undefined) break;
        page = await ok(app.call('GET', `${path}&continuationToken=${continuationToken}`, { auth: busy.auth }));
      }
      expect(found).toEqual([0, 1, 2]);
    } finally {
      Object.assign(defaultListBounds, { fillMs });
    }
  });

  test('rejects filters that are not valid', async () => {
    const years = ['?startTime=0000-01-01', '?startTime=9999-12-31T23:59:59-14:00'];
    for (const search of [
      ...years,
      '?startTime=yesterday',
      '?continuationToken=x',
      '?user=%00',
      '/export?format=xml',
      '/v2?endTime=later',
    ])
      expect({ search, status: (await get(search)).status }).toEqual({ search, status: 400 });
  });

  test('is for admins of the organization only', async () => {
    for (const [organization, role, status] of [
      [stack.organization, 'member', 403],
      ['elsewhere', 'admin', 404],
    ] as const) {
      const auth = `token ${await app.createUser(organization, role)}`;
      expect([(await get('', auth)).status, (await get('/export', auth)).status]).toEqual([status, status]);
    }
  });
});

test('an export has all events and is itself on record', async () => {
  const csv = await ok(get('/export'));
  expect(csv.headers['content-type']).toBe('text/csv; charset=utf-8');
  const before = (await listEvents(app, stack.organization)).length;
  // With the header, and an event of this export or of a refused one before.
  expect(csv.text.trimEnd().split('\r\n').length).toBe(before + 1);
  const lines = (await ok(get('/export?format=jsonl&eventType=audit.export'))).text.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
    expect.objectContaining({ event: 'audit.export', outcome: 'done', details: { format: 'csv' } }),
  );
  expect((await ok(get('/export?format=cef'))).text).toMatch(/^CEF:0\|Holdfast\|Holdfast\|/);
});
