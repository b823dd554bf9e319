import { beforeAll, describe, expect, test } from '@jest/globals';
import { groupSchemas, membersOf, Provider, teamOf, tokenFor, userSchemas } from '../support/scim.ts';
import { ok } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const app = testApp({ settings: { HOLDFAST_PUBLIC_URL: 'https://holdfast.example.test/' } });
const scimBase = 'https://holdfast.example.test/scim/v2';
const scimJson = /^application\/scim\+json/;

describe('Entra ID', () => {
  let entra: Provider;
  const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';
  beforeAll(async () => {
    await app.createUser('entra', 'admin', 'root');
    entra = await Provider.of(app, 'entra');
  });

  test('tests the connection, creates a user, changes, disables, enables and deletes it', async () => {
    const probe = await ok(entra.find('Users', 'userName eq "fa75b1a2-test-user"'));
    expect(probe.headers['content-type']).toMatch(scimJson);
    expect(probe.json).toMatchObject({ totalResults: 0, Resources: [], startIndex: 1, itemsPerPage: 0 });

    const created = await ok(
      entra.call('POST', 'Users', {
        schemas: [...userSchemas, enterprise],
        externalId: '0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef',
        userName: 'ada@example.test',
        active: true,
        addresses: [{ primary: false, type: 'work', country: 'UK' }],
        displayName: 'Ada Lovelace',
        emails: [{ primary: true, type: 'work', value: 'ada@example.test' }],
        meta: { resourceType: 'User' },
        name: { familyName: 'Lovelace', givenName: 'Ada' },
        phoneNumbers: [{ primary: false, type: 'work', value: '1' }],
        title: 'Countess',
        [enterprise]: { department: 'Engines', manager: { value: 'x' } },
      }),
    );
    const id = created.json.id as string;
    expect(created.status).toBe(201);
    expect(created.headers['location']).toBe(`${scimBase}/entra/Users/${id}`);
    expect(created.json).toEqual({
      schemas: userSchemas,
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      externalId: '0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef',
      userName: 'ada@example.test',
      displayName: 'Ada Lovelace',
      name: { formatted: 'Ada Lovelace', givenName: 'Ada', familyName: 'Lovelace' },
      emails: [{ value: 'ada@example.test', type: 'work', primary: true }],
      active: true,
      groups: [],
      meta: {
        resourceType: 'User',
        created: expect.any(String),
        lastModified: expect.any(String),
        location: `${scimBase}/entra/Users/${id}`,
      },
    });
    expect(await membersOf(app, 'entra')).toEqual(['ada@example.test member', 'root admin']);
    expect((await ok(entra.call('GET', `Users/${id}`))).json).toEqual(created.json);
    for (const filter of [
      'userName eq "ADA@example.test"',
      'externalId eq "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef"',
      'emails[type eq "work"].value eq "ada@example.test"',
      `id eq "${id}" and active eq true`,
    ])
      expect((await ok(entra.find('Users', filter))).json.Resources).toEqual([created.json]);

    const changed = await ok(
      entra.patch(
        `Users/${id}`,
        { op: 'Replace', path: 'emails[type eq "work"].value', value: 'countess@example.test' },
        { op: 'Add', path: 'name.familyName', value: 'King' },
        { op: 'Replace', path: `${enterprise}:department`, value: 'Poetry' },
        { op: 'Add', path: 'addresses[type eq "work"].country', value: 'FR' },
        { op: 'Replace', path: 'userName', value: 'ada.king@example.test' },
      ),
    );
    expect(changed.json).toMatchObject({
      userName: 'ada.king@example.test',
      name: { familyName: 'King' },
      emails: [{ value: 'countess@example.test' }],
    });
    const mixed = { displayName: 'Ada King', 'name.givenName': 'Augusta', active: 'True' };
    expect((await ok(entra.patch(`Users/${id}`, { op: 'Replace', value: mixed }))).json).toMatchObject({
      displayName: 'Ada King',
      name: { givenName: 'Augusta', familyName: 'King' },
      active: true,
    });

    const auth = await tokenFor(app, 'ada.king@example.test');
    await ok(app.call('GET', '/api/user', { auth }));
    const disabled = await ok(entra.patch(`Users/${id}`, { op: 'Replace', path: 'active', value: 'False' }));
    expect(disabled.json.active).toBe(false);
    expect((await app.call('GET', '/api/user', { auth })).status).toBe(401);
    expect(await membersOf(app, 'entra')).toEqual(['root admin']);
    expect((await ok(entra.find('Users', 'userName eq "ada.king@example.test"'))).json.Resources[0].active).toBe(false);
    const enabled = await ok(entra.patch(`Users/${id}`, { op: 'Replace', path: 'active', value: 'True' }));
    expect(enabled.json.active).toBe(true);
    // A token that was just refused is refused for a moment longer.
    await until(async () => (await app.call('GET', '/api/user', { auth })).status === 200, 'the token is valid again');

    expect((await ok(entra.call('DELETE', `Users/${id}`))).status).toBe(204);
    const gone = await entra.call('GET', `Users/${id}`);
    expect([gone.status, gone.headers['content-type']]).toEqual([404, expect.stringMatching(scimJson)]);
    expect(gone.json).toEqual({
      schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
      status: '404',
      detail: expect.stringContaining(id),
    });
    expect((await app.call('GET', '/api/user', { auth })).status).toBe(401);
    expect((await entra.call('DELETE', `Users/${id}`)).status).toBe(404);
  });

  test('creates a group, adds and removes members, renames and deletes it', async () => {
    const [grace, joan] = [await entra.addUser('grace@example.test'), await entra.addUser('joan@example.test')];
    expect(
      (await ok(entra.find('Groups', 'displayName eq "Platform Team"', '&excludedAttributes=members'))).json,
    ).toMatchObject({ totalResults: 0 });
    const created = await ok(
      entra.call('POST', 'Groups', {
        schemas: [...groupSchemas, 'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group'],
        externalId: '8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159',
        displayName: 'Platform Team',
        meta: { resourceType: 'Group' },
      }),
    );
    const id = created.json.id as string;
    expect(created.json).toMatchObject({ displayName: 'Platform Team', members: [] });
    const add = await entra.patch(`Groups/${id}`, {
      op: 'Add',
      path: 'members',
      value: [
        { $ref: null, value: grace },
        { $ref: null, value: joan },
      ],
    });
    expect([add.status, add.text]).toEqual([204, '']);
    expect(await teamOf(app, 'entra', 'Platform-Team')).toEqual(['grace@example.test', 'joan@example.test']);
    expect((await ok(entra.call('GET', `Users/${grace}`))).json.groups).toEqual([
      { value: id, display: 'Platform Team' },
    ]);
    const shown = await ok(entra.call('GET', `Groups/${id}?excludedAttributes=members`));
    expect(shown.json.members).toBeUndefined();
    const member = (user: string) => entra.find('Groups', `id eq "${id}" and members eq "${user}"`, '&attributes=id');
    expect((await ok(member(grace))).json.Resources).toEqual([{ schemas: groupSchemas, id }]);
    await ok(entra.patch(`Groups/${id}`, { op: 'Remove', path: 'members', value: [{ $ref: null, value: grace }] }));
    expect((await ok(member(grace))).json.totalResults).toBe(0);
    await ok(entra.patch(`Groups/${id}`, { op: 'Remove', path: `members[value eq "${joan}"]` }));
    expect(await teamOf(app, 'entra', 'Platform-Team')).toEqual([]);
    await ok(entra.patch(`Groups/${id}`, { op: 'Replace', path: 'displayName', value: 'Infra' }));
    expect(await teamOf(app, 'entra', 'Platform-Team')).toBeNull();
    expect(await teamOf(app, 'entra', 'Infra')).toEqual([]);
    expect((await ok(entra.call('DELETE', `Groups/${id}`))).status).toBe(204);
    expect((await entra.call('GET', `Groups/${id}`)).status).toBe(404);
    expect(await teamOf(app, 'entra', 'Infra')).toBeNull();
  });
});

