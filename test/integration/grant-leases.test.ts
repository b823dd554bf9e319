import { describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createGrantRepository } from '../../src/shared/access/grant-repository.ts';
import { query } from '../support/database.ts';
import { grant, type Person, person, team } from '../support/grants.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { contractAccept, testApp, testReplica } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete, getUpdate } from '../support/update-calls.ts';

const app = testApp();
const replica = testReplica(app);

interface Running {
  readonly owner: TestStack;
  readonly member: Person;
  readonly stack: TestStack;
  readonly grantId: string;
  readonly teamId: string;
}

/** Somebody who may write to a stack only because of a grant to a team, by a tag. */
async function granted(): Promise<Running> {
  const owner = await createStack(app);
  await ok(app.call('PATCH', `${owner.path}/tags`, { auth: owner.auth, body: { team: 'blue' } }));
  const member = await person(app, owner.organization, 'viewer');
  const teamId = await team(app, member.organizationId, 'blue', [member.userId]);
  const grantId = await grant(app, member.organizationId, { teamId }, 'allow', ['write'], { tag: ['team', 'blue'] });
  return { owner, member, grantId, teamId, stack: { ...owner, auth: member.auth } };
}

/** An update whose lease both replicas have cached. */
async function running({ stack }: Running): Promise<RunningUpdate> {
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'r0', stack)));
  await ok(append(replica, update, creation(2, 'r1', stack)));
  return update;
}

const ways: readonly [string, (of: Running) => Promise<unknown>][] = [
  [
    'the grant is removed',
    ({ grantId, member }) => createGrantRepository(app.context.db).remove(member.organizationId, grantId),
  ],
  [
    'something denies it',
    ({ member }) => grant(app, member.organizationId, { userId: member.userId }, 'deny', ['write']),
  ],
  [
    'it is denied to the token',
    ({ member }) => grant(app, member.organizationId, { tokenId: member.tokenId }, 'deny', ['preview']),
  ],
  ['the team loses the user', ({ teamId }) => query(app, 'delete from team_members where team_id = $1', [teamId])],
  ['the team is deleted', ({ teamId }) => query(app, 'delete from teams where id = $1', [teamId])],
  [
    'the grant gets another tag',
    ({ grantId }) => query(app, `update grants set tag_value = 'red' where id = $1`, [grantId]),
  ],
  [
    'the stack gets another tag',
    ({ owner }) => ok(app.call('PATCH', `${owner.path}/tags`, { auth: owner.auth, body: { team: 'red' } })),
  ],
  [
    'the token gets scopes',
    ({ member }) =>
      query(
        app,
        `update api_tokens set scopes = '[{"organization":null,"project":"x","stack":null,"permissions":7}]' where id = $1`,
        [member.tokenId],
      ),
  ],
];

describe('a lease ends on every replica when', () => {
  test.each(ways)('%s', async (_, take) => {
    const of = await granted();
    const update = await running(of);
    await take(of);
    for (const each of [replica, app]) {
      const late = await append(each, update, creation(3, 'late', of.stack));
      expect([late.status, late.json.message]).toEqual([403, expect.stringMatching(/may no longer update this stack/)]);
    }
    expect((await complete(replica, update)).status).toBe(403);
    const next = await startUpdate(app, of.owner);
    expect((await getUpdate(app, of.owner, update)).status).toBe('cancelled');
    await ok(complete(app, next));
  });

  test('the role becomes weaker than what the defaults left', async () => {
    const owner = await createStack(app);
    const member = await person(app, owner.organization, 'admin');
    await createGrantRepository(app.context.db).setDefaults(member.organizationId, 1);
    const stack = { ...owner, auth: member.auth };
    const update = await startUpdate(app, stack, { journal: true });
    await query(app, `update memberships set role = 'member' where user_id = $1`, [member.userId]);
    expect((await append(app, update, creation(1, 'late', stack))).status).toBe(403);
  });
});

