import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { namesOf } from '../../src/shared/access/permissions.ts';
import { listEvents } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { type Person, person, team } from '../support/grants.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { type TestApp, type TestResponse, testApp, testReplica } from '../support/test-app.ts';
import { append } from '../support/update-calls.ts';

const app = testApp();
const replica = testReplica(app);

interface Scene extends TestStack {
  readonly viewer: Person;
  readonly teamId: string;
  readonly grants: string;
}

async function scene(): Promise<Scene> {
  const stack = await createStack(app);
  const viewer = await person(app, stack.organization, 'viewer');
  const teamId = await team(app, viewer.organizationId, 'blue', [viewer.userId]);
  return { ...stack, viewer, teamId, grants: `/api/orgs/${stack.organization}/grants` };
}

const add = ({ auth, grants }: Scene, body: object): Promise<TestResponse> => app.call('POST', grants, { auth, body });
const remove = ({ auth, grants }: Scene, id: string): Promise<TestResponse> =>
  app.call('DELETE', `${grants}/${id}`, { auth });
const statusOf = async (by: TestApp, { auth }: { auth: string }, method: string, path: string): Promise<number> =>
  (await by.call(method, path, { auth, ...(method === 'POST' ? { body: {} } : {}) })).status;

/** All pages of a list. */
async function listAll(auth: string, url: string, member: string): Promise<Record<string, string>[]> {
  const all: Record<string, string>[] = [];
  for (let next: string | undefined = ''; next !== undefined; ) {
    const { json } = await ok(
      app.call('GET', `${url}${url.includes('?') ? '&' : '?'}continuationToken=${next}`, { auth }),
    );
    expect(json[member].length).toBeLessThanOrEqual(100);
    all.push(...json[member]);
    next = json.continuationToken;
  }
  return all;
}

