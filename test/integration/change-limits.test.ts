import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';
import { runAdminCommand } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { grant, type Person, person, team } from '../support/grants.ts';
import { beginning, removal } from '../support/journal-entries.ts';
import { queryPath, resultOf } from '../support/procedures.ts';
import { exportState, resourceNames } from '../support/stack-state.ts';
import { createStack, ok, type RunningUpdate, type TestStack } from '../support/state.ts';
import { noteStatements } from '../support/statement-count.ts';
import type { TestApp } from '../support/test-app.ts';
import { makeKey } from '../support/test-issuer.ts';
import { testReplicas } from '../support/test-replicas.ts';
import { append, complete } from '../support/update-calls.ts';

/** Three replicas; the last one leaves every body to a job. */
const apps = testReplicas({}, {}, { HOLDFAST_DIRECT_BYTES: '1' });
let app: TestApp;
beforeAll(() => {
  [app] = apps;
});

const refOf = ({ organization, project, stack }: TestStack) => ({ organization, project, stack });
const head = 'ab12'.repeat(10);
const atHead = { 'git.head': head, 'git.dirty': 'false' };
const bucketType = 'aws:s3/bucket:Bucket';

const resource = (name: string, type = bucketType, more: object = {}) => ({
  urn: `urn:pulumi:dev::proj::${type}::${name}`,
  type,
  custom: true,
  ...more,
});
const begins = (sequence: number, type: string, of: object) => beginning(sequence, sequence, { resource: of, type });
const deletes = (sequence: number, name: string, type?: string, more?: object) =>
  begins(sequence, 'deleting', resource(name, type, more));
const creates = (sequence: number, name: string, type?: string) => begins(sequence, 'creating', resource(name, type));

/** A stack with buckets b0, b1, … */
async function stackWith(count: number, more: readonly object[] = []): Promise<TestStack> {
  const stack = await createStack(app);
  const resources = [...Array.from({ length: count }, (_, at) => resource(`b${at}`)), ...more];
  const deployment = { manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' }, resources };
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: { version: 3, deployment } }));
  return stack;
}

/** Two people who may approve runs of the stack, and one who may only begin them. */
const peopleOf = async ({ organization }: TestStack) => ({
  admin: await person(app, organization, 'admin'),
  other: await person(app, organization, 'admin'),
  runner: await person(app, organization, 'member'),
});

const setRule = ({ auth, organization }: TestStack, kind: string, settings: object, scope: object = {}) =>
  ok(app.call('POST', `/api/orgs/${organization}/update-rules`, { auth, body: { kind, settings, ...scope } }));

async function begin(
  stack: TestStack,
  { auth = stack.auth, environment = atHead as object, kind = 'update', journalVersion = 1 } = {},
): Promise<RunningUpdate> {
  const metadata = { message: '', environment };
  const { json } = await ok(app.call('POST', `${stack.path}/${kind}`, { auth, body: { metadata } }));
  const path = `${stack.path}/update/${json.updateID}`;
  const started = await ok(app.call('POST', path, { auth, body: { journalVersion } }));
  return { id: json.updateID, path, lease: `update-token ${started.json.token}`, version: started.json.version };
}

const stateOf = async (stack: TestStack): Promise<{ resources: string[]; pending: string[] }> => {
  const { json } = await exportState(app, stack);
  const pending: { resource: { urn: string } }[] = json.deployment.pending_operations ?? [];
  return {
    resources: resourceNames(json),
    pending: pending.map((one) => one.resource.urn.split('::').at(-1) as string),
  };
};

const refusal = (message: string | RegExp) => ({
  status: 403,
  json: {
    code: 403,
    message: typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message),
  },
});