describe('the lease of a preview that locks its stack ends when writing is no longer allowed, because', () => {
  test.each<[string, (member: Person) => Promise<unknown>]>([
    ['it is denied', (member) => grant(app, member.organizationId, { userId: member.userId }, 'deny', ['write'])],
    [
      'the role becomes weaker',
      async ({ organizationId, userId }) => {
        // Viewers may still preview.
        await grant(app, organizationId, { userId }, 'allow', ['preview']);
        await query(app, `update memberships set role = 'viewer' where user_id = $1`, [userId]);
      },
    ],
    [
      'the token gets scopes',
      ({ tokenId }) =>
        query(
          app,
          `update api_tokens set scopes = '[{"organization":null,"project":null,"stack":null,"permissions":3}]' where id = $1`,
          [tokenId],
        ),
    ],
  ])('%s', async (_, take) => {
    const owner = await createStack(app);
    const member = await person(app, owner.organization, 'member');
    const stack = { ...owner, auth: member.auth };
    const plain = await startUpdate(app, stack, { kind: 'preview' });
    const contract = { auth: member.auth, accept: contractAccept, body: {} };
    const created = await ok(app.call('POST', `${stack.path}/preview`, contract));
    await ok(app.call('POST', `${stack.path}/update/${created.json.updateID}`, contract));
    await take(member);
    await ok(app.call('POST', `${plain.path}/renew_lease`, { auth: plain.lease, body: { duration: 300 } }));
    await ok(complete(app, await startUpdate(app, owner)));
  });
});

describe('a lease continues when', () => {
  test('the change leaves its permission, or concerns others; a preview when only writing is taken', async () => {
    const of = await granted();
    const other = await person(app, of.owner.organization, 'member');
    const update = await running(of);
    const preview = await startUpdate(app, of.stack, { kind: 'preview' });
    await grant(app, of.member.organizationId, { userId: of.member.userId }, 'deny', ['admin', 'decrypt']);
    await grant(app, of.member.organizationId, { userId: other.userId }, 'deny', ['read']);
    await ok(append(app, update, creation(3, 'r2', of.stack)));
    await ok(replica.call('POST', `${update.path}/renew_lease`, { auth: update.lease, body: { duration: 300 } }));
    await grant(app, of.member.organizationId, { userId: of.member.userId }, 'deny', ['write']);
    expect((await append(app, update, creation(4, 'late', of.stack))).status).toBe(403);
    await ok(app.call('POST', `${preview.path}/renew_lease`, { auth: preview.lease, body: { duration: 300 } }));
  });

  test('a viewer has it by a grant, and the role becomes viewer', async () => {
    const of = await granted();
    await query(app, `update memberships set role = 'member' where user_id = $1`, [of.member.userId]);
    const update = await running(of);
    await query(app, `update memberships set role = 'viewer' where user_id = $1`, [of.member.userId]);
    await ok(append(app, update, creation(3, 'r2', of.stack)));
    await ok(app.call('POST', `${update.path}/renew_lease`, { auth: update.lease, body: { duration: 300 } }));
  });
});

test('a renewal fails without the permission even if the triggers were off', async () => {
  const of = await granted();
  const update = await running(of);
  await query(
    app,
    `do $$ begin set local session_replication_role = replica; delete from grants where id = '${of.grantId}'; end $$`,
  );
  const renewal = await app.call('POST', `${update.path}/renew_lease`, { auth: update.lease, body: { duration: 300 } });
  expect(renewal.status).toBe(403);
});

test('an update that starts while its grant is being removed does not start, or ends', async () => {
  const of = await granted();
  const created = await ok(app.call('POST', `${of.stack.path}/update`, { auth: of.stack.auth, body: {} }));
  const path = `${of.stack.path}/update/${created.json.updateID}`;
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  try {
    await client.query('begin');
    await client.query('delete from grants where id = $1', [of.grantId]);
    const start = app.call('POST', path, { auth: of.stack.auth, body: {} });
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await until(async () => (await query(app, waiting)).length > 0, 'the start waits for the change');
    await client.query('commit');
    expect((await start).status).toBe(403);
  } finally {
    await client.end();
  }
});
