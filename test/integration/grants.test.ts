import { describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createGrantRepository } from '../../src/shared/access/grant-repository.ts';
import { createTeamRepository } from '../../src/shared/identity/team-repository.ts';
import { runInProcess } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { grant, type Person, person, team } from '../support/grants.ts';
import { getStack } from '../support/stack-state.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp({ settings: { HOLDFAST_DELETED_STACK_DAYS: '7' } });

/** An organization with stacks `proj/dev`, `proj/prod` and `web/prod`; the token is an admin's. */
async function organizationOf(): Promise<TestStack> {
  const dev = await createStack(app);
  await create(dev.auth, dev.organization, 'proj', 'prod', { team: 'blue' });
  await create(dev.auth, dev.organization, 'web', 'prod', { team: 'red' });
  return dev;
}

const create = (auth: string, organization: string, project: string, stackName: string, tags: object = {}) =>
  ok(app.call('POST', `/api/stacks/${organization}/${project}`, { auth, body: { stackName, tags } }));

async function listed({ auth }: { auth: string }): Promise<string[]> {
  const { json } = await ok(app.call('GET', '/api/user/stacks', { auth }));
  return (json.stacks as { projectName: string; stackName: string }[]).map(
    ({ projectName, stackName }) => `${projectName}/${stackName}`,
  );
}

async function statusOf({ auth }: { auth: string }, method: string, path: string, body?: object): Promise<number> {
  return (await app.call(method, path, { auth, ...(body ? { body } : {}) })).status;
}

const defaults = (of: Person, permissions: number | null) =>
  createGrantRepository(app.context.db).setDefaults(of.organizationId, permissions);

describe('a grant', () => {
  test('lets a viewer write to the stacks that match, and to no others', async () => {
    const { organization } = await organizationOf();
    const viewer = await person(app, organization, 'viewer');
    await grant(app, viewer.organizationId, { userId: viewer.userId }, 'allow', ['write'], { stacks: 'proj/pr*' });
    const update = (path: string) => statusOf(viewer, 'POST', `/api/stacks/${organization}/${path}/update`, {});
    expect([await update('proj/prod'), await update('proj/dev'), await update('web/prod')]).toEqual([200, 403, 403]);
    const made = (name: string) => statusOf(viewer, 'POST', `/api/stacks/${organization}/proj`, { stackName: name });
    expect([await made('prod2'), await made('test')]).toEqual([200, 403]);
  });

  test('of a team holds for its members, by tag', async () => {
    const { organization } = await organizationOf();
    const [one, other] = [await person(app, organization, 'viewer'), await person(app, organization, 'viewer')];
    const blue = await team(app, one.organizationId, 'blue', [one.userId]);
    await grant(app, one.organizationId, { teamId: blue }, 'allow', ['write'], { tag: ['team', 'blue'] });
    const update = (of: Person, path: string) =>
      statusOf(of, 'POST', `/api/stacks/${organization}/${path}/preview`, { options: { dryRun: true } });
    expect([await update(one, 'proj/prod'), await update(one, 'web/prod')]).toEqual([200, 403]);
    expect(await update(other, 'proj/prod')).toBe(403);
    await createTeamRepository(app.context.db).setMember(blue, other.userId, false);
    expect(await update(other, 'proj/prod')).toBe(200);
  });

  test('that denies wins over roles, teams and its own user', async () => {
    const { organization } = await organizationOf();
    const admin = await person(app, organization, 'admin');
    const all = await team(app, admin.organizationId, 'all', [admin.userId]);
    await grant(app, admin.organizationId, { userId: admin.userId }, 'allow', ['admin', 'decrypt']);
    await grant(app, admin.organizationId, { teamId: all }, 'deny', ['write'], { stacks: '*/prod' });
    const prod = `/api/stacks/${organization}/proj/prod`;
    expect(await statusOf(admin, 'POST', `${prod}/update`, {})).toBe(403);
    expect(await statusOf(admin, 'DELETE', prod)).toBe(403);
    expect(await statusOf(admin, 'POST', `${prod}/import`, {})).toBe(403);
    expect(await statusOf(admin, 'POST', `${prod}/preview`, {})).toBe(200);
    expect(await statusOf(admin, 'POST', `/api/stacks/${organization}/proj/dev/update`, {})).toBe(200);
  });

  test('is gone with the membership', async () => {
    const { organization } = await organizationOf();
    const viewer = await person(app, organization, 'viewer');
    await team(app, viewer.organizationId, 'blue', [viewer.userId]);
    await grant(app, viewer.organizationId, { userId: viewer.userId }, 'allow', ['write']);
    await query(app, 'delete from memberships where user_id = $1', [viewer.userId]);
    const left = await query(
      app,
      `select 1 from grants where user_id = $1 union all select 1 from team_members where user_id = $1`,
      [viewer.userId],
    );
    expect(left).toEqual([]);
  });
});

