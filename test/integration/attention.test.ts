import { beforeAll, describe, expect, test } from '@jest/globals';
import { AttentionQueries } from '../../src/api/stacks/attention-queries.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { ask, command } from '../support/procedures.ts';
import { callerOf } from '../support/stack-state.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { cancel, complete } from '../support/update-calls.ts';
import { removeRule, setRule } from '../support/update-rules.ts';

const app = testApp();
const commit = 'c'.repeat(40);
/** A fresh organization, and its admin. */
let stack: TestStack;
let token: string;

/** Another stack of the organization. */
async function another(project: string, name: string): Promise<TestStack> {
  const of = { ...stack, project, stack: name, path: `/api/stacks/${stack.organization}/${project}/${name}` };
  const at = `/api/stacks/${stack.organization}/${project}`;
  await ok(app.call('POST', at, { auth: stack.auth, body: { stackName: name } }));
  return of;
}

async function run(
  on: TestStack,
  status: 'succeeded' | 'failed' | 'cancelled',
  kind = 'update',
): Promise<RunningUpdate> {
  const update = await startUpdate(app, on, { kind });
  await ok(status === 'cancelled' ? cancel(app, on, update) : complete(app, update, status));
  return update;
}

/** What a person sees, by kind: the stacks, and the count if it differs from their number. */
async function seenBy(by: string, input: object = {}): Promise<Record<string, string[]>> {
  const { data } = await ask(app, by, 'stacks.attention', input);
  const kinds = Object.entries(data as Record<string, { items: { project: string; stack: string }[]; count: number }>);
  return Object.fromEntries(
    kinds
      .filter(([, group]) => Array.isArray(group.items))
      .map(([kind, { count, items }]) => [
        kind,
        [...items.map((item) => `${item.project}/${item.stack}`), ...(count === items.length ? [] : [`of ${count}`])],
      ]),
  );
}

const nothing = { failed: [], interrupted: [], drifted: [], approvals: [], frozen: [], queued: [] };

beforeAll(async () => {
  stack = await createStack(app);
  token = stack.auth.slice('token '.length);
});

