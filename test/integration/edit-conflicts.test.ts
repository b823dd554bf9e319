import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { type Person, person } from '../support/grants.ts';
import { ask, command } from '../support/procedures.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { createHook } from '../support/webhooks.ts';

// Two admins have read the same object and save one after the other: the second gets a conflict, and the first change stays.

const app = testApp();
let stack: TestStack;
let token: string;
let other: Person;

/** One thing that can be edited, made anew for each test. */
interface Edited {
  readonly path: string;
  /** The method of its change, and the body that gives it this text. */
  readonly method: 'PUT' | 'PATCH';
  readonly body: (text: string) => object;
  /** What it says now. */
  // biome-ignore lint/suspicious/noExplicitAny: responses of every shape.
  readonly text: (response: any) => unknown;
  /** Its procedures. */
  readonly read: { readonly name: string; readonly input: object };
  // biome-ignore lint/suspicious/noExplicitAny: results of every shape.
  readonly change: { readonly name: string; readonly input: (text: string, read: any) => object };
  /** The procedure that removes it. Null: it cannot be removed. */
  readonly remove: { readonly name: string; readonly input: object } | null;
  /** Where `read` has its revision. */
  // biome-ignore lint/suspicious/noExplicitAny: results of every shape.
  readonly revision: (read: any) => object;
}

const orgPath = () => `/api/orgs/${stack.organization}`;
const rule = { kind: 'lock-wait', settings: { seconds: 60 } };
const made = async (path: string, body: object) => (await ok(app.call('POST', path, { auth: stack.auth, body }))).json;
const revisionOf = ({ revision }: { revision: string }) => ({ revision });

const kinds: Readonly<Record<string, () => Promise<Edited>>> = {
  rule: async () => {
    const { id } = await made(`${orgPath()}/update-rules`, rule);
    return {
      path: `${orgPath()}/update-rules/${id}`,
      method: 'PUT',
      body: (note) => ({ ...rule, note }),
      text: ({ note }) => note,
      read: { name: 'rules.get', input: { ruleId: id } },
      change: { name: 'rules.change', input: (note) => ({ ruleId: id, ...rule, note }) },
      remove: { name: 'rules.remove', input: { ruleId: id } },
      revision: revisionOf,
    };
  },
  freeze: async () => {
    const freeze = { kind: 'freeze', project: stack.project, stack: stack.stack, settings: {} };
    const { id } = await made(`${orgPath()}/update-rules`, freeze);
    return {
      path: `${orgPath()}/update-rules/${id}`,
      method: 'PUT',
      body: (note) => ({ ...freeze, note }),
      text: ({ note }) => note,
      read: { name: 'rules.get', input: { ruleId: id } },
      change: { name: 'rules.change', input: (note) => ({ ruleId: id, ...freeze, note }) },
      remove: { name: 'rules.remove', input: { ruleId: id } },
      revision: revisionOf,
    };
  },
  'webhook of an organization': () => webhook('organization'),
  'webhook of a stack': () => webhook('stack'),
  team: async () => {
    const team = `team-${randomUUID().slice(0, 8)}`;
    await made(`${orgPath()}/teams/pulumi`, { name: team });
    return {
      path: `${orgPath()}/teams/${team}`,
      method: 'PATCH',
      body: (newDescription) => ({ newDescription }),
      text: ({ description }) => description,
      read: { name: 'teams.get', input: { team } },
      change: { name: 'teams.edit', input: (description) => ({ team, displayName: team, description }) },
      remove: { name: 'teams.delete', input: { team } },
      revision: revisionOf,
    };
  },
  role: async () => {
    const name = `role-${randomUUID().slice(0, 8)}`;
    const details = { __type: 'PermissionDescriptorAllow', permissions: ['stack:read'] };
    const { id } = await made(`${orgPath()}/roles`, { name, description: '', details });
    return {
      path: `${orgPath()}/roles/${id}`,
      method: 'PATCH',
      body: (description) => ({ description }),
      text: ({ description }) => description,
      read: { name: 'roles.list', input: {} },
      change: { name: 'roles.edit', input: (description) => ({ id, name, description, permissions: ['read'] }) },
      remove: { name: 'roles.delete', input: { id, force: false } },
      revision: ({ items }) => revisionOf(items.find((role: { id: string }) => role.id === id)),
    };
  },
  issuer: async () => {
    const id = await makeIssuer();
    return {
      path: `${orgPath()}/oidc/issuers/${id}`,
      method: 'PATCH',
      body: (audience) => ({ audience }),
      text: ({ audience }) => audience,
      read: { name: 'issuers.get', input: { id } },
      change: { name: 'issuers.edit', input: (audience) => ({ id, audience }) },
      remove: { name: 'issuers.delete', input: { id } },
      revision: ({ issuer }) => revisionOf(issuer),
    };
  },
  'trust policies': async () => {
    const id = await makeIssuer();
    const policy = (sub: string) => ({ decision: 'allow', tokenType: 'organization', rules: { sub } });
    return {
      path: `${orgPath()}/auth/policies/${id}`,
      method: 'PATCH',
      body: (sub) => ({ policies: [policy(sub)] }),
      text: ({ policies: [first] }) => first?.rules.sub,
      read: { name: 'issuers.get', input: { id } },
      change: {
        name: 'issuers.setPolicies',
        input: (sub) => ({ id, policies: [{ ...policy(sub), rules: [{ claim: 'sub', patterns: [sub] }] }] }),
      },
      remove: null,
      revision: ({ version }) => ({ version }),
    };
  },
  'access policy': async () => {
    const defaultsOf = (text: string) => ({ defaultPermissions: text === 'first' ? ['read'] : ['read', 'preview'] });
    await ok(app.call('PATCH', `${orgPath()}/access-policy`, { auth: stack.auth, body: { defaultPermissions: null } }));
    return {
      path: `${orgPath()}/access-policy`,
      method: 'PATCH',
      body: defaultsOf,
      text: ({ defaultPermissions }) => (defaultPermissions?.length === 1 ? 'first' : defaultPermissions && 'second'),
      read: { name: 'access.policy', input: {} },
      change: { name: 'access.changePolicy', input: defaultsOf },
      remove: null,
      revision: revisionOf,
    };
  },
};