describe('a stack that one may not read', () => {
  test('looks on every route as one that does not exist, and is in no list', async () => {
    const { organization } = await organizationOf();
    const member = await person(app, organization, 'member');
    await grant(app, member.organizationId, { userId: member.userId }, 'deny', ['read'], { tag: ['team', 'red'] });
    expect(await listed(member)).toEqual(['proj/dev', 'proj/prod']);
    const id = '00000000-0000-4000-8000-000000000000';
    const calls: [string, string, object?][] = [
      ['GET', ''],
      ['GET', '/export'],
      ['GET', '/updates'],
      ['GET', '/policypacks'],
      ['GET', `/update/${id}`],
      ['GET', `/update/${id}/events`],
      ['POST', `/update/${id}/cancel`],
      ['POST', '/update', {}],
      ['POST', '/encrypt', { plaintext: 'QQ==' }],
      ['POST', '/decrypt', { ciphertext: 'QQ==' }],
      ['POST', '/rename', { newName: 'x' }],
      ['PATCH', '/tags', {}],
      ['DELETE', '?force=true'],
    ];
    for (const [method, suffix, body] of calls) {
      const ask = (stack: string) =>
        app.call(method, `/api/stacks/${organization}/web/${stack}${suffix}`, {
          auth: member.auth,
          ...(body ? { body } : {}),
        });
      const [hidden, missing] = [await ask('prod'), await ask('prox')];
      expect([method, suffix, hidden.status]).toEqual([method, suffix, 404]);
      expect(hidden.text).toBe(missing.text.replaceAll('prox', 'prod'));
    }
    expect(await statusOf(member, 'HEAD', `/api/stacks/${organization}/web`)).toBe(404);
    expect(await statusOf(member, 'HEAD', `/api/stacks/${organization}/proj`)).toBe(200);
  });

  test('comes back when the organization gives nothing by role, only where a grant allows', async () => {
    const { organization } = await organizationOf();
    const member = await person(app, organization, 'member');
    const admin = await person(app, organization, 'admin');
    await defaults(member, 0);
    expect(await listed(member)).toEqual([]);
    expect(await listed(admin)).toEqual(['proj/dev', 'proj/prod', 'web/prod']);
    await grant(app, member.organizationId, { userId: member.userId }, 'allow', ['read'], { stacks: 'web/*' });
    expect(await listed(member)).toEqual(['web/prod']);
    expect(await statusOf(member, 'GET', `/api/stacks/${organization}/web/prod`)).toBe(200);
    expect(await statusOf(member, 'GET', `/api/stacks/${organization}/proj/prod`)).toBe(404);
    const made = await app.call('POST', `/api/stacks/${organization}/web`, {
      auth: member.auth,
      body: { stackName: 'mine' },
    });
    expect(made.status).toBe(403);
  });
});