describe('Okta', () => {
  let okta: Provider;
  beforeAll(async () => {
    await app.createUser('okta', 'admin', 'okta-root');
    const { auth } = await Provider.of(app, 'okta');
    okta = new Provider(app, 'okta', auth, 'application/scim+json; charset=utf-8');
  });

  test('imports, creates, replaces, deactivates and reactivates users', async () => {
    const imported = await ok(okta.call('GET', 'Users?startIndex=1&count=2'));
    expect(imported.json).toMatchObject({ totalResults: 1, Resources: [{ userName: 'okta-root', active: true }] });
    await ok(okta.call('GET', 'Groups?startIndex=1&count=100'));
    expect(
      (await ok(okta.find('Users', 'userName eq "test.user@okta.local"', '&startIndex=1&count=100'))).json,
    ).toMatchObject({
      totalResults: 0,
    });
    const profile = {
      schemas: userSchemas,
      userName: 'test.user@okta.local',
      name: { givenName: 'Test', familyName: 'User' },
      emails: [{ primary: true, value: 'test.user@okta.local', type: 'work' }],
      displayName: 'Test User',
      locale: 'en-US',
      externalId: '00ujl29u0le5T6Aj10h7',
      groups: [],
      password: '1mz050nq',
      active: true,
    };
    const { json: created } = await ok(okta.call('POST', 'Users', profile));
    expect(JSON.stringify(created)).not.toContain('1mz050nq');
    const again = await okta.call('POST', 'Users', profile);
    expect([again.status, again.json.scimType, again.json.status]).toEqual([409, 'uniqueness', '409']);

    const replaced = { ...profile, id: created.id, name: { givenName: 'Another', familyName: 'User' } };
    const { json: after } = await ok(okta.call('PUT', `Users/${created.id}`, replaced));
    expect(after).toMatchObject({ name: { givenName: 'Another', familyName: 'User' }, active: true });

    await ok(okta.patch(`Users/${created.id}`, { op: 'replace', value: { active: false } }));
    expect((await ok(okta.call('GET', `Users/${created.id}`))).json.active).toBe(false);
    expect(await membersOf(app, 'okta')).toEqual(['okta-root admin']);
    await ok(okta.call('PUT', `Users/${created.id}`, { ...replaced, active: true }));
    expect(await membersOf(app, 'okta')).toEqual(['okta-root admin', 'test.user@okta.local member']);
  });

  test('pushes groups, with members that are suspended meanwhile', async () => {
    const [one, two] = [await okta.addUser('one@okta.local'), await okta.addUser('two@okta.local')];
    const { json: group } = await ok(
      okta.call('POST', 'Groups', {
        schemas: groupSchemas,
        displayName: 'Ops',
        members: [{ value: one, display: 'one' }],
      }),
    );
    await ok(okta.patch(`Groups/${group.id}`, { op: 'replace', value: { id: group.id, displayName: 'Ops EU' } }));
    await ok(
      okta.patch(
        `Groups/${group.id}`,
        { op: 'remove', path: `members[value eq "${one}"]` },
        { op: 'add', path: 'members', value: [{ value: two, display: 'two' }] },
      ),
    );
    expect(await teamOf(app, 'okta', 'Ops-EU')).toEqual(['two@okta.local']);
    await ok(okta.patch(`Users/${two}`, { op: 'replace', value: { active: false } }));
    await ok(okta.patch(`Users/${one}`, { op: 'replace', value: { active: false } }));
    await ok(okta.patch(`Groups/${group.id}`, { op: 'add', path: 'members', value: [{ value: one }] }));
    expect(await teamOf(app, 'okta', 'Ops-EU')).toEqual([]);
    const members = async () =>
      (await ok(okta.call('GET', `Groups/${group.id}`))).json.members.map(
        ({ display }: { display: string }) => display,
      );
    expect(await members()).toEqual(['one@okta.local', 'two@okta.local']);
    for (const id of [one, two]) await ok(okta.patch(`Users/${id}`, { op: 'replace', value: { active: true } }));
    expect(await teamOf(app, 'okta', 'Ops-EU')).toEqual(['one@okta.local', 'two@okta.local']);
    await ok(okta.patch(`Groups/${group.id}`, { op: 'replace', path: 'members', value: [{ value: one }] }));
    expect(await members()).toEqual(['one@okta.local']);
    const put = { schemas: groupSchemas, displayName: 'Ops EU', members: [{ value: two }] };
    expect((await ok(okta.call('PUT', `Groups/${group.id}`, put))).json.members).toEqual([
      { value: two, display: 'two@okta.local' },
    ]);
    expect((await ok(okta.call('DELETE', `Groups/${group.id}`))).status).toBe(204);
  });

  test('reads what the server supports', async () => {
    const { json: config } = await ok(okta.call('GET', 'ServiceProviderConfig'));
    expect(config).toMatchObject({ patch: { supported: true }, bulk: { supported: false } });
    const { json: types } = await ok(okta.call('GET', 'ResourceTypes'));
    expect(types.Resources.map(({ endpoint }: { endpoint: string }) => endpoint)).toEqual(['/Users', '/Groups']);
    const { json: schemas } = await ok(okta.call('GET', 'Schemas'));
    expect(schemas.Resources.map(({ id }: { id: string }) => id)).toEqual([...userSchemas, ...groupSchemas]);
  });
});