describe('what needs attention', () => {
  test('is nothing while all is well, and each kind until it is over', async () => {
    expect(await seenBy(token)).toEqual(nothing);
    const web = await another('web', 'prod');
    const failed = await run(web, 'failed');
    expect(await seenBy(token)).toEqual({ ...nothing, failed: ['web/prod'] });
    expect((await ask(app, token, 'stacks.attention')).data.failed.items).toMatchObject([
      { organization: stack.organization, updateId: failed.id, version: 1, kind: 'update', since: expect.any(String) },
    ]);
    // A preview decides nothing.
    await run(web, 'succeeded', 'preview');
    expect((await seenBy(token))['failed']).toEqual(['web/prod']);
    // Nor does an update that never started.
    const { json } = await ok(app.call('POST', `${web.path}/update`, { auth: web.auth, body: {} }));
    await ok(cancel(app, web, { path: `${web.path}/update/${json.updateID}` }));
    expect(await seenBy(token)).toEqual({ ...nothing, failed: ['web/prod'] });
    expect((await ask(app, token, 'stacks.attention')).data.failed.items).toMatchObject([{ updateId: failed.id }]);
    await run(web, 'cancelled');
    expect(await seenBy(token)).toEqual({ ...nothing, interrupted: ['web/prod'] });
    const refresh = await run(web, 'succeeded', 'refresh');
    await query(app, `update drift_runs set state = 'done', is_detected = true where update_id = $1`, [refresh.id]);
    expect(await seenBy(token)).toEqual({ ...nothing, drifted: ['web/prod'] });
    await run(web, 'failed');
    expect(await seenBy(token)).toEqual({ ...nothing, drifted: ['web/prod'], failed: ['web/prod'] });
    await run(web, 'succeeded');
    expect(await seenBy(token)).toEqual(nothing);
  });

  test('has the newest five of a kind, and their count', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    const many: TestStack[] = [];
    for (const name of names) many.push(await another('many', name));
    for (const each of many) await run(each, 'failed');
    const { failed } = await seenBy(token);
    expect(failed).toEqual([...['g', 'f', 'e', 'd', 'c'].map((name) => `many/${name}`), 'of 7']);
    for (const each of many) await run(each, 'succeeded');
  });

  test('finds a freeze although the reader may not read the first stacks, or says that it may miss one', async () => {
    const large = await createStack(app);
    const { organization } = large;
    await query(
      app,
      `insert into stacks (project_id, name)
       select p.id, 'n' || n from projects p join organizations o on o.id = p.organization_id, generate_series(1, 6) n where o.name = $1`,
      [organization],
    );
    await ok(
      app.call('PATCH', `/api/orgs/${organization}/access-policy`, {
        ...{ auth: large.auth, body: { defaultPermissions: [] } },
      }),
    );
    const reader = await person(app, organization, 'viewer');
    await grant(app, reader.organizationId, { userId: reader.userId }, 'allow', ['read'], { stacks: '*/n6' });
    const nobody = () => Promise.reject(new Error('There are no approvals'));
    const seen = async (scanned: number, searched: number, { auth }: { readonly auth: string } = reader) =>
      new AttentionQueries(app.context, { scanned, searched }).list(
        await callerOf(app, { ...large, auth }),
        organization,
        nobody,
      );
    expect(await seen(2, 4)).toMatchObject({ isPartial: false });
    await setRule(app, large, { kind: 'freeze', note: 'all', settings: {} });
    const found = { isPartial: false, frozen: { items: [{ note: 'all', stacks: 1 }], count: 1 } };
    expect(await seen(100, 100)).toMatchObject(found);
    expect(await seen(2, 100)).toMatchObject(found);
    expect(await seen(2, 4)).toMatchObject({ isPartial: true, frozen: { items: [], count: 0 } });
    // Of no stack.
    await setRule(app, large, { kind: 'freeze', project: 'none', settings: {} });
    expect(await seen(2, 100)).toMatchObject(found);
    expect(await seen(2, 4, large)).toMatchObject({ isPartial: false, frozen: { count: 1 } });
  });

  test('has freezes in force with their reason, and the number of frozen stacks', async () => {
    const ids = [
      await setRule(app, stack, { kind: 'freeze', note: 'the fair', settings: {} }),
      await setRule(app, stack, { kind: 'freeze', project: 'web', stack: 'prod', note: 'audit', settings: {} }),
      await setRule(app, stack, { kind: 'freeze', project: 'many', settings: { until: '2020-01-01T00:00:00Z' } }),
      await setRule(app, stack, { kind: 'freeze', project: 'none', settings: {} }),
      await setRule(app, stack, { kind: 'freeze', tag: { name: 'tier', value: 'one' }, settings: {} }),
    ];
    const { frozen } = (await ask(app, token, 'stacks.attention')).data;
    expect(frozen).toMatchObject({
      count: 2,
      items: [
        { note: 'audit', project: 'web', stack: 'prod', stacks: 1, until: null, scope: 'stack web/prod' },
        { note: 'the fair', project: null, stacks: 9, by: expect.any(String), since: expect.any(String) },
      ],
    });
    for (const id of ids) await removeRule(app, stack, id);
  });

  test('has the approvals that the reader may give', async () => {
    const on = { organization: stack.organization, project: 'web', stack: 'prod' };
    const rule = await setRule(app, stack, { kind: 'change-limit', settings: { changes: 0 } });
    const member = await person(app, stack.organization, 'member');
    await command(app, member.token, 'approvals.ask', { ...on, commit, reason: 'The old pool goes' });
    expect((await seenBy(token))['approvals']).toEqual(['web/prod']);
    expect((await ask(app, token, 'stacks.attention')).data.approvals.items).toMatchObject([
      { organization: stack.organization, request: 'The old pool goes', commit, askedBy: member.login },
    ]);
    expect((await seenBy(member.token))['approvals']).toEqual([]);
    const [{ id }] = (await ask(app, token, 'stacks.attention')).data.approvals.items;
    await command(app, token, 'approvals.give', { ...on, approvalId: id, reason: 'Seen' });
    expect((await seenBy(token))['approvals']).toEqual([]);
    await removeRule(app, stack, rule);
  });

  test('has an approval that the reader may give, although more than a page of others are newer', async () => {
    const of = await createStack(app);
    const { organization } = of;
    const own = { ...of, project: 'web', stack: 'own', path: `/api/stacks/${organization}/web/own` };
    await ok(app.call('POST', `/api/stacks/${organization}/web`, { auth: of.auth, body: { stackName: 'own' } }));
    const reviewer = await person(app, organization, 'viewer');
    await grant(app, reviewer.organizationId, { userId: reviewer.userId }, 'allow', ['admin'], { stacks: 'web/own' });
    const request = (at: TestStack, count: number, ago: string, by: string | null = null) =>
      query(
        app,
        `insert into update_approvals (stack_id, kind, commit_id, asked_at, asked_by, asked_user_id, request)
         select l.stack_id, 'update', lpad(n::text || $6, 40, 'a'), now() - $4::interval - n * interval '1 ms', 'someone', $5::uuid, ''
         from stack_listings l join organizations o on o.id = l.organization_id, generate_series(1, $3::int) n
         where o.name = $1 and l.tag_name = '' and l.project_name || '/' || l.stack_name = $2`,
        [organization, `${at.project}/${at.stack}`, count, ago, by, by === null ? 'b' : 'c'],
      );
    await request(own, 1, '2 days');
    await request(of, 120, '1 day');
    const seen = async () => (await ask(app, reviewer.token, 'stacks.attention')).data;
    expect(await seen()).toMatchObject({ approvals: { count: 1, items: [{ stack: 'own' }] }, isPartial: false });
    const caller = await callerOf(app, { ...of, auth: `token ${reviewer.token}` });
    const among = (scanned: number) =>
      new AttentionQueries(app.context, { scanned, searched: 1_000 }).list(caller, organization, async () => caller);
    expect(await among(121)).toMatchObject({ approvals: { count: 1 }, isPartial: false });
    expect(await among(120)).toMatchObject({ approvals: { count: 0 }, isPartial: true });
    // Requests of their own.
    await request(own, 120, '1 hour', reviewer.userId);
    expect(await seen()).toMatchObject({ approvals: { count: 1, items: [{ stack: 'own' }] }, isPartial: false });
    expect((await ask(app, of.auth.slice('token '.length), 'stacks.attention')).data).toMatchObject({
      ...{ approvals: { items: [{}, {}, {}, {}, {}], count: expect.any(Number) }, isPartial: false },
    });
    await query(
      app,
      `insert into update_approvals (stack_id, kind, commit_id, asked_by, asked_user_id, request)
       select stack_id, kind, commit_id || n, asked_by, asked_user_id, '' from update_approvals, generate_series(1, 5) n where asked_user_id = $1`,
      [reviewer.userId],
    );
    expect(await seen()).toMatchObject({ approvals: { count: 0 }, isPartial: true });
  });

  test('misses no approval for a reader whose role admits none', async () => {
    const of = await createStack(app);
    await query(
      app,
      `insert into update_approvals (stack_id, kind, commit_id, asked_by, request)
       select l.stack_id, 'update', lpad(n::text, 40, 'a'), 'someone', ''
       from stack_listings l join organizations o on o.id = l.organization_id, generate_series(1, 600) n
       where o.name = $1 and l.tag_name = ''`,
      [of.organization],
    );
    const viewer = await person(app, of.organization, 'viewer');
    expect((await ask(app, viewer.token, 'stacks.attention')).data).toMatchObject({
      ...{ approvals: { count: 0 }, isPartial: false },
    });
  });

  test('has runs that have waited for long, the longest first', async () => {
    const wait = (name: string, minutes: number) =>
      query(
        app,
        `insert into update_queue_waiters (stack_id, token_id, kept_until, arrived_at)
         select l.stack_id, t.id, now() + interval '1 hour', now() - make_interval(mins => $3)
         from stack_listings l, api_tokens t join memberships m on m.user_id = t.user_id
         where l.organization_id = m.organization_id and l.project_name = 'many' and l.stack_name = $2 and l.tag_name = ''
           and m.organization_id = (select id from organizations where name = $1) limit 1`,
        [stack.organization, name, minutes],
      );
    await wait('a', 20);
    await wait('b', 2);
    await wait('c', 40);
    expect(await seenBy(token)).toEqual({ ...nothing, queued: ['many/c', 'many/a'] });
    await query(app, 'delete from update_queue_waiters');
  });

  test('is of the stacks that the reader may read', async () => {
    const [seen, hidden] = [await another('team', 'seen'), await another('team', 'hidden')];
    for (const each of [seen, hidden]) await run(each, 'failed');
    const rules = [
      await setRule(app, stack, { kind: 'freeze', project: 'team', stack: 'hidden', note: 'secret', settings: {} }),
      await setRule(app, stack, { kind: 'freeze', project: 'team', note: 'known', settings: {} }),
    ];
    const reader = await person(app, stack.organization, 'member');
    const { organizationId } = reader;
    await grant(app, organizationId, { userId: reader.userId }, 'deny', ['read'], { stacks: 'team/hidden' });
    expect((await seenBy(token))['failed']).toEqual(['team/hidden', 'team/seen']);
    expect((await seenBy(reader.token))['failed']).toEqual(['team/seen']);
    const { data } = await ask(app, reader.token, 'stacks.attention', { organization: stack.organization });
    expect(data.frozen.items).toMatchObject([{ note: 'known', stacks: 1 }]);
    expect(JSON.stringify(data)).not.toMatch(/hidden|secret/);

    const stranger = await createStack(app);
    expect(await seenBy(stranger.auth.slice('token '.length))).toEqual(nothing);
    expect(
      await ask(app, stranger.auth.slice('token '.length), 'stacks.attention', { organization: stack.organization }),
    ).toMatchObject({ status: 404 });
    for (const id of rules) await removeRule(app, stack, id);
  });
});