describe('without the permission to manage, no user', () => {
  test('renames a stack to get around a grant', async () => {
    const { organization } = await organizationOf();
    const member = await person(app, organization, 'member');
    await grant(app, member.organizationId, { userId: member.userId }, 'deny', ['decrypt'], { stacks: '*/prod*' });
    await grant(app, member.organizationId, { userId: member.userId }, 'deny', ['write'], { stacks: '*/final' });
    const rename = (newName: string) =>
      app.call('POST', `/api/stacks/${organization}/proj/prod/rename`, { auth: member.auth, body: { newName } });
    expect((await rename('test')).json.message).toMatch(/decrypt.*manage/);
    expect((await rename('final')).status).toBe(403);
    await ok(rename('prod-2'));
  });

  test('renames a stack into the scopes of a service’s tokens or CI runs', async () => {
    const { auth, organization } = await organizationOf();
    const member = await person(app, organization, 'member');
    const rename = async (newName: string) => {
      const at = `/api/stacks/${organization}/proj/prod/rename`;
      const { status, text } = await app.call('POST', at, { auth: member.auth, body: { newName } });
      return [status, text];
    };
    const refused = [403, expect.stringMatching(/scopes of tokens.*manage/)];
    const scopes = [{ permissions: ['write', 'decrypt'], stacks: 'proj/dev-*' }];
    const { json } = await ok(
      app.call('POST', `/api/orgs/${organization}/tokens`, { auth, body: { name: 'ci', kind: 'service', scopes } }),
    );
    expect(await rename('dev-9')).toEqual(refused);
    await ok(app.call('DELETE', `/api/orgs/${organization}/tokens/${json.id}`, { auth }));
    const [issuer] = await query(
      app,
      `insert into trusted_issuers (organization_id, name, url, audience) values ($1, 'ci', 'https://ci.example', 'x') returning id`,
      [member.organizationId],
    );
    await query(
      app,
      `insert into trust_policies (issuer_id, position, decision, token_kind, rules, scopes)
       select $1, 1, 'allow', 'service', '{}', scopes from api_tokens where id = $2`,
      [issuer?.['id'], json.id],
    );
    expect(await rename('dev-9')).toEqual(refused);
    await query(app, 'delete from trusted_issuers where id = $1', [issuer?.['id']]);
    expect(await rename('dev-9')).toEqual([204, '']);
  });

  test('changes a tag by which grants select stacks, nor by starting an update', async () => {
    const { organization, ...dev } = await organizationOf();
    const member = await person(app, organization, 'member');
    await grant(app, member.organizationId, { userId: member.userId }, 'deny', ['decrypt'], { tag: ['team', 'blue'] });
    const prod = { ...dev, organization, auth: member.auth, path: `/api/stacks/${organization}/proj/prod` };
    const tags = (auth: string, body: object) => app.call('PATCH', `${prod.path}/tags`, { auth, body });
    expect((await tags(member.auth, {})).json.message).toMatch(/team.*manage/);
    await ok(tags(member.auth, { team: 'blue', other: 'x' }));
    const created = await ok(app.call('POST', `${prod.path}/update`, { auth: member.auth, body: {} }));
    const started = await app.call('POST', `${prod.path}/update/${created.json.updateID}`, {
      auth: member.auth,
      body: { tags: { other: 'y' } },
    });
    expect(started.status).toBe(403);
    // The CLI ends without cancelling the update.
    expect((await getStack(app, prod)).activeUpdate).toBe('');
    await ok(app.call('POST', `${prod.path}/update`, { auth: member.auth, body: {} }));
    await ok(tags(dev.auth, {}));
  });

  test('changes tags by previews alone', async () => {
    const stack = await organizationOf();
    const { organization, path } = stack;
    const viewer = await person(app, organization, 'viewer');
    await grant(app, viewer.organizationId, { userId: viewer.userId }, 'allow', ['preview']);
    await ok(app.call('PATCH', `${path}/tags`, { auth: stack.auth, body: { 'lock-wait': '1h', a: '1' } }));
    for (const url of ['preview', 'begin-update']) {
      const { json } = await ok(
        app.call('POST', `${path}/${url}`, {
          auth: viewer.auth,
          body: { updateKind: 'preview', program: {}, tags: { 'lock-wait': '0' } },
        }),
      );
      if (url === 'preview')
        await ok(app.call('POST', `${path}/update/${json.updateID}`, { auth: viewer.auth, body: { tags: {} } }));
      else expect(json.stack.tags).toEqual({ 'lock-wait': '1h', a: '1' });
      expect((await getStack(app, stack)).tags).toEqual({ 'lock-wait': '1h', a: '1' });
    }
  });

  test('decrypts by a former name what may not be decrypted by the present one', async () => {
    const { organization, auth } = await organizationOf();
    const member = await person(app, organization, 'member');
    const path = `/api/stacks/${organization}/proj`;
    const { json } = await ok(app.call('POST', `${path}/dev/encrypt`, { auth, body: { plaintext: 'QQ==' } }));
    const decrypt = (stack: string) => statusOf(member, 'POST', `${path}/${stack}/decrypt`, json);
    await ok(app.call('POST', `${path}/dev/rename`, { auth, body: { newName: 'secret' } }));
    expect([await decrypt('dev'), await decrypt('secret')]).toEqual([200, 200]);
    const id = await grant(app, member.organizationId, { userId: member.userId }, 'deny', ['decrypt'], {
      stacks: '*/secret',
    });
    expect([await decrypt('dev'), await decrypt('secret')]).toEqual([403, 403]);
    await createGrantRepository(app.context.db).remove(member.organizationId, id);
    expect(await decrypt('dev')).toBe(200);
  });
});