describe('grants over HTTP', () => {
  test('are added, listed and removed by admins, and each change is one event', async () => {
    const of = await scene();
    const { viewer } = of;
    const wide = { effect: 'allow', permissions: ['write'], team: 'blue' };
    const narrow = {
      effect: 'deny',
      permissions: ['decrypt'],
      stacks: 'web/prod*',
      tag: { name: 'env', value: 'x' },
      user: viewer.login,
    };
    const one = (await ok(add(of, wide))).json;
    expect(one).toEqual({
      id: expect.any(String),
      effect: 'allow',
      permissions: ['read', 'preview', 'write'],
      stacks: '*/*',
      team: 'blue',
      created: expect.any(String),
    });
    const two = (await ok(add(of, narrow))).json;
    expect(two).toMatchObject(narrow);
    // A repeat, for example after a lost response, adds none.
    expect((await ok(add(of, { ...wide, stacks: '*/*' }))).json).toEqual(one);
    expect(await listAll(of.auth, of.grants, 'grants')).toEqual([one, two]);
    await ok(remove(of, one.id));
    expect((await remove(of, one.id)).status).toBe(404);
    expect(await listAll(of.auth, of.grants, 'grants')).toEqual([two]);
    const events = (await listEvents(app, of.organization)).filter(({ action }) => action.startsWith('grant.'));
    expect(events.map(({ action, details, object }) => [action, object, details])).toEqual([
      [
        'grant.add',
        `${of.organization}/*/*`,
        { ...one, grant: one.id, id: undefined, stacks: undefined, created: undefined },
      ],
      [
        'grant.add',
        `${of.organization}/web/prod*`,
        { grant: two.id, effect: 'deny', permissions: ['decrypt'], tag: 'env=x', user: viewer.login },
      ],
      ['grant.remove', `${of.organization}/*/*`, expect.objectContaining({ grant: one.id, team: 'blue' })],
    ]);
  });

  test('are added and removed by one call, all or none', async () => {
    const of = await scene();
    const { organization } = of;
    const grant = (stacks: string, team = 'blue') => ({ effect: 'allow', permissions: ['read'], stacks, team });
    const change = (body: object) => app.call('PATCH', of.grants, { auth: of.auth, body });
    const stacks = async () => (await listAll(of.auth, of.grants, 'grants')).map((each) => each['stacks']);
    const old = (await ok(add(of, grant('old/*')))).json;
    const both = (await ok(change({ add: [grant('a/*'), grant('b/*'), grant('a/*')], remove: [old.id] }))).json.added;
    expect(both.map((each: { stacks: string }) => each.stacks)).toEqual(['a/*', 'b/*', 'a/*']);
    expect([both[2].id, await stacks()]).toEqual([both[0].id, ['a/*', 'b/*']]);
    // What the same call removes stands for nothing that it adds.
    const again = (await ok(change({ add: [grant('a/*')], remove: [both[0].id] }))).json.added;
    expect([again[0].id === both[0].id, await stacks()]).toEqual([false, ['b/*', 'a/*']]);
    for (const [body, status] of [
      [{ add: [grant('c/*'), grant('d/*', 'none')] }, 404],
      [{ add: [grant('c/*'), { ...grant('d/*'), permissions: ['nothing'] }] }, 400],
      [{ add: [grant('c/*')], remove: [old.id] }, 404],
      [{ remove: [again[0].id, again[0].id] }, 404],
      [{ add: Array.from({ length: 201 }, () => grant('c/*')) }, 400],
    ] as const)
      expect([(await change(body)).status, await stacks()]).toEqual([status, ['b/*', 'a/*']]);
    const count = 'insert into grants (organization_id, effect, permissions, stack_pattern, team_id)';
    await query(app, `${count} select $1::uuid, 'allow', 1, 's-' || n, $2::uuid from generate_series(1, 997) n`, [
      of.viewer.organizationId,
      of.teamId,
    ]);
    expect((await change({ add: [grant('c/*'), grant('d/*')] })).status).toBe(409);
    await ok(change({ add: [grant('c/*')] }));
    expect((await ok(change({}))).json).toEqual({ added: [] });
    const events = (await listEvents(app, organization)).filter(({ action }) => action.startsWith('grant.'));
    expect(events.map(({ action, object }) => [action, object.slice(organization.length + 1)])).toEqual([
      ['grant.add', 'old/*'],
      ['grant.add', 'a/*'],
      ['grant.add', 'b/*'],
      ['grant.remove', 'old/*'],
      ['grant.add', 'a/*'],
      ['grant.remove', 'a/*'],
      ['grant.add', 'c/*'],
    ]);
  });

  test('are listed page by page, all or by subject', async () => {
    const of = await scene();
    const { organizationId, userId, tokenId } = of.viewer;
    // With one time, so that pages end between grants of the same time.
    await query(
      app,
      `insert into grants (organization_id, effect, permissions, stack_pattern, user_id, team_id, token_id)
       select $1::uuid, 'allow', 1, 's-' || n, case n % 3 when 0 then $2::uuid end, case n % 3 when 1 then $3::uuid end,
         case n % 3 when 2 then $4::uuid end from generate_series(1, 330) n`,
      [organizationId, userId, of.teamId, tokenId],
    );
    const stacks = async (query_: string) =>
      (await listAll(of.auth, `${of.grants}${query_}`, 'grants')).map((each) => each['stacks']).toSorted();
    const names = Array.from({ length: 330 }, (_, at) => at + 1);
    const expected = (rest: number | null) =>
      names.flatMap((n) => (rest === null || n % 3 === rest ? [`*/s-${n}`] : [])).toSorted();
    expect(await stacks('')).toEqual(expected(null));
    expect(await stacks(`?user=${of.viewer.login}`)).toEqual(expected(0));
    expect(await stacks('?team=blue')).toEqual(expected(1));
    expect(await stacks(`?token=${tokenId}`)).toEqual(expected(2));
    for (const [wrong, status] of [
      ['?continuationToken=x', 400],
      ['?team=blue&user=x', 400],
      ['?team=none', 404],
      ['?user=nobody', 404],
      ['?token=x', 404],
    ] as const)
      expect([wrong, await statusOf(app, of, 'GET', `${of.grants}${wrong}`)]).toEqual([wrong, status]);
  });

  test('are refused with a sentence', async () => {
    const of = await scene();
    const outsider = await person(app, (await createStack(app)).organization, 'member');
    const user = of.viewer.login;
    const permissions = ['read'];
    const wrong: [object, number, RegExp][] = [
      [{ effect: 'allow', permissions }, 400, /exactly one/],
      [{ effect: 'allow', permissions, user, team: 'blue' }, 400, /exactly one/],
      [{ effect: 'allow', user }, 400, /permissions or a role/],
      [{ effect: 'allow', permissions, role: 'viewer', user }, 400, /permissions or a role/],
      [{ effect: 'deny', role: 'viewer', user }, 400, /cannot be denied/],
      [{ effect: 'allow', permissions: ['own'], user }, 400, /no permission "own"/],
      [{ effect: 'allow', permissions: [], user }, 400, /permission/],
      [{ effect: 'allow', permissions, user, stacks: 'web' }, 400, /project\/stack/],
      [{ effect: 'allow', permissions, user, tag: { name: 'a b' } }, 400, /Tag name/],
      [{ effect: 'allow', permissions, user: outsider.login }, 404, /not a member/],
      [{ effect: 'allow', permissions, user: 'a\0b' }, 404, /not a member/],
      [{ effect: 'allow', permissions, team: 'none' }, 404, /no team/],
      [{ effect: 'allow', permissions, token: outsider.tokenId }, 404, /no valid token/],
      [{ effect: 'allow', role: 'none', user }, 404, /no role/],
    ];
    for (const [body, status, message] of wrong) {
      const refused = await add(of, body);
      expect([body, refused.status, refused.json.message]).toEqual([body, status, expect.stringMatching(message)]);
    }
    const elsewhere = await scene();
    const theirs = (await ok(add(elsewhere, { effect: 'allow', permissions, team: 'blue' }))).json.id;
    expect((await remove(of, theirs)).status).toBe(404);
    await query(
      app,
      `insert into grants (organization_id, effect, permissions, team_id) select $1, 'allow', 1, $2 from generate_series(1, 1000)`,
      [of.viewer.organizationId, of.teamId],
    );
    const many = await add(of, { effect: 'allow', permissions: ['write'], team: 'blue' });
    expect([many.status, many.json.message]).toEqual([409, expect.stringMatching(/at most 1000/)]);
    await ok(add(of, { effect: 'allow', permissions: ['write'], user }));
  });

  test('hold at once on every replica, running updates included', async () => {
    const of = await scene();
    const asViewer = { ...of, auth: of.viewer.auth };
    expect(await statusOf(replica, of.viewer, 'POST', `${of.path}/update`)).toBe(403);
    const given = (await ok(add(of, { effect: 'allow', permissions: ['write'], stacks: 'proj/*', team: 'blue' }))).json
      .id;
    const ends = {
      'the grant is removed': () => remove(of, given),
      'a tag denies it': async () => {
        await ok(add(of, { effect: 'allow', permissions: ['write'], stacks: 'proj/*', team: 'blue' }));
        await ok(app.call('PATCH', `${of.path}/tags`, { auth: of.auth, body: { env: 'x' } }));
        return add(of, { effect: 'deny', permissions: ['preview'], tag: { name: 'env' }, user: of.viewer.login });
      },
    };
    for (const [name, end] of Object.entries(ends)) {
      if (name !== 'the grant is removed')
        await ok(add(of, { effect: 'allow', permissions: ['write'], user: of.viewer.login }));
      const update = await startUpdate(replica, asViewer, { journal: true });
      await ok(append(app, update, creation(1, 'r0', of)));
      await ok(end());
      for (const each of [replica, app])
        expect([name, (await append(each, update, creation(2, 'late', of))).status]).toEqual([name, 403]);
      expect(await statusOf(replica, of.viewer, 'POST', `${of.path}/update`)).toBe(403);
    }
  });

  test('do not lock out the last admin, who can remove a grant that denies everything', async () => {
    const of = await scene();
    const [admin] = await query<{ login: string }>(
      app,
      `select u.login from users u join memberships m on m.user_id = u.id where m.role = 'admin' and m.organization_id = $1`,
      [of.viewer.organizationId],
    );
    const denied = (await ok(add(of, { effect: 'deny', permissions: ['read', 'outputs'], user: admin?.login }))).json
      .id;
    expect(await statusOf(app, of, 'GET', of.path)).toBe(404);
    await ok(remove(of, denied));
    expect(await statusOf(app, of, 'GET', of.path)).toBe(200);
  });
});

