import { describe, expect, test } from '@jest/globals';
import { holdInserts, query } from '../support/database.ts';
import { expireLeases } from '../support/expire-leases.ts';
import { creation } from '../support/journal-entries.ts';
import { expectKept, join, leaveRunning, type Membership, renew, revoke } from '../support/lease-owners.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, startUpdate } from '../support/state.ts';
import { createTestApp, testApp } from '../support/test-app.ts';
import { append, cancel, complete, getUpdate } from '../support/update-calls.ts';

const app = testApp();

const ofUser = '(select id from users where login = $1)';
const ways: readonly [string, RegExp, (member: Membership) => Promise<unknown>][] = [
  ['its token is revoked', /token .* was revoked/, (member) => revoke(app, member)],
  [
    'its token is deleted',
    /token .* was revoked/,
    ({ tokenHash }) => query(app, 'delete from api_tokens where token_hash = $1', [tokenHash]),
  ],
  [
    'its token is given to somebody else',
    /token .* was revoked/,
    ({ tokenHash }) =>
      query(
        app,
        `with other as (insert into users (login) values (gen_random_uuid()::text) returning id)
         update api_tokens set user_id = other.id from other where token_hash = $1`,
        [tokenHash],
      ),
  ],
  [
    'its token expires',
    /token .* has expired/,
    ({ tokenHash }) => query(app, 'update api_tokens set expires_at = now() where token_hash = $1', [tokenHash]),
  ],
  [
    'its user is deactivated',
    /user .* was deactivated/,
    ({ login }) => query(app, 'update users set deactivated_at = now() where login = $1', [login]),
  ],
  [
    'its user is deleted',
    /token .* was revoked|may no longer/,
    ({ login }) => query(app, 'delete from users where login = $1', [login]),
  ],
  [
    'its membership is removed',
    /may no longer update/,
    ({ login }) => query(app, `delete from memberships where user_id = ${ofUser}`, [login]),
  ],
  [
    'its role becomes viewer',
    /may no longer update/,
    ({ login }) => query(app, `update memberships set role = 'viewer' where user_id = ${ofUser}`, [login]),
  ],
];

describe('a lease ends when', () => {
  test.each(ways)('%s; the update is cancelled and its state kept', async (_, message, take) => {
    const member = await join(app);
    const update = await leaveRunning(app, member);
    await take(member);
    const refused = await append(app, update, creation(7, 'late', member.stack));
    expect([refused.status, refused.json.code]).toEqual([403, 403]);
    expect(refused.json.message).toMatch(message);
    await expectKept(app, member, update);
    const again = await append(app, update, creation(7, 'late', member.stack));
    expect([again.status, again.json.message]).toEqual([403, refused.json.message]);
    const next = await startUpdate(app, member.owner, { journal: true });
    expect(next.version).toBe(2);
    await ok(complete(app, next));
  });

  test('a preview of that token runs beside it', async () => {
    const member = await join(app);
    const preview = await startUpdate(app, member.stack, { kind: 'preview' });
    await revoke(app, member);
    const renewal = await renew(app, preview, member.stack);
    expect(renewal.status).toBe(403);
    expect((await getUpdate(app, member.owner, preview)).status).toBe('cancelled');
  });

  test.each([true, false])('nobody calls: the next change of the stack succeeds (journal: %p)', async (journal) => {
    const member = await join(app);
    const update = await leaveRunning(app, member, journal);
    await revoke(app, member);
    const next = await startUpdate(app, member.owner);
    expect((await getUpdate(app, member.owner, update)).status).toBe('cancelled');
    expect(await exportedNames(app, member.owner)).toEqual(['r0']);
    await ok(complete(app, next));
  });

  test('nobody calls: the sweep cancels it and reports why', async () => {
    const member = await join(app);
    const update = await leaveRunning(app, member);
    const count = async () =>
      Number(
        /^holdfast_leases_revoked_total\{reason="token-revoked"\} (\d+)/m.exec(
          (await app.call('GET', '/metrics')).text,
        )?.[1] ?? 0,
      );
    const before = await count();
    await revoke(app, member);
    await expireLeases(app.context);
    expect(await count()).toBe(before + 1);
    await expectKept(app, member, update);
    const [row] = await query(app, 'select end_reason from updates where id = $1', [update.id]);
    expect(row).toEqual({ end_reason: 'token-revoked' });
  });
});