test('a user who returns does not get grants to personal tokens back', async () => {
  const { organization, path } = await organizationOf();
  const member = await person(app, organization, 'member');
  await query(app, `update api_tokens set scopes = '[{ "permissions": 1 }]' where id = $1`, [member.tokenId]);
  await grant(app, member.organizationId, { tokenId: member.tokenId }, 'allow', ['write']);
  const write = () => statusOf(member, 'PATCH', `${path}/tags`, {});
  expect(await write()).toBe(204);
  await query(app, 'delete from memberships where user_id = $1', [member.userId]);
  expect(await query(app, 'select 1 from grants where token_id = $1', [member.tokenId])).toEqual([]);
  await query(app, `insert into memberships (organization_id, user_id, role) values ($1, $2, 'member')`, [
    member.organizationId,
    member.userId,
  ]);
  expect(await write()).toBe(403);
});

describe('stack init --teams', () => {
  const init = (of: { auth: string }, organization: string, stackName: string, teams: readonly string[] = ['blue']) =>
    app.call('POST', `/api/stacks/${organization}/proj`, { auth: of.auth, body: { stackName, teams } });
  const grantsOf = (organizationId: string) =>
    query(app, 'select stack_pattern as stack from grants where organization_id = $1 order by created_at', [
      organizationId,
    ]);

  async function scene() {
    const { auth, organization } = await organizationOf();
    const member = await person(app, organization, 'member');
    const blue = await team(app, member.organizationId, 'blue', [member.userId]);
    const path = (stack: string) => `/api/stacks/${organization}/proj/${stack}`;
    return { admin: { auth }, member, blue, organization, path, organizationId: member.organizationId };
  }

  test('makes grants that end with the stack, and leaves others', async () => {
    const { admin, blue, member, organization, organizationId, path } = await scene();
    await grant(app, organizationId, { teamId: blue }, 'allow', ['read'], { stacks: 'proj/new' });
    await ok(init(member, organization, 'new'));
    await ok(init(member, organization, 'kept'));
    await ok(app.call('DELETE', path('new'), admin));
    expect(await grantsOf(organizationId)).toEqual([{ stack: 'new' }, { stack: 'kept' }]);
    const [event] = await query(
      app,
      `select details::jsonb -> 'teams' as teams from audit_events where action = 'stack.delete' and object = $1`,
      [`${organization}/proj/new`],
    );
    expect(event).toEqual({ teams: ['blue'] });
  });

  test('does not let a deletion hold up the organization while another session has the stack', async () => {
    const { admin, member, organization, path } = await scene();
    await ok(init(member, organization, 'new'));
    const other = new pg.Client({ connectionString: app.database.ownerUrl });
    await other.connect();
    try {
      await other.query('begin');
      await other.query(
        `select 1 from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
         where o.name = $1 and s.name = 'new' for update of s`,
        [organization],
      );
      expect((await app.call('DELETE', path('new'), admin)).status).toBe(409);
    } finally {
      await other.end();
    }
    await ok(app.call('DELETE', path('new'), admin));
  });

  test('of the name of a stack that can be restored needs the permission manage', async () => {
    const { admin, member, organization, organizationId, path } = await scene();
    await ok(app.call('DELETE', path('prod'), admin));
    const { json, status } = await init(member, organization, 'prod');
    expect([status, json.message]).toEqual([403, expect.stringContaining('which grants apply')]);
    expect(await grantsOf(organizationId)).toEqual([]);
    await ok(init(admin, organization, 'prod'));
  });

  test('gives no permission that its caller does not have', async () => {
    const { member, organization, organizationId } = await scene();
    await grant(app, organizationId, { userId: member.userId }, 'deny', ['decrypt'], { stacks: 'proj/secret*' });
    const { json, status } = await init(member, organization, 'secret');
    expect([status, json.message]).toEqual([403, expect.stringContaining('needs the permission decrypt')]);
    await ok(init(member, organization, 'secret', []));
    await query(
      app,
      `update api_tokens set scopes = '[{"organization":null,"project":null,"stack":null,"permissions":31}]' where id = $1`,
      [member.tokenId],
    );
    const scoped = await init(member, organization, 'scoped');
    expect([scoped.status, scoped.json.message]).toEqual([403, 'This needs a token without scopes']);
  });

  test('makes grants of its own stack: an equal one is added to them, and stays', async () => {
    const { admin, member, organization, organizationId, path } = await scene();
    await ok(init(member, organization, 'new'));
    const body = { effect: 'allow', permissions: ['write', 'decrypt'], stacks: 'proj/new', team: 'blue' };
    await ok(app.call('POST', `/api/orgs/${organization}/grants`, { ...admin, body }));
    await ok(app.call('DELETE', path('new'), admin));
    expect(await grantsOf(organizationId)).toEqual([{ stack: 'new' }]);
    await ok(init(member, organization, 'moved'));
    await ok(app.call('POST', `${path('moved')}/rename`, { ...admin, body: { newName: 'former' } }));
    await ok(init(member, organization, 'moved'));
    await ok(app.call('DELETE', path('former'), admin));
    expect(await grantsOf(organizationId)).toEqual([{ stack: 'new' }, { stack: 'moved' }]);
  });

  test('adds no grant that exists, and keeps to the maximum', async () => {
    const { blue, member, organization, organizationId } = await scene();
    await grant(app, organizationId, { teamId: blue }, 'allow', ['write', 'decrypt'], { stacks: 'proj/new' });
    await ok(init(member, organization, 'new'));
    expect(await grantsOf(organizationId)).toEqual([{ stack: 'new' }]);
    await query(
      app,
      `insert into grants (organization_id, effect, permissions, team_id, stack_pattern)
       select $1, 'allow', 1, $2, n::text from generate_series(1, 999) n`,
      [organizationId, blue],
    );
    const { json, status } = await init(member, organization, 'more');
    expect([status, json.message]).toEqual([409, expect.stringContaining('at most 1000 grants')]);
  });
});

