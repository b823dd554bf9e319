import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { join, type Membership } from '../support/lease-owners.ts';
import { deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp, type TestResponse, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, saveState } from '../support/update-calls.ts';

const app = testApp();
let replicas: TestApp[];
beforeAll(async () => {
  const { database, dataDir } = app;
  replicas = [app, await createTestApp({ database, dataDir }), await createTestApp({ database, dataDir })];
});
afterAll(async () => {
  for (const replica of replicas.slice(1)) await replica[Symbol.asyncDispose]();
});

/** How many calls a writer makes before the revocation, and afterwards. */
const callsBefore = 3;
const callsAfter = 4;

type Call = (on: TestApp, at: number) => Promise<TestResponse>;

/** Everything that a token and the leases under it can change, again and again. */
async function writersOf(member: Membership): Promise<Record<string, Call>> {
  const { owner } = member;
  const own = async (name: string): Promise<TestStack> => {
    const { auth, organization, project } = owner;
    await ok(app.call('POST', `/api/stacks/${organization}/${project}`, { auth, body: { stackName: name } }));
    return { ...member.stack, stack: name, path: owner.path.replace(/dev$/, name) };
  };
  const { auth } = member;
  const journal = await own('journal');
  const journaled = await startUpdate(app, journal, { journal: true });
  const whole: RunningUpdate = await startUpdate(app, await own('whole'));
  const idle = await own('idle');
  const tagged = await own('tagged');
  const previewed = await own('previewed');
  let sequence = 0;
  return {
    'journal entries': (on) => {
      sequence += 2;
      return append(on, journaled, creation(sequence, `r${sequence}`, journal));
    },
    events: (on, at) =>
      on.call('POST', `${journaled.path}/events/batch`, {
        auth: journaled.lease,
        body: { events: [{ sequence: at, timestamp: 1, stdoutEvent: { message: 'x', color: '' } }] },
      }),
    checkpoints: (on, at) => saveState(on, whole, (at % 5) + 1),
    renewals: (on) => on.call('POST', `${whole.path}/renew_lease`, { auth: whole.lease, body: { duration: 300 } }),
    imports: (on, at) => on.call('POST', `${idle.path}/import`, { auth, body: deployment((at % 5) + 1) }),
    tags: (on, at) => on.call('PATCH', `${tagged.path}/tags`, { auth, body: { at: String(at) } }),
    previews: (on) => on.call('POST', `${previewed.path}/preview`, { auth, body: {} }),
  };
}

/** What the token and its leases have committed. */
const committed = ({ owner }: Membership, tokenId: string) =>
  query(
    app,
    `select (select sum(j.entry_count)::int from journals j join updates u on u.id = j.update_id where u.token_id = $1) as entries,
       (select count(*)::int from engine_events e join updates u on u.id = e.update_id where u.token_id = $1) as events,
       (select sum(full_committed)::int from updates where token_id = $1) as checkpoints,
       (select count(*)::int from audit_events where token_id = $1 and outcome = 'done' and action <> 'token.revoke') as changes,
       (select count(*)::int from audit_events where organization = $2 and action = 'stack.import' and outcome = 'done') as imports`,
    [tokenId, owner.organization],
  );

const ways: Record<string, (member: Membership, tokenId: string) => Promise<TestResponse>> = {
  'its token': async ({ login, owner }, tokenId) => {
    const other = await app.createUser(owner.organization, 'member', login);
    return app.call('DELETE', `/api/user/tokens/${tokenId}`, { auth: `token ${other}` });
  },
  'its membership': ({ login, owner }) =>
    app.call('DELETE', `/api/orgs/${owner.organization}/members/${login}`, { auth: owner.auth }),
};

test.each(Object.keys(ways))(
  'nothing is committed any more on any replica once the call that revokes %s returned',
  async (way) => {
    const member = await join(app);
    const [token] = await query<{ id: string }>(app, 'select id from api_tokens where token_hash = $1', [
      member.tokenHash,
    ]);
    const tokenId = token?.id as string;
    const writers = await writersOf(member);
    let at = 0;
    let isRevoked = false;
    const late: object[] = [];
    const done: Record<string, number> = {};
    const before = () =>
      Object.keys(writers).every((name) => replicas.every((_, n) => (done[`${name} ${n}`] ?? 0) >= callsBefore));
    const loops = Object.entries(writers).flatMap(([name, call]) =>
      replicas.map(async (on, n) => {
        for (let after = 0; after < callsAfter; ) {
          const wasRevoked = isRevoked;
          const { status, text } = await call(on, ++at);
          if (wasRevoked) after += 1;
          // Every call after the revocation is refused; 503 and 409 result from calls that disturb each other.
          if (wasRevoked && status < 300) late.push({ name, status, text });
          done[`${name} ${n}`] = (done[`${name} ${n}`] ?? 0) + 1;
        }
      }),
    );
    await until(before, 'all writers write');
    const revoked = await ways[way]?.(member, tokenId);
    const atOnce = await committed(member, tokenId);
    isRevoked = true;
    expect(revoked?.status).toBe(204);
    await Promise.all(loops);
    expect(late).toEqual([]);
    expect(await committed(member, tokenId)).toEqual(atOnce);
    expect(Object.values(atOnce[0] ?? {}).every((count) => Number(count) > 0)).toBe(true);
  },
);