describe('most deletes and replacements', () => {
  test('the one that would cross the limit is refused; what is finished beside it is stored', async () => {
    const stack = await stackWith(5);
    await setRule(stack, 'change-limit', { changes: 2 }, { note: 'ask the platform team' });
    const update = await begin(stack);
    await ok(append(app, update, [deletes(1, 'b0'), deletes(2, 'b1'), creates(3, 'new')]));
    const batch = [removal(4, 1, 0), deletes(5, 'b2'), removal(6, 2, 1)];
    // Its answer was lost, say, and the client reaches another replica.
    for (const on of apps) {
      const refused = await append(on, update, batch);
      expect(refused).toMatchObject(
        refusal(/at most 2 \(ask the platform team\); this one has begun 2 and is about to begin 1 more/),
      );
      expect(refused.json.message).toContain(`holdfast admin approve ${stack.organization}/proj/dev ${head} --reason`);
    }
    // From then on nothing begins.
    expect(await append(app, update, [creates(7, 'more')])).toMatchObject(refusal('at most 2'));
    expect(await stateOf(stack)).toEqual({ resources: ['b2', 'b3', 'b4'], pending: ['new'] });
    await ok(complete(app, update, 'failed'));
    expect(await stateOf(stack)).toEqual({ resources: ['b2', 'b3', 'b4'], pending: ['new'] });
    const events = await query(
      app,
      `select outcome, actor, details from audit_events where action = 'update.stop' and update_id = $1`,
      [update.id],
    );
    expect(events).toMatchObject([{ outcome: 'refused', actor: 'server' }]);
    expect(JSON.parse(events[0]?.['details'] as string)).toMatchObject({ rule: 'change-limit', commit: head });
  });

  test('a batch of many is refused whole, before any of it begins', async () => {
    const stack = await stackWith(5);
    await setRule(stack, 'change-limit', { changes: 2 });
    const update = await begin(stack);
    const batch = [deletes(1, 'b0'), deletes(2, 'b1'), deletes(3, 'b2')];
    expect(await append(app, update, batch)).toMatchObject(refusal('has begun 0 and is about to begin 3 more'));
    expect(await stateOf(stack)).toMatchObject({ pending: [] });
  });

  test('counted exactly, however many replicas take batches at once', async () => {
    const stack = await stackWith(30);
    await setRule(stack, 'change-limit', { changes: 7 });
    const update = await begin(stack);
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, at) => append(apps[at % 3] as TestApp, update, [deletes(at + 1, `b${at}`)])),
    );
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(7);
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(23);
    expect((await stateOf(stack)).pending).toHaveLength(7);
  });

  test('a replacement counts once, in both orders, and a new resource does not', async () => {
    const stack = await stackWith(4);
    await setRule(stack, 'change-limit', { changes: 2 });
    const update = await begin(stack);
    await ok(append(app, update, [creates(1, 'b0'), creates(2, 'fresh'), deletes(3, 'b1')]));
    await ok(append(app, update, [deletes(4, 'b0'), creates(5, 'b1'), creates(6, 'fresher')]));
    expect(await append(app, update, [creates(7, 'b2')])).toMatchObject(refusal('has begun 2'));
  });

  test('components, providers and resources that are only read do not count', async () => {
    const stack = await stackWith(2);
    await setRule(stack, 'change-limit', { changes: 0 });
    const update = await begin(stack);
    const harmless = [
      deletes(1, 'group', 'my:index:Group', { custom: false }),
      deletes(2, 'aws', 'pulumi:providers:aws'),
      deletes(3, 'read', bucketType, { external: true }),
      begins(4, 'updating', resource('b0')),
      beginning(5, 5),
    ];
    await ok(append(app, update, harmless));
    expect(await append(app, update, [deletes(6, 'b0')])).toMatchObject(refusal('at most 0'));
  });

  test('resources that an earlier update has half deleted are not replaced by their creation', async () => {
    const stack = await stackWith(1, [resource('gone', bucketType, { pendingReplacement: true })]);
    await setRule(stack, 'change-limit', { changes: 0 });
    const update = await begin(stack);
    await ok(append(app, update, [creates(1, 'gone')]));
    expect(await append(app, update, [creates(2, 'b0')])).toMatchObject(refusal('at most 0'));
  });

  test('as a share of the state', async () => {
    const stack = await stackWith(20);
    await setRule(stack, 'change-limit', { changes: 50, percent: 10 });
    const update = await begin(stack);
    await ok(append(app, update, [deletes(1, 'b0'), deletes(2, 'b1')]));
    expect(await append(app, update, [deletes(3, 'b2')])).toMatchObject(
      refusal('at most 50 and 10% of its 20 resources'),
    );
  });

  test('the rule of the stack decides before that of the organization, and holds as it was at the creation', async () => {
    const stack = await stackWith(3);
    await setRule(stack, 'change-limit', { changes: 0 });
    await setRule(stack, 'change-limit', { changes: 1 }, { project: 'proj', stack: 'dev' });
    const update = await begin(stack);
    await setRule(stack, 'change-limit', { changes: 9 }, { project: 'proj', stack: 'dev' });
    await ok(append(app, update, [deletes(1, 'b0')]));
    expect(await append(app, update, [deletes(2, 'b1')])).toMatchObject(refusal('An update of stack proj/dev'));
  });

  test('repeated refusals are counted once', async () => {
    const stack = await stackWith(3);
    await setRule(stack, 'change-limit', { changes: 1 });
    const update = await begin(stack);
    for (const on of apps) await ok(append(on, update, [deletes(1, 'b0')]));
    expect(await append(app, update, [deletes(2, 'b1')])).toMatchObject(refusal('has begun 1'));
  });
});