async function webhook(scope: 'stack' | 'organization'): Promise<Edited> {
  const displayName = `hook ${randomUUID()}`;
  const hook = await createHook(app, stack, scope, { displayName, payloadUrl: 'https://hooks.example.com/a' });
  const { project, stack: stackName } = stack;
  const name = hook.split('/').at(-1) as string;
  const of = { webhook: name, ...(scope === 'stack' ? { project, stack: stackName } : {}) };
  const [router, url] = [scope === 'stack' ? 'webhooks.ofStack' : 'webhooks', 'https://hooks.example.com/'];
  return {
    path: hook,
    method: 'PATCH',
    body: (text) => ({ payloadUrl: url + text }),
    text: ({ payloadUrl }) => payloadUrl.slice(url.length),
    read: { name: `${router}.get`, input: of },
    change: {
      name: `${router}.change`,
      input: (text) => ({
        ...{ ...of, displayName, url: url + text, format: 'raw', isActive: true, events: [], groups: [] },
      }),
    },
    remove: { name: `${router}.remove`, input: of },
    revision: revisionOf,
  };
}

async function makeIssuer(): Promise<string> {
  const url = `https://${randomUUID()}.example.com`;
  return (await made(`${orgPath()}/oidc/issuers`, { name: `issuer ${randomUUID()}`, url })).id;
}

beforeAll(async () => {
  stack = await createStack(app);
  token = stack.auth.slice('token '.length);
  other = await person(app, stack.organization, 'admin');
});