describe('a lease continues when', () => {
  test.each([
    [
      'another token of its user is revoked',
      ({ login }: Membership) =>
        query(
          app,
          `insert into api_tokens (user_id, token_hash, revoked_at) select id, sha256(login::bytea), now() from users where login = $1`,
          [login],
        ).then(() => query(app, 'delete from api_tokens where token_hash = sha256($1::bytea)', [login])),
    ],
    [
      'its user leaves another organization',
      async ({ login }: Membership) => {
        await app.createUser('elsewhere', 'admin', login);
        await query(
          app,
          `delete from memberships where user_id = ${ofUser} and organization_id = (select id from organizations where name = 'elsewhere')`,
          [login],
        );
      },
    ],
    [
      'its user becomes admin',
      ({ login }: Membership) => query(app, `update memberships set role = 'admin' where user_id = ${ofUser}`, [login]),
    ],
    [
      'its user is an admin no more, but a member',
      async ({ login }: Membership) => {
        await query(app, `update memberships set role = 'admin' where user_id = ${ofUser}`, [login]);
        await query(app, `update memberships set role = 'member' where user_id = ${ofUser}`, [login]);
      },
    ],
    [
      'its token is used, described and given more time',
      ({ tokenHash }: Membership) =>
        query(
          app,
          `update api_tokens set description = 'new', last_used_at = now(), revoked_at = null, expires_at = now() + interval '1 year' where token_hash = $1`,
          [tokenHash],
        ),
    ],
    [
      'the user is no longer a site admin',
      ({ login }: Membership) => query(app, 'update users set site_admin = false where login = $1', [login]),
    ],
  ] as const)('%s', async (_, act) => {
    const member = await join(app);
    const update = await leaveRunning(app, member);
    await act(member);
    await ok(append(app, update, creation(3, 'more', member.stack)));
    await ok(complete(app, update));
    expect(await exportedNames(app, member.owner)).toEqual(['r0', 'more']);
  });

  test('it has already ended: a repeated complete is answered as before', async () => {
    const member = await join(app);
    const update = await leaveRunning(app, member);
    await ok(complete(app, update));
    await revoke(app, member);
    await ok(complete(app, update));
    expect((await getUpdate(app, member.owner, update)).status).toBe('succeeded');
  });
});

test('a lease does not outlive its token, neither at the start nor when renewed', async () => {
  const member = await join(app);
  const [row] = await query<{ until: Date }>(
    app,
    `update api_tokens set expires_at = now() + interval '100 seconds' where token_hash = $1 returning expires_at as until`,
    [member.tokenHash],
  );
  const expected = Math.floor((row?.until.getTime() ?? 0) / 1000);
  const { json: created } = await ok(app.call('POST', `${member.stack.path}/update`, { auth: member.auth, body: {} }));
  const at = `${member.stack.path}/update/${created.updateID}`;
  const { json: started } = await ok(app.call('POST', at, { auth: member.auth, body: {} }));
  expect(Math.abs(started.tokenExpiration - expected)).toBeLessThanOrEqual(1);
  const renewal = app.call('POST', `${at}/renew_lease`, {
    auth: `update-token ${started.token}`,
    body: { duration: 300 },
  });
  expect(Math.abs((await ok(renewal)).json.tokenExpiration - expected)).toBeLessThanOrEqual(1);
  // Both have expired.
  await query(
    app,
    `with held as (update updates set expires_at = now() - interval '1 second' where id = $1 returning expires_at)
     select 1 from held`,
    [created.updateID],
  );
  await query(app, `alter table api_tokens disable trigger user`);
  await query(app, `update api_tokens set expires_at = now() - interval '2 seconds' where token_hash = $1`, [
    member.tokenHash,
  ]);
  await query(app, `alter table api_tokens enable trigger user`);
  await expireLeases(app.context);
  const [ended] = await query(app, 'select status, end_reason from updates where id = $1', [created.updateID]);
  expect(ended).toEqual({ status: 'cancelled', end_reason: 'token-expired' });
});

test('a renewal checks token, user and membership itself, in case a trigger is missing', async () => {
  const member = await join(app);
  const update = await leaveRunning(app, member);
  await query(app, 'alter table memberships disable trigger user');
  await query(app, `update memberships set role = 'viewer' where user_id = ${ofUser}`, [member.login]);
  await query(app, 'alter table memberships enable trigger user');
  expect((await renew(app, update, member.stack)).status).toBe(403);
});

test('a renewal of an update requires the right to update, one of a preview only the right to preview', async () => {
  const member = await join(app);
  const update = await leaveRunning(app, member);
  const preview = await startUpdate(app, member.stack, { kind: 'preview' });
  await query(app, 'alter table api_tokens disable trigger user');
  await query(
    app,
    `update api_tokens set scopes = '[{"organization":null,"project":null,"stack":null,"permissions":3}]' where token_hash = $1`,
    [member.tokenHash],
  );
  await query(app, 'alter table api_tokens enable trigger user');
  const renewals = [await renew(app, preview, member.stack), await renew(app, update, member.stack)];
  expect(renewals.map(({ status }) => status)).toEqual([200, 403]);
});