describe('who may do what with a stack', () => {
  const access = ({ auth, path }: { auth: string; path: string }, suffix = '') =>
    app.call('GET', `${path}/access${suffix}`, { auth });

  test('is shown to users who manage it, with the grants that decide', async () => {
    const of = await scene();
    const { viewer } = of;
    expect((await access({ ...of, auth: viewer.auth })).status).toBe(403);
    const manages = (await ok(add(of, { effect: 'allow', permissions: ['manage'], stacks: 'proj/dev', team: 'blue' })))
      .json;
    const writes = (await ok(add(of, { effect: 'allow', permissions: ['write'], user: viewer.login }))).json;
    const denies = (await ok(add(of, { effect: 'deny', permissions: ['preview'], team: 'blue' }))).json;
    await ok(add(of, { effect: 'deny', permissions: ['read'], stacks: 'other/*', user: viewer.login }));
    const { json } = await ok(access({ ...of, auth: viewer.auth }, `?user=${viewer.login}`));
    const no = (reason: string, ...grants: string[]) => ({ allowed: false, reason, grants });
    expect(json).toEqual({
      holders: [
        {
          user: { githubLogin: viewer.login, name: viewer.login },
          role: 'viewer',
          permissions: ['read', 'decrypt', 'manage', 'outputs'],
          decisions: [
            { permission: 'read', allowed: true, reason: 'role', grants: [manages.id, writes.id] },
            { permission: 'preview', ...no('denied', denies.id) },
            { permission: 'write', ...no('denied', denies.id) },
            { permission: 'admin', ...no('denied', denies.id) },
            { permission: 'decrypt', allowed: true, reason: 'role', grants: [] },
            { permission: 'manage', allowed: true, reason: 'grants', grants: [manages.id] },
            { permission: 'outputs', allowed: true, reason: 'included', grants: [] },
          ],
        },
      ],
      grants: [manages, writes, denies],
    });
    expect((await ok(access(of, '?user=nobody'))).json).toEqual({ holders: [], grants: [] });
    for (const wrong of [
      '?user=a%00',
      '?token=x',
      '?user=a&token=b',
      '?holders=users&token=x',
      '?continuationToken=%2F',
    ])
      expect([wrong, (await access(of, wrong)).status]).toEqual([wrong, 400]);
    expect((await app.call('GET', `${of.path}x/access`, { auth: of.auth })).status).toBe(404);
  });

  test('lists all members and all tokens of the organization, page by page', async () => {
    const of = await scene();
    await query(
      app,
      `with added as (insert into users (login) select 'many-' || n from generate_series(1, 150) n
         on conflict (login) do update set login = excluded.login returning id)
       insert into memberships (organization_id, user_id, role) select $1, id, 'viewer' from added`,
      [of.viewer.organizationId],
    );
    await query(app, `update users set deactivated_at = now() where login = 'many-1'`);
    await query(
      app,
      `insert into api_tokens (kind, organization_id, scopes, name, token_hash)
       select 'service', $1::uuid, '[]', 's' || n, sha256(($1::uuid::text || n)::bytea) from generate_series(1, 120) n`,
      [of.viewer.organizationId],
    );
    const users = (await listAll(of.auth, `${of.path}/access`, 'holders')) as unknown as {
      user: { githubLogin: string };
    }[];
    expect(new Set(users.map(({ user }) => user.githubLogin)).size).toBe(151);
    expect(users).toHaveLength(151);
    expect(await listAll(of.auth, `${of.path}/access?holders=tokens`, 'holders')).toHaveLength(120);
    await query(app, `update users set deactivated_at = null where login = 'many-1'`);
  });

  test('is what calls are decided by, for every user and token', async () => {
    const of = await scene();
    const { organizationId } = of.viewer;
    const member = await person(app, of.organization, 'member');
    const admin = await person(app, of.organization, 'admin');
    const scopes = [{ permissions: ['admin', 'outputs'], stacks: 'proj/*' }];
    const made = async (path: string, auth: string, body: object): Promise<string> =>
      (await ok(app.call('POST', path, { auth, body }))).json.id;
    const tokens = [
      await made('/api/user/tokens', member.auth, { name: 'own', scopes }),
      await made(`/api/orgs/${of.organization}/tokens`, of.auth, { name: 'service', service: true, scopes }),
      await made(`/api/orgs/${of.organization}/tokens`, of.auth, { name: 'org' }),
      await made(`/api/orgs/${of.organization}/teams/blue/tokens`, of.auth, { name: 'team' }),
    ];
    const people = [of.viewer, member, admin];
    const subjects = [
      ...people.map(({ login }) => ({ user: login })),
      ...tokens.map((token) => ({ token })),
      { team: 'blue' },
    ];
    await ok(app.call('PATCH', `${of.path}/tags`, { auth: of.auth, body: { env: 'x' } }));
    const step = fc.record({
      effect: fc.constantFrom('allow', 'deny'),
      subject: fc.constantFrom(...subjects),
      permissions: fc.subarray(['read', 'preview', 'write', 'decrypt', 'manage', 'outputs'], {
        minLength: 1,
        maxLength: 3,
      }),
      stacks: fc.constantFrom('*/*', 'proj/*', '*/prod'),
      tag: fc.constantFrom(null, { name: 'env' }, { name: 'env', value: 'y' }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 6 }),
        fc.constantFrom(null, 0, 1, 17),
        async (steps, defaults) => {
          await query(app, 'delete from grants where organization_id = $1', [organizationId]);
          await query(app, 'update organization_access set default_permissions = $2 where organization_id = $1', [
            organizationId,
            defaults,
          ]);
          for (const { subject, ...rest } of steps) await ok(add(of, { ...rest, ...subject }));
          const held = await query<{ id: string; login: string; permissions: number }>(
            app,
            `select t.id, u.login, token_permissions(t.id, s.id) as permissions
             from stacks s join projects p on p.id = s.project_id, api_tokens t left join users u on u.id = t.user_id
             where p.organization_id = $1 and t.id = any ($2)`,
            [organizationId, [...tokens, ...people.map(({ tokenId }) => tokenId)]],
          );
          // The one who asks may be denied everything, but is no part of this.
          const shown = async (suffix: string) => {
            const { json } = await ok(access(of, suffix));
            for (const { decisions, permissions } of json.holders)
              expect(
                decisions.flatMap(({ allowed, permission }: { allowed: boolean; permission: string }) =>
                  allowed ? [permission] : [],
                ),
              ).toEqual(permissions);
            return json.holders as { user?: { githubLogin: string }; token?: { id: string }; permissions: string[] }[];
          };
          const users = await shown('');
          const listed = [...(await shown('?holders=tokens')), ...(await shown(`?token=${tokens[0]}`))];
          for (const { id, login, permissions } of held) {
            const found = tokens.includes(id)
              ? listed.find(({ token }) => token?.id === id)
              : users.find(({ user }) => user?.githubLogin === login);
            expect({ id, login, permissions: found?.permissions }).toEqual({
              id,
              login,
              permissions: namesOf(permissions),
            });
          }
        },
      ),
      { numRuns: 12 },
    );
  });
});