describe('protected types', () => {
  const database = 'aws:rds/instance:Instance';

  test.each([
    ['deleted', deletes(1, 'db', database), 'deletes'],
    ['replaced', creates(1, 'db', database), 'replaces'],
  ])('are not %s', async (_, entry, verb) => {
    const stack = await stackWith(2, [resource('db', database)]);
    await setRule(stack, 'protected-types', { types: ['aws:kms/*', 'aws:rds/*'] }, { project: 'proj' });
    const update = await begin(stack);
    expect(await append(app, update, [entry])).toMatchObject(
      refusal(
        `No update of project proj deletes or replaces a resource of this type without approval; this one ${verb} ${database} "db"`,
      ),
    );
    expect(await stateOf(stack)).toEqual({ resources: ['b0', 'b1', 'db'], pending: [] });
  });

  test.each([['together'], ['before it']])(
    'are not replaced after a migration of the state that came %s',
    async (when) => {
      const stack = await stackWith(2);
      await setRule(stack, 'protected-types', { types: ['aws:rds/*'] });
      const update = await begin(stack, { journalVersion: 2 });
      const migration = {
        ...{ version: 2, kind: 10, sequenceID: 1, operationID: 0, removeOld: null, removeNew: null },
        layout: [{ baseIndex: 0 }, { stateIndex: 0 }],
        states: [resource('db', database, { id: 'x' })],
      };
      const creation = creates(2, 'db', database);
      for (const on of apps) if (when !== 'together') await ok(append(on, update, [migration]));
      const refused = await append(app, update, when === 'together' ? [migration, creation] : [creation]);
      expect(refused).toMatchObject(refusal(`replaces ${database} "db"`));
      expect(await append(app, update, [creates(3, 'other', database)])).toMatchObject(refusal('"db"'));
      expect(await stateOf(stack)).toEqual({ resources: ['b0', 'db'], pending: [] });
    },
  );

  test('new ones are created, and others deleted', async () => {
    const stack = await stackWith(2, [resource('db', database)]);
    await setRule(stack, 'protected-types', { types: ['aws:rds/*'] });
    const update = await begin(stack);
    await ok(
      append(app, update, [
        creates(1, 'other', database),
        deletes(2, 'b0'),
        begins(3, 'updating', resource('db', database)),
      ]),
    );
  });
});

describe('without limits', () => {
  test('stacks of other rules, previews and updates without rules pay nothing for a batch', async () => {
    const stack = await stackWith(3);
    await setRule(stack, 'change-limit', { changes: 0 }, { project: 'other' });
    await setRule(stack, 'lock-wait', { seconds: 0 });
    const update = await begin(stack);
    await ok(append(app, update, [deletes(1, 'b0')]));
    const noted = noteStatements(app);
    await ok(append(app, update, [removal(2, 1, 0), deletes(3, 'b1')]));
    expect(noted.begun).toEqual(['journalEntries.append']);
  });
});

describe('updates without a journal', () => {
  test('are not limited by default', async () => {
    const stack = await stackWith(1);
    await setRule(stack, 'change-limit', { changes: 0 });
    await ok(complete(app, await begin(stack, { journalVersion: 0 })));
  });

  test.each([
    ['change-limit', { changes: 0 }],
    ['protected-types', { types: ['aws:*'] }],
  ])('are refused by %s if it says so, and leave the stack free', async (kind, settings) => {
    const stack = await stackWith(1);
    await setRule(stack, kind, { ...settings, withoutJournal: 'refuse' });
    await expect(begin(stack, { journalVersion: 0 })).rejects.toThrow('need an update that sends a journal');
    await ok(complete(app, await begin(stack)));
  });
});