describe('an update that waits for its start', () => {
  const create = async ({ stack }: Membership) => {
    const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
    return { id: json.updateID as string, path: `${stack.path}/update/${json.updateID}` };
  };

  test.each(ways)('can be started by nobody when %s', async (_, message, take) => {
    const member = await join(app);
    const update = await create(member);
    await take(member);
    expect([401, 403, 404]).toContain((await app.call('POST', update.path, { auth: member.auth, body: {} })).status);
    const start = await app.call('POST', update.path, { auth: member.owner.auth, body: {} });
    expect(start.status).toBe(409);
    expect((await getUpdate(app, member.owner, update)).status).toBe('cancelled');
    const [row] = await query<{ end_reason: string }>(app, 'select end_reason from updates where id = $1', [update.id]);
    expect(row?.end_reason).toMatch(/^(token-revoked|token-expired|user-deactivated|membership-ended)$/);
    expect(start.json.message).toMatch(new RegExp(`${message.source}|cancelled`));
    await startUpdate(app, member.owner);
  });

  test('depends on the token of the user who starts it', async () => {
    const member = await join(app);
    const update = await create(member);
    const { json } = await ok(app.call('POST', update.path, { auth: member.owner.auth, body: {} }));
    await revoke(app, member);
    await ok(cancel(app, member.owner, update));
    expect(json.token).toBeDefined();
    const [row] = await query(app, 'select end_reason from updates where id = $1', [update.id]);
    expect(row).toEqual({ end_reason: 'cancelled' });
  });
});

describe('a start and a revocation at once', () => {
  test('leave no lease in either order', async () => {
    for (let round = 0; round < 6; round++) {
      const member = await join(app);
      const { json } = await ok(app.call('POST', `${member.stack.path}/update`, { auth: member.auth, body: {} }));
      const at = `${member.stack.path}/update/${json.updateID}`;
      const [started] = await Promise.all([app.call('POST', at, { auth: member.auth, body: {} }), revoke(app, member)]);
      expect([200, 401, 409]).toContain(started.status);
      if (started.status === 200) {
        const auth = `update-token ${started.json.token}`;
        const renewal = await app.call('POST', `${at}/renew_lease`, { auth, body: { duration: 300 } });
        expect(renewal.status).toBe(403);
      }
      await startUpdate(app, member.owner);
    }
  });

  test.each(['create', 'start'])(
    'leave no lease after a %s that was admitted before and is not committed',
    async (what) => {
      const member = await join(app);
      const { stack } = member;
      const create = (auth: string) => app.call('POST', `${stack.path}/update`, { auth, body: {} });
      const start = (id: string) =>
        app.call('POST', `${stack.path}/update/${id}`, { auth: member.auth, body: { journalVersion: 1 } });
      // Only the start itself ties it to the member's token.
      const created = what === 'start' ? ((await ok(create(member.owner.auth))).json.updateID as string) : null;
      await using held = await holdInserts(app, created === null ? 'updates' : 'journals');
      const call = created === null ? create(member.auth) : start(created);
      await held.reached(1);
      const revoked = revoke(app, member);
      await held.reached(2);
      await held.release();
      await revoked;
      const { json } = await ok(call);
      if (created === null) expect((await start(json.updateID)).status).toBe(401);
      else
        expect(
          (
            await app.call('POST', `${stack.path}/update/${created}/renew_lease`, {
              auth: `update-token ${json.token}`,
              body: {},
            })
          ).status,
        ).toBe(403);
      const next = await startUpdate(app, member.owner);
      const rows = await query(
        app,
        'select status, end_reason from updates where id <> $1 and stack_id = (select stack_id from updates where id = $1)',
        [next.id],
      );
      expect(rows).toEqual([{ status: 'cancelled', end_reason: 'token-revoked' }]);
    },
  );
});

describe('the maximum lifetime of an update', () => {
  test('is a day by default and ends its lease for good', async () => {
    const member = await join(app);
    const update = await leaveRunning(app, member);
    const left = async () =>
      (
        await query<{ life: number; lease: number }>(
          app,
          `select extract(epoch from must_end_at - clock_timestamp())::float8 as life,
            extract(epoch from expires_at - clock_timestamp())::float8 as lease from updates where id = $1`,
          [update.id],
        )
      )[0];
    const life = (await left())?.life ?? 0;
    expect(life).toBeLessThanOrEqual(24 * 3600);
    expect(life).toBeGreaterThan(23.9 * 3600);
    const moveTo = (seconds: number) =>
      query(
        app,
        `update updates set expires_at = now() + make_interval(secs => least($2, 60)),
          must_end_at = now() + make_interval(secs => $2) where id = $1`,
        [update.id, seconds],
      );
    await moveTo(120);
    await ok(renew(app, update, member.stack));
    expect((await left())?.lease).toBeLessThanOrEqual(120);
    expect((await left())?.lease).toBeGreaterThan(60);
    await moveTo(-1);
    const refused = await renew(app, update, member.stack);
    expect([refused.status, refused.json.message]).toEqual([
      403,
      expect.stringMatching(/the maximum duration of an update \(HOLDFAST_UPDATE_HOURS/),
    ]);
    await expectKept(app, member, update);
    const [row] = await query(app, 'select end_reason from updates where id = $1', [update.id]);
    expect(row).toEqual({ end_reason: 'time-limit' });
  });

  test('is set by HOLDFAST_UPDATE_HOURS', async () => {
    await using short = await createTestApp({ settings: { HOLDFAST_UPDATE_HOURS: '2' } });
    const update = await startUpdate(short, await createStack(short));
    const [row] = await query<{ life: number }>(
      short,
      'select extract(epoch from must_end_at - started_at)::float8 as life from updates where id = $1',
      [update.id],
    );
    expect(Math.abs((row?.life ?? 0) - 7200)).toBeLessThan(60);
  });
});