describe('activity', () => {
  let web: TestStack;
  let api: TestStack;
  interface Item {
    readonly action: string;
    readonly by: string;
    readonly stack: { readonly project: string; readonly stack: string } | null;
    readonly scope: string | null;
    readonly update: { readonly status: string; readonly kind: string } | null;
  }
  const list = async (by: string, input: object = {}) =>
    (await ask(app, by, 'activity.list', { organization: stack.organization, ...input })).data as {
      readonly items: readonly Item[];
      readonly next: string | null;
    };
  /** Action and place of each event. */
  const said = ({ items }: { readonly items: readonly Item[] }) =>
    items.map(
      ({ action, scope, stack: of, update }) =>
        `${action} ${of === null ? scope : `${of.project}/${of.stack}`}${update === null ? '' : ` ${update.status}`}`,
    );

  beforeAll(async () => {
    stack = await createStack(app);
    token = stack.auth.slice('token '.length);
    web = await another('web', 'prod');
    await run(web, 'succeeded', 'preview');
    await run(web, 'failed');
    api = await another('api', 'prod');
    await startUpdate(app, api);
    await removeRule(app, stack, await setRule(app, stack, { kind: 'freeze', project: 'web', settings: {} }));
    await setRule(app, stack, { kind: 'freeze', project: 'web', stack: 'other', settings: {} });
    await setRule(app, stack, { kind: 'lock-wait', settings: { seconds: 1 } });
    const on = { organization: stack.organization, project: 'api', stack: 'prod' };
    await command(app, token, 'approvals.ask', { ...on, commit, reason: 'Soon' });
  });
  const all = () => [
    'approval.ask api/prod',
    'update-rule.set web/other',
    'update-rule.remove project web',
    'update-rule.set project web',
    'update.start api/prod running',
    'stack.create api/prod',
    'update.start web/prod failed',
    'update.start web/prod succeeded',
    'stack.create web/prod',
    `stack.create ${stack.project}/${stack.stack}`,
  ];

  test('is the newest first, each update once with its status, and page by page', async () => {
    expect(said(await list(token))).toEqual(all());
    const pages: string[] = [];
    let cursor: string | null = null;
    do {
      const page = await list(token, { limit: 2, cursor });
      pages.push(...said(page));
      cursor = page.next;
    } while (cursor !== null);
    expect(pages).toEqual(all());
  });

  test.each<[object, RegExp]>([
    [{ kind: 'updates' }, /update\.start (api|web\/prod failed)/],
    [{ kind: 'previews' }, /update\.start web\/prod succeeded/],
    [{ kind: 'approvals' }, /approval/],
    [{ kind: 'freezes' }, /update-rule/],
    [{ kind: 'stacks' }, /stack\.create/],
    [{ project: 'web' }, /web/],
    [{ project: 'api', stack: 'prod' }, /api/],
    [{ project: 'we' }, /nothing/],
    [{ by: 'nobody' }, /nothing/],
  ])('is filtered by %j', async (filter, matched) => {
    expect(said(await list(token, filter))).toEqual(all().filter((each) => matched.test(each)));
  });

  test('of a person', async () => {
    const [{ by = '' } = {}] = (await list(token)).items;
    expect(said(await list(token, { by }))).toEqual(all());
  });

  test('is of the stacks that the reader may read, and of no former stack of their names', async () => {
    const reader = await person(app, stack.organization, 'member');
    await grant(app, reader.organizationId, { userId: reader.userId }, 'deny', ['read'], { stacks: 'web/*' });
    const seen = await list(reader.token);
    expect(said(seen)).toEqual(all().filter((each) => !/web|update-rule/.test(each)));
    expect(JSON.stringify(seen)).not.toContain('web');
    // Another stack of the name does not show what happened to the first one.
    await query(
      app,
      'delete from updates where stack_id = (select stack_id from stack_listings where project_name = $1 limit 1)',
      ['api'],
    );
    await ok(app.call('DELETE', api.path, { auth: stack.auth }));
    expect(said(await list(reader.token)).filter((each) => each.includes('api'))).toEqual([]);
    await another('api', 'prod');
    expect(said(await list(reader.token)).filter((each) => each.includes('api'))).toEqual(['stack.create api/prod']);
    expect(said(await list(token)).filter((each) => each.includes('api')).length).toBeGreaterThan(2);
  });
});