const get = async (path: string) => ok(app.call('GET', path, { auth: stack.auth }));
/** The ETag; that of policies is with their issuer. */
const readPath = (path: string) => path.replace(/\/auth\/policies\//, '/auth/policies/oidcissuers/');

describe.each(Object.keys(kinds))('%s', (kind) => {
  const make = () => (kinds[kind] as () => Promise<Edited>)();

  test('by HTTP, a change of an object that another user has changed is refused with 412, and changes nothing', async () => {
    const { body, method, path, text } = await make();
    const etag = (await get(readPath(path))).headers['etag'] as string;
    expect(etag).toMatch(/^"[^"]+"$/);
    const send = (words: string, auth: string, tag?: string) =>
      app.call(method, path, { auth, body: body(words), headers: tag === undefined ? {} : { 'if-match': tag } });
    await ok(send('first', other.auth, etag));
    const refused = await send('second', stack.auth, etag);
    expect(refused.status).toBe(412);
    expect(refused.json).toMatchObject({ code: 412, message: expect.stringContaining(`${other.login} has changed`) });
    const after = await get(readPath(path));
    expect(text(after.json)).toBe('first');
    expect(after.headers['etag']).not.toBe(etag);
    expect((await send('second', stack.auth, 'second')).status).toBe(400);
    expect(text((await get(readPath(path))).json)).toBe('first');
    // With what is there now, among others and weakened by a proxy; and without a header, as before.
    await ok(send('second', stack.auth, `"of-another", W/${after.headers['etag']}`));
    await ok(send('first', stack.auth));
    await ok(send('second', stack.auth, '*'));
    expect(text((await get(readPath(path))).json)).toBe('second');
  });

  test('by a procedure, the same is a conflict that names the other user', async () => {
    const { change, path, read, revision, text } = await make();
    const at = { organization: stack.organization };
    const seen = revision((await ask(app, token, read.name, { ...at, ...read.input })).data);
    expect(Object.values(seen)).toEqual([expect.anything()]);
    const send = (words: string, as: string, given: object = {}) =>
      command(app, as, change.name, { ...at, ...change.input(words, seen), ...given });
    expect((await send('first', other.token, seen)).error).toBeNull();
    expect((await send('second', token, seen)).error).toMatchObject({
      code: 'CONFLICT',
      kind: 'edit-conflict',
      message: expect.stringMatching(
        new RegExp(`^${other.login} has changed .* at \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d UTC`),
      ),
    });
    expect(text((await get(readPath(path))).json)).toBe('first');
    const now = revision((await ask(app, token, read.name, { ...at, ...read.input })).data);
    expect((await send('second', token, now)).error).toBeNull();
    expect(text((await get(readPath(path))).json)).toBe('second');
  });
});

describe.each(Object.keys(kinds).filter((kind) => !['trust policies', 'access policy'].includes(kind)))(
  'removing a %s',
  (kind) => {
    const make = () => (kinds[kind] as () => Promise<Edited>)();

    test('by HTTP, changes of another user stay', async () => {
      const { body, method, path, text } = await make();
      const etag = (await get(path)).headers['etag'] as string;
      await ok(app.call(method, path, { auth: other.auth, body: body('first') }));
      const remove = (tag?: string) =>
        app.call('DELETE', path, { auth: stack.auth, headers: tag === undefined ? {} : { 'if-match': tag } });
      const refused = await remove(etag);
      expect(refused.status).toBe(412);
      expect(refused.json).toMatchObject({ code: 412, message: expect.stringContaining(`${other.login} has changed`) });
      const after = await get(path);
      expect(text(after.json)).toBe('first');
      await ok(remove(after.headers['etag'] as string));
      expect((await app.call('GET', path, { auth: stack.auth })).status).toBe(404);
    });

    test('by a procedure, the same is a conflict', async () => {
      const { body, method, path, read, remove, revision } = await make();
      const at = { organization: stack.organization };
      const seen = revision((await ask(app, token, read.name, { ...at, ...read.input })).data);
      await ok(app.call(method, path, { auth: other.auth, body: body('first') }));
      const send = (given: object) =>
        command(app, token, remove?.name as string, { ...at, ...remove?.input, ...given });
      expect((await send(seen)).error).toMatchObject({ code: 'CONFLICT', kind: 'edit-conflict' });
      const now = revision((await ask(app, token, read.name, { ...at, ...read.input })).data);
      expect((await send(now)).error).toBeNull();
      expect((await app.call('GET', path, { auth: stack.auth })).status).toBe(404);
    });
  },
);

test('a tag that another user has changed stays', async () => {
  const { organization, project, stack: name } = stack;
  const ref = { organization, project, stack: name };
  const set = (value: string) => command(app, token, 'stacks.setTag', { ...ref, name: 'env', value });
  const remove = (value?: string) => command(app, token, 'stacks.removeTag', { ...ref, name: 'env', value });
  const tags = async () => ((await ask(app, token, 'stacks.get', ref)).data as { tags: object }).tags;
  await set('dev');
  await set('prod');
  expect((await remove('dev')).error).toMatchObject({ code: 'CONFLICT', kind: 'edit-conflict' });
  expect(await tags()).toMatchObject({ env: 'prod' });
  expect((await remove('prod')).error).toBeNull();
  expect(await tags()).not.toHaveProperty('env');
  // It is gone already; and without a value, as before.
  expect((await remove('prod')).error).toBeNull();
  await set('test');
  expect((await remove()).error).toBeNull();
  expect(await tags()).not.toHaveProperty('env');
});

test('a tag is given a value only if it still is as the caller has seen it', async () => {
  const { organization, project, stack: name } = stack;
  const ref = { organization, project, stack: name };
  const set = async (value: string, seen?: string | null) =>
    (await command(app, token, 'stacks.setTag', { ...ref, name: 'zone', value, seen })).error;
  const zone = async () =>
    ((await ask(app, token, 'stacks.get', ref)).data as { tags: Record<string, string> }).tags['zone'];
  const refused = { code: 'CONFLICT', kind: 'edit-conflict' };
  expect(await set('eu', 'us')).toMatchObject({
    ...refused,
    message: expect.stringContaining('has removed the tag zone'),
  });
  expect(await set('eu', null)).toBeNull();
  expect(await set('us', null)).toMatchObject({
    ...refused,
    message: expect.stringContaining('already has a tag zone'),
  });
  expect(await set('us', 'ap')).toMatchObject({ ...refused, message: expect.stringContaining('changed the tag zone') });
  expect(await zone()).toBe('eu');
  // Sent twice, as after a lost answer.
  expect(await set('eu', null)).toBeNull();
  expect(await set('us', 'eu')).toBeNull();
  expect(await zone()).toBe('us');
  expect(await set('ap')).toBeNull();
  expect(await zone()).toBe('ap');
  await command(app, token, 'stacks.removeTag', { ...ref, name: 'zone' });
});

test('a legal hold is placed only where none is, and released only as the caller has seen it', async () => {
  const { organization, project, stack: name } = stack;
  const ref = { organization, project, stack: name };
  const hold = async (as: string, reason: string) =>
    (await command(app, as, 'retention.hold', { ...ref, reason })).error;
  const release = async (revision?: string) =>
    (await command(app, token, 'retention.release', { ...ref, revision })).error;
  const held = async () =>
    (await ask(app, token, 'retention.findHold', ref)).data as { reason: string; revision: string } | null;
  const refused = {
    ...{ code: 'CONFLICT', kind: 'edit-conflict' },
    message: expect.stringMatching(new RegExp(`^${other.login} has changed the legal hold at `)),
  };
  expect(await hold(token, 'Case 1')).toBeNull();
  const first = (await held())?.revision as string;
  expect(await release(first)).toBeNull();
  expect(await hold(other.token, 'Case 2')).toBeNull();
  expect(await hold(token, 'Case 1')).toMatchObject(refused);
  expect(await release(first)).toMatchObject(refused);
  expect(await held()).toMatchObject({ reason: 'Case 2' });
  // Another reason is another hold.
  const second = (await held())?.revision as string;
  const path = `/api/stacks/${organization}/${project}/${name}/legal-hold`;
  await ok(app.call('PUT', path, { auth: other.auth, body: { reason: 'Cases 2 and 3' } }));
  expect(await release(second)).toMatchObject(refused);
  expect(await release((await held())?.revision)).toBeNull();
  expect(await held()).toBeNull();
  // It is gone already; and without a revision, as before.
  expect(await release(second)).toBeNull();
  expect(await hold(token, 'Case 1')).toBeNull();
  expect(await release()).toBeNull();
});

test('of two concurrent saves of the same object, one is refused', async () => {
  const { body, method, path, text } = await (kinds['role'] as () => Promise<Edited>)();
  const etag = (await get(path)).headers['etag'] as string;
  const texts = ['a', 'b', 'c', 'd'];
  const answers = await Promise.all(
    texts.map((words) =>
      app.call(method, path, { auth: stack.auth, body: body(words), headers: { 'if-match': etag } }),
    ),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412]);
  expect(text((await get(path)).json)).toBe(texts[answers.findIndex(({ status }) => status === 200)]);
});
