import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { setPolicies, signIn, type Trusting, trust } from '../support/exchange.ts';
import { person } from '../support/grants.ts';
import { ok } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { TestIssuer } from '../support/test-issuer.ts';
import { until } from '../support/until.ts';

let issuer: TestIssuer;
let app: TestApp;
beforeAll(async () => {
  issuer = await TestIssuer.start();
  app = await createTestApp({ overrides: { outgoing: issuer.outgoing() } });
});
afterAll(async () => {
  await app?.[Symbol.asyncDispose]();
  await issuer?.[Symbol.asyncDispose]();
});

const policy = (tokenType: string, more: object = {}) => ({
  decision: 'allow',
  tokenType,
  rules: { sub: 'repo:acme/*' },
  ...more,
});
const pathOf = ({ issuerId, organization }: Trusting) => `/api/orgs/${organization}/oidc/issuers/${issuerId}`;

const changes: Record<string, (trusting: Trusting, personal: object) => Promise<unknown>> = {
  'of the life of its tokens': (trusting) =>
    ok(app.call('PATCH', pathOf(trusting), { auth: trusting.auth, body: { maxExpiration: 600 } })),
  'of what it is: its removal': (trusting) => ok(app.call('DELETE', pathOf(trusting), { auth: trusting.auth })),
  'of its policies: their removal': (trusting) => setPolicies(app, trusting, []),
  'of its policies: denials': (trusting, personal) =>
    setPolicies(app, trusting, [
      policy('organization'),
      personal,
      policy('any', { decision: 'deny', rules: { sub: 'repo:*' } }),
    ]),
  'of its policies: a removal and a denial': (trusting, personal) =>
    setPolicies(app, trusting, [personal, policy('personal', { decision: 'deny', rules: { sub: 'repo:*' } })]),
};

test.each(Object.entries(changes))(
  'a change of an issuer %s waits for the owners of its tokens without holding up the organization',
  async (_what, change) => {
    const organization = `issuing-${Object.values(changes).indexOf(change)}`;
    const trusting = await trust(app, issuer, organization, [policy('organization')]);
    const owner = await person(app, organization, 'admin');
    const personal = policy('personal', { userLogin: owner.login });
    await setPolicies(app, { ...trusting, auth: owner.auth }, [policy('organization'), personal]);
    const tokens = [
      await signIn(app, trusting),
      await signIn(app, trusting, {}, { scope: `user:${owner.login}` }),
      await signIn(app, trusting),
    ];
    const session = new pg.Client({ connectionString: app.database.ownerUrl });
    await session.connect();
    try {
      // As a call of the owner does, which then locks the organization.
      await session.query('begin');
      await session.query('select lock_shared(place_of_user(id)) from users where login = $1', [owner.login]);
      const { rows } = await session.query('select pg_backend_pid() as pid');
      const changed = change(trusting, personal);
      const blocked = 'select 1 from pg_stat_activity where $1 = any (pg_blocking_pids(pid))';
      await until(async () => (await query(app, blocked, [rows[0].pid])).length > 0, 'the change waits');
      const locked = await session.query(
        `select pg_try_advisory_xact_lock_shared(hashtextextended(id::text, 46)) as "isFree" from organizations where name = $1`,
        [organization],
      );
      expect(locked.rows).toEqual([{ isFree: true }]);
      await session.query('commit');
      await changed;
    } finally {
      await session.end();
    }
    const statuses = tokens.map(async (auth) => (await app.call('GET', '/api/user', { auth })).status);
    expect(await Promise.all(statuses)).toEqual([401, 401, 401]);
  },
);