describe('approval', () => {
  interface Asked {
    readonly stack: TestStack;
    readonly runner: Person;
    readonly approvalId: string;
  }

  /** The update of a member was stopped. */
  async function asked(environment: object = atHead): Promise<Asked> {
    const stack = await stackWith(3);
    await setRule(stack, 'change-limit', { changes: 0 });
    const runner = await person(app, stack.organization, 'member');
    const update = await begin(stack, { auth: runner.auth, environment });
    expect((await append(app, update, [deletes(1, 'b0')])).status).toBe(403);
    await ok(complete(app, update, 'failed'));
    const { json } = await ok(app.call('GET', `${stack.path}/approvals`, { auth: stack.auth }));
    return { stack, runner, approvalId: json.approvals[0]?.id };
  }
  const give = ({ approvalId, stack }: Asked, auth: string, body: object = { reason: 'reviewed' }) =>
    app.call('POST', `${stack.path}/approvals/${approvalId}`, { auth, body });
  /** The status of a delete by an update. */
  async function deleting(stack: TestStack, options: Parameters<typeof begin>[1]): Promise<number> {
    const update = await begin(stack, options);
    const { status } = await append(app, update, [deletes(1, 'b0')]);
    await ok(complete(app, update, 'failed'));
    return status;
  }

  test('a stopped update requests it; the next run of that commit passes, others do not', async () => {
    const request = await asked();
    const { runner, stack } = request;
    const given = await ok(give(request, stack.auth, { reason: 'reviewed with the team', minutes: 5 }));
    expect(given.json).toMatchObject({
      commit: head,
      kind: 'update',
      valid: true,
      reason: 'reviewed with the team',
      askedBy: runner.login,
    });
    const { auth } = runner;
    expect(await deleting(stack, { auth })).toBe(204);
    expect(await deleting(stack, { auth, environment: { 'git.head': 'cd34'.repeat(10) } })).toBe(403);
    expect(await deleting(stack, { auth, environment: { ...atHead, 'git.dirty': 'true' } })).toBe(403);
    expect(await deleting(stack, { auth, kind: 'destroy' })).toBe(403);
    const events = await query(
      app,
      `select action, login, object, details::json ->> 'reason' as reason from audit_events where action like 'approval.%' and object like $1 order by number`,
      [`${stack.organization}/%`],
    );
    expect(events).toMatchObject([
      { action: 'approval.give', object: `${stack.organization}/proj/dev`, reason: 'reviewed with the team' },
      { action: 'approval.use', reason: 'reviewed with the team' },
    ]);
  });

  test('who asks for it after an update was stopped replaces neither what was refused, nor whose update it was', async () => {
    const request = await asked();
    const { stack } = request;
    const list = async () =>
      (await ok(app.call('GET', `${stack.path}/approvals`, { auth: stack.auth }))).json.approvals;
    const [stopped] = await list();
    const updates = () => query(app, 'select update_id from update_approvals where id = $1', [request.approvalId]);
    const [update] = await updates();
    expect(update?.['update_id']).toEqual(expect.any(String));
    const other = await person(app, stack.organization, 'member');
    const ask = { commit: head, reason: 'only "tags" change' };
    for (let times = 0; times < 2; times++)
      await ok(app.call('POST', `${stack.path}/approvals`, { auth: other.auth, body: ask }));
    const note = ` – ${other.login}: "only \\"tags\\" change"`;
    expect(await list()).toMatchObject([{ askedBy: request.runner.login, request: stopped.request + note + note }]);
    expect(await updates()).toEqual([update]);
    for (let times = 0; times < 30; times++)
      await ok(app.call('POST', `${stack.path}/approvals`, { auth: other.auth, body: ask }));
    expect((await list())[0].request).toHaveLength(1_000);
    // The next stopped run begins anew.
    expect(await deleting(stack, { auth: other.auth })).toBe(403);
    expect(await list()).toMatchObject([{ askedBy: other.login, request: stopped.request }]);
  });

  test('a token that is named like a user is shown as a token', async () => {
    const stack = await stackWith(1);
    await setRule(stack, 'change-limit', { changes: 0 });
    const { admin } = await peopleOf(stack);
    const blue = await team(app, admin.organizationId, 'blue', [admin.userId]);
    await grant(app, admin.organizationId, { teamId: blue }, 'allow', ['admin']);
    for (const [path, label] of [
      ['tokens', 'organization:'],
      ['teams/blue/tokens', 'team:blue/'],
    ]) {
      const made = await ok(
        app.call('POST', `/api/orgs/${stack.organization}/${path}`, { auth: admin.auth, body: { name: admin.login } }),
      );
      const auth = `token ${made.json.tokenValue}`;
      const read = async () =>
        (await ok(app.call('GET', `${stack.path}/approvals`, { auth: admin.auth }))).json.approvals[0].askedBy;
      expect(await deleting(stack, { auth })).toBe(403);
      expect(await read()).toBe(`${label}${admin.login}`);
      // As in requests ahead of runs.
      await query(app, 'delete from update_approvals where asked_by = $1', [`${label}${admin.login}`]);
      const body = { commit: head, reason: 'x' };
      await ok(app.call('POST', `${stack.path}/approvals`, { auth, body }));
      expect(await read()).toBe(`${label}${admin.login}`);
    }
  });

  test('it ends', async () => {
    const request = await asked();
    await ok(give(request, request.stack.auth));
    await query(app, `update update_approvals set expires_at = now() - interval '1 second' where id = $1`, [
      request.approvalId,
    ]);
    expect(await deleting(request.stack, { auth: request.runner.auth })).toBe(403);
    const { json } = await ok(app.call('GET', `${request.stack.path}/approvals`, { auth: request.stack.auth }));
    expect(json.approvals).toMatchObject([{ valid: false }]);
    expect(json.approvals[0]).not.toHaveProperty('approvedBy');
  });

  test('it ends with the account, the membership and the token of its giver', async () => {
    const request = await asked();
    const { runner, stack } = request;
    const list = async () =>
      (await ok(app.call('GET', `${stack.path}/approvals`, { auth: stack.auth }))).json.approvals;
    const member = ({ login }: Person) => `/api/orgs/${stack.organization}/members/${login}`;
    const endings: ((giver: Person) => Promise<unknown>)[] = [
      ({ userId }) => query(app, 'update users set deactivated_at = now() where id = $1', [userId]),
      (giver) => ok(app.call('DELETE', member(giver), { auth: stack.auth })),
      ({ tokenId }) => query(app, 'update api_tokens set revoked_at = now() where id = $1', [tokenId]),
      async ({ organizationId, userId }) => {
        await query(app, 'delete from memberships where user_id = $1', [userId]);
        await query(app, `insert into memberships (organization_id, user_id, role) values ($1, $2, 'admin')`, [
          organizationId,
          userId,
        ]);
      },
    ];
    for (const end of endings) {
      const giver = await person(app, stack.organization, 'admin');
      await ok(give(request, giver.auth));
      expect(await list()).toMatchObject([{ valid: true, approvedBy: giver.login }]);
      await end(giver);
      expect(await list()).toMatchObject([{ valid: false }]);
      expect(await deleting(stack, { auth: runner.auth })).toBe(403);
      // It is requested anew.
      expect((await list())[0]).not.toHaveProperty('approvedBy');
    }
  });

  test('under a legal hold, one that ends stays, whatever is requested and given for its commit after it', async () => {
    const request = await asked();
    const { approvalId, runner, stack } = request;
    const another = await person(app, stack.organization, 'admin');
    await ok(give(request, stack.auth));
    await query(
      app,
      `update stacks set held_at = now(), held_by = 'x', hold_reason = 'x' where id = (select stack_id from update_approvals where id = $1)`,
      [approvalId],
    );
    await ok(app.call('DELETE', `${stack.path}/approvals/${approvalId}`, { auth: stack.auth }));
    const list = async () =>
      (await ok(app.call('GET', `${stack.path}/approvals`, { auth: stack.auth }))).json.approvals;
    const [{ approvedBy }] = await list();
    const first = { approvedBy, valid: false, reason: 'reviewed' };
    expect(await list()).toMatchObject([{ ...first, id: approvalId }]);
    expect(await deleting(stack, { auth: runner.auth })).toBe(403);
    expect(await list()).toMatchObject([{ id: approvalId }, first]);
    expect((await list())[0]).not.toHaveProperty('approvedBy');
    const kept = (await list())[1].id;
    for (const call of [
      give({ ...request, approvalId: kept }, another.auth),
      app.call('DELETE', `${stack.path}/approvals/${kept}`, { auth: stack.auth }),
    ])
      expect(await call).toMatchObject({ status: 404 });
    // One in force that is given anew ends, too.
    await ok(give(request, another.auth));
    await ok(give(request, stack.auth));
    const both = await list();
    expect(both).toHaveLength(3);
    expect(both).toContainEqual(expect.objectContaining(first));
    expect(both).toContainEqual(expect.objectContaining({ ...first, approvedBy: another.login }));
    expect(both).toContainEqual(expect.objectContaining({ ...first, id: approvalId, valid: true }));
    expect(await deleting(stack, { auth: runner.auth })).toBe(204);
  });

  test('the user who runs it can neither give it nor pass by one given before', async () => {
    const stack = await stackWith(3);
    await setRule(stack, 'change-limit', { changes: 0 });
    const [admin, other] = [
      await person(app, stack.organization, 'admin'),
      await person(app, stack.organization, 'admin'),
    ];
    const { json } = await ok(
      app.call('POST', `${stack.path}/approvals`, { auth: admin.auth, body: { commit: head, reason: 'cleaning up' } }),
    );
    const request = { stack, runner: admin, approvalId: json.id as string };
    const second = await ok(app.call('POST', '/api/user/tokens', { auth: admin.auth, body: { name: 'second' } }));
    for (const auth of [admin.auth, `token ${second.json.tokenValue}`])
      expect(await give(request, auth)).toMatchObject({
        status: 403,
        json: { message: expect.stringContaining('Another user') },
      });
    await ok(give(request, other.auth));
    expect(await deleting(stack, { auth: other.auth })).toBe(403);
    expect(await deleting(stack, { auth: admin.auth })).toBe(204);
  });

  describe('through tokens that another user has created', () => {
    /** Makes a token of the organization, which may approve, with another's authorization. */
    const makeToken = async (
      { organization }: TestStack,
      auth: string,
      of = 'tokens',
      admin: object = { admin: true },
    ) => {
      const name = randomUUID();
      const { json } = await ok(
        app.call('POST', `/api/orgs/${organization}/${of}`, { auth, body: { name, ...admin } }),
      );
      return { id: json.id as string, auth: `token ${json.tokenValue}` };
    };
    const refused = (pattern: RegExp) => ({ status: 403, json: { message: expect.stringMatching(pattern) } });

    /** Asks ahead, and lets somebody give the approval. */
    async function askedBy(stack: TestStack, auth: string): Promise<string> {
      const body = { commit: head, reason: 'cleaning up' };
      const { json } = await ok(app.call('POST', `${stack.path}/approvals`, { auth, body }));
      return json.id as string;
    }

    async function rotate(stack: TestStack, id: string, auth: string, overlapSeconds: number): Promise<string> {
      const path = `/api/orgs/${stack.organization}/tokens/${id}/rotate`;
      return `token ${(await ok(app.call('POST', path, { auth, body: { overlapSeconds } }))).json.tokenValue}`;
    }

    /** A token becomes that of a run, whose issuer has keys that a caller gives. */
    async function issuerOf(stack: TestStack, botId: string, auth: string) {
      const newKeys = async () => ({ keys: [(await makeKey('ES256', randomUUID())).jwk] });
      const jwks = await newKeys();
      const issuers = `/api/orgs/${stack.organization}/oidc/issuers`;
      const request = { name: 'own', url: 'https://ci.example.com', jwks };
      const { json } = await ok(app.call('POST', issuers, { auth, body: request }));
      await query(
        app,
        `with policy as (
           insert into trust_policies (issuer_id, position, decision, token_kind, rules) values ($2, 0, 'allow', 'organization', '{}') returning id)
         update api_tokens set created_by = null, policy_id = policy.id, claims = '{}' from policy where api_tokens.id = $1`,
        [botId, json.id],
      );
      const giveKeys = async (by: string, given?: object) => {
        await ok(app.call('PATCH', `${issuers}/${json.id}`, { auth: by, body: { jwks: given ?? (await newKeys()) } }));
        // New keys end the tokens of runs.
        await query(app, 'update api_tokens set revoked_at = null where id = $1', [botId]);
      };
      return { giveKeys, jwks };
    }

    test('machines approve nothing, regardless of the creator of their tokens, and users do', async () => {
      const request = await asked();
      const { stack } = request;
      const admin = await person(app, stack.organization, 'admin');
      const blue = await team(app, admin.organizationId, 'blue', [admin.userId]);
      await grant(app, admin.organizationId, { teamId: blue }, 'allow', ['admin']);
      const service = { service: true, scopes: [{ permissions: ['admin'], stacks: '*/*' }] };
      for (const { auth } of [
        await makeToken(stack, admin.auth),
        await makeToken(stack, admin.auth, 'teams/blue/tokens', {}),
        await makeToken(stack, admin.auth, 'tokens', service),
      ])
        expect(await give(request, auth)).toMatchObject(refused(/^Tokens of teams/));
      await ok(give(request, admin.auth));
    });

    test('with approvers=tokens they do, but not for their creators', async () => {
      const stack = await stackWith(3);
      await setRule(stack, 'change-limit', { changes: 0, approvers: 'tokens' });
      const [admin, other] = [
        await person(app, stack.organization, 'admin'),
        await person(app, stack.organization, 'admin'),
      ];
      const runner = admin;
      const own = await makeToken(stack, admin.auth);
      // Made by the first one, as far as anybody can know.
      const ofOwn = await makeToken(stack, own.auth);
      const foreign = await makeToken(stack, other.auth);
      const rotated = await makeToken(stack, other.auth);
      const byRotation = await rotate(stack, rotated.id, admin.auth, 0);
      const approvalId = await askedBy(stack, admin.auth);
      for (const auth of [own.auth, ofOwn.auth, byRotation])
        expect(await give({ stack, runner, approvalId }, auth)).toMatchObject(refused(/^Another user/));
      await ok(give({ stack, runner, approvalId }, foreign.auth));
      expect(await deleting(stack, { auth: admin.auth })).toBe(204);
      expect(await deleting(stack, { auth: own.auth })).toBe(204);
      expect(await deleting(stack, { auth: other.auth })).toBe(403);
      // It counts no more once the rule leaves it to people.
      await setRule(stack, 'change-limit', { changes: 0 });
      expect(await deleting(stack, { auth: admin.auth })).toBe(403);
      await setRule(stack, 'change-limit', { changes: 0, approvers: 'tokens' });
      await setRule(stack, 'protected-types', { types: [bucketType] });
      expect(await deleting(stack, { auth: admin.auth })).toBe(403);
    });

    test('who could give it is known whatever becomes of the token that gave it', async () => {
      const stack = await stackWith(3);
      await setRule(stack, 'change-limit', { changes: 0, approvers: 'tokens' });
      const { admin, other, runner } = await peopleOf(stack);
      const ops = await team(app, admin.organizationId, 'ops', [admin.userId]);
      await grant(app, admin.organizationId, { teamId: ops }, 'allow', ['admin']);
      const ofTeam = await makeToken(stack, admin.auth, 'teams/ops/tokens', {});
      const approvalId = await askedBy(stack, runner.auth);
      await ok(give({ stack, runner, approvalId }, ofTeam.auth));
      await ok(app.call('DELETE', `/api/orgs/${stack.organization}/teams/ops`, { auth: other.auth }));
      expect(await query(app, 'select 1 from api_tokens where id = $1', [ofTeam.id])).toEqual([]);
      expect(await deleting(stack, { auth: admin.auth })).toBe(403);
      expect(await deleting(stack, { auth: runner.auth })).toBe(204);
      const rotated = await makeToken(stack, other.auth);
      expect(await askedBy(stack, runner.auth)).toBe(approvalId);
      await ok(give({ stack, runner, approvalId }, await rotate(stack, rotated.id, admin.auth, 0)));
      await rotate(stack, rotated.id, other.auth, 0);
      expect(await deleting(stack, { auth: admin.auth })).toBe(403);
      expect(await deleting(stack, { auth: runner.auth })).toBe(204);
    });

    test('a run of a token cannot be approved by the creator of the token, and does not pass by their earlier approvals', async () => {
      const stack = await stackWith(3);
      await setRule(stack, 'change-limit', { changes: 0 });
      const { admin, other, runner } = await peopleOf(stack);
      const bot = await makeToken(stack, admin.auth, 'tokens', {});
      const ofBot = await askedBy(stack, bot.auth);
      const list = await ok(
        app.call('GET', queryPath('approvals.ofStack', refOf(stack)), { auth: admin.auth, accept: null }),
      );
      expect(resultOf(list).data.items).toMatchObject([
        { mayGive: false, refusal: expect.stringMatching(/^Another user .*token that you have created/) },
      ]);
      expect(await give({ stack, runner, approvalId: ofBot }, admin.auth)).toMatchObject(refused(/^Another user/));
      const ofRunner = await askedBy(stack, runner.auth);
      await ok(give({ stack, runner, approvalId: ofRunner }, admin.auth));
      expect(await deleting(stack, { auth: bot.auth })).toBe(403);
      expect(await deleting(stack, { auth: runner.auth })).toBe(204);
      await ok(give({ stack, runner, approvalId: ofRunner }, other.auth));
      expect(await deleting(stack, { auth: bot.auth })).toBe(204);
    });

    test('a run is not approved by the one whom its id token names', async () => {
      const stack = await stackWith(3);
      await setRule(stack, 'change-limit', { changes: 0 });
      const { admin, other, runner } = await peopleOf(stack);
      const bot = await makeToken(stack, stack.auth, 'tokens', {});
      const claims = { actor: admin.login.toUpperCase() };
      const run = [bot.id, randomUUID(), JSON.stringify(claims)];
      await query(app, 'update api_tokens set created_by = null, policy_id = $2, claims = $3 where id = $1', run);
      const approvalId = await askedBy(stack, bot.auth);
      expect(await give({ stack, runner, approvalId }, admin.auth)).toMatchObject(refused(/^Another user/));
      await ok(give({ stack, runner, approvalId }, other.auth));
      expect(await deleting(stack, { auth: bot.auth })).toBe(204);
    });

    test('nor by the one who gave the keys with which its id token is signed', async () => {
      const stack = await stackWith(3);
      await setRule(stack, 'change-limit', { changes: 0 });
      const { admin, other, runner } = await peopleOf(stack);
      const bot = await makeToken(stack, stack.auth, 'tokens', {});
      const { giveKeys, jwks } = await issuerOf(stack, bot.id, admin.auth);
      const approvalId = await askedBy(stack, bot.auth);
      expect(await give({ stack, runner, approvalId }, admin.auth)).toMatchObject(refused(/^Another user/));
      await ok(give({ stack, runner, approvalId }, other.auth));
      await giveKeys(other.auth, jwks);
      expect(await give({ stack, runner, approvalId }, admin.auth)).toMatchObject(refused(/^Another user/));
      await giveKeys(other.auth);
      expect(await give({ stack, runner, approvalId }, other.auth)).toMatchObject(refused(/^Another user/));
      await ok(give({ stack, runner, approvalId }, admin.auth));
    });

    test('nor by those behind the token with which somebody gave them', async () => {
      const stack = await stackWith(3);
      await setRule(stack, 'change-limit', { changes: 0 });
      const { admin, other, runner } = await peopleOf(stack);
      const bot = await makeToken(stack, stack.auth, 'tokens', {});
      const shared = await makeToken(stack, admin.auth);
      const issuer = await issuerOf(stack, bot.id, shared.auth);
      const approvalId = await askedBy(stack, bot.auth);
      expect(await give({ stack, runner, approvalId }, admin.auth)).toMatchObject(refused(/^Another user/));
      await ok(give({ stack, runner, approvalId }, other.auth));
      // By a previous secret, too.
      await rotate(stack, shared.id, other.auth, 3_600);
      await issuer.giveKeys(shared.auth);
      for (const { auth } of [admin, other])
        expect(await give({ stack, runner, approvalId }, auth)).toMatchObject(refused(/^Another user/));
    });

    test('nor if it acts as another user', async () => {
      const stack = await stackWith(3);
      await setRule(stack, 'change-limit', { changes: 0 });
      const { admin, other, runner } = await peopleOf(stack);
      const run = [runner.userId, randomUUID(), JSON.stringify({ actor: admin.login })];
      const scopes = [{ organization: stack.organization, project: null, stack: null, permissions: 127 }];
      await query(
        app,
        'update api_tokens set created_by = null, policy_id = $2, claims = $3, scopes = $4 where user_id = $1',
        [...run, JSON.stringify(scopes)],
      );
      const approvalId = await askedBy(stack, runner.auth);
      expect(await give({ stack, runner, approvalId }, admin.auth)).toMatchObject(refused(/^Another user/));
      await ok(give({ stack, runner, approvalId }, other.auth));
    });

    test('a run is not approved by the holder of the previous secret, while it is valid', async () => {
      const stack = await stackWith(3);
      await setRule(stack, 'change-limit', { changes: 0 });
      const { admin, other, runner } = await peopleOf(stack);
      const bot = await makeToken(stack, stack.auth, 'tokens', {});
      const first = await rotate(stack, bot.id, admin.auth, 0);
      const second = await rotate(stack, bot.id, other.auth, 3_600);
      // As after a lost response.
      await rotate(stack, bot.id, other.auth, 3_600);
      expect((await app.call('GET', '/api/user', { auth: second })).status).toBe(401);
      const approvalId = await askedBy(stack, first);
      expect(await give({ stack, runner, approvalId }, admin.auth)).toMatchObject(refused(/^Another user/));
      await query(app, `update api_tokens set previous_until = now() - interval '1 second' where id = $1`, [bot.id]);
      await ok(give({ stack, runner, approvalId }, admin.auth));
    });
  });

  test('it needs the permission admin, a reason and a sensible time', async () => {
    const request = await asked();
    const member = await person(app, request.stack.organization, 'member');
    expect((await give(request, member.auth)).status).toBe(403);
    for (const body of [
      { reason: '' },
      { reason: ' ' },
      { reason: 'a\nb' },
      { reason: 'x', minutes: 0 },
      { reason: 'x', minutes: 100_000 },
    ])
      expect([body, (await give(request, request.stack.auth, body)).status]).toEqual([body, 400]);
    expect(
      (await give({ ...request, approvalId: '00000000-0000-4000-8000-000000000000' }, request.stack.auth)).status,
    ).toBe(404);
    const elsewhere = await createStack(app);
    expect((await give({ ...request, stack: elsewhere }, elsewhere.auth)).status).toBe(404);
    for (const body of [{ commit: 'abc' }, { commit: head, kind: 'preview' }])
      expect((await app.call('POST', `${request.stack.path}/approvals`, { auth: member.auth, body })).status).toBe(400);
  });

  test('without a commit nothing can be approved, and the message says so', async () => {
    const stack = await stackWith(1);
    await setRule(stack, 'change-limit', { changes: 0 });
    const update = await begin(stack, { environment: { ...atHead, 'git.dirty': 'true' } });
    expect(await append(app, update, [deletes(1, 'b0')])).toMatchObject(
      refusal('from a Git commit without local changes'),
    );
    const { json } = await ok(app.call('GET', `${stack.path}/approvals`, { auth: stack.auth }));
    expect(json.approvals).toEqual([]);
  });

  test('operators give it by a command, also before a request', async () => {
    const stack = await stackWith(2);
    await setRule(stack, 'change-limit', { changes: 0 });
    const name = `${stack.organization}/proj/dev`;
    const run = await runAdminCommand(app, 'approve', name, head, '--reason', 'night shift', '--kind', 'destroy');
    expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining('pass for 60 minutes') });
    expect(await deleting(stack, { kind: 'destroy' })).toBe(204);
    expect(await deleting(stack, {})).toBe(403);
    expect(await runAdminCommand(app, 'approvals', name)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/update .*not approved[\s\S]*destroy .*night shift/),
    });
    expect(await runAdminCommand(app, 'approve', name, 'abc', '--reason', 'x')).toMatchObject({ code: 1 });
  });

  test.each(['the API', 'a command'])(
    'it is given by %s for a run that nobody has stopped, though the stack has as many requests as are kept',
    async (by) => {
      const stack = await stackWith(2);
      await setRule(stack, 'change-limit', { changes: 0 });
      await query(
        app,
        `insert into update_approvals (stack_id, kind, commit_id, asked_by, update_id, request)
       select s.id, 'update', lpad(n::text, 40, '0'), 'a', gen_random_uuid(), 'x' from generate_series(1, 1000) n,
         stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id where o.name = $1`,
        [stack.organization],
      );
      const other = await person(app, stack.organization, 'admin');
      if (by === 'a command') {
        const run = await runAdminCommand(app, 'approve', `${stack.organization}/proj/dev`, head, '--reason', 'urgent');
        expect(run).toMatchObject({ code: 0 });
      } else {
        const body = { commit: head, reason: 'urgent' };
        const { json } = await ok(app.call('POST', `${stack.path}/approvals`, { auth: stack.auth, body }));
        await ok(give({ stack, runner: other, approvalId: json.id }, other.auth));
      }
      expect(await deleting(stack, {})).toBe(204);
    },
  );

  test('it goes with its stack', async () => {
    const request = await asked();
    await ok(app.call('DELETE', `${request.stack.path}?force=true`, { auth: request.stack.auth }));
    await createStackDeletion(app.context)();
    expect(await query(app, 'select 1 from update_approvals where id = $1', [request.approvalId])).toEqual([]);
  });
});