test('operators manage teams and grants', async () => {
  const { organization } = await organizationOf();
  const viewer = await person(app, organization, 'viewer');
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await runInProcess(app, 'admin', ...args, '--organization', organization);
    return code === 0 ? stdout.trim() : stderr.trim().split('\n').at(-1);
  };
  expect(await run('team', 'create', 'blue')).toBe('Created team blue.');
  expect(await run('team', 'add', 'blue', viewer.login)).toBe(`User ${viewer.login} is in team blue.`);
  expect(await run('team', 'add', 'blue', viewer.login, '--admin')).toMatch(/ and manages it\.$/);
  expect(await run('team', 'add', 'blue', viewer.login)).toMatch(/ and manages it\.$/);
  expect(await run('team', 'list')).toContain(`${viewer.login}  team admin`);
  const update = await startUpdateAs(viewer, organization, () =>
    run('grant', 'allow', 'write', '--stacks', 'proj/*', '--team', 'blue'),
  );
  expect(await run('grant', 'list')).toMatch(/allow read,preview,write {2}proj\/\* {2}team blue/);
  expect(await run('grant', 'allow', 'write', '--stacks', 'proj/*', '--team', 'blue')).toMatch(
    /^There is this grant already: /,
  );
  expect((await run('grant', 'list'))?.match(/team blue/g)).toHaveLength(1);
  expect(await run('grant', 'allow', 'output', '--team', 'blue')).toMatch(/no permission "output"/);
  expect(await run('grant', 'defaults', 'outputs')).toMatch(/No role gives outputs alone/);
  expect(await run('team', 'delete', 'blue')).toBe(
    `Deleted team blue with its grants and tokens.\nUpdate ${update.id} was cancelled: its token may no longer update this stack.`,
  );
});

async function startUpdateAs(of: Person, organization: string, allow: () => Promise<unknown>) {
  await allow();
  const path = `/api/stacks/${organization}/proj/dev`;
  return startUpdate(app, { auth: of.auth, path, organization, project: 'proj', stack: 'dev' });
}
