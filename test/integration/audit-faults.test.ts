import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { type TestResponse, testApp } from '../support/test-app.ts';

const app = testApp();
let stack: TestStack;

beforeAll(async () => {
  stack = await createStack(app);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(2) }));
});

const plaintext = 'c2VjcmV0';
const call = (method: string, path: string, body?: object, auth = stack.auth): Promise<TestResponse> =>
  app.call(method, `${stack.path}${path}`, { auth, ...(body ? { body } : {}) });

const refuse = `create function refuse_events() returns trigger language plpgsql as
  $$ begin raise exception 'the disk of the audit log is full'; end $$`;

test.each([
  ['inserted', 'create trigger refuse before insert on TABLE for each row execute function refuse_events()'],
  [
    'committed',
    `create constraint trigger refuse after insert or update on TABLE deferrable initially deferred
      for each row execute function refuse_events()`,
  ],
])('reads are refused when their event cannot be %s', async (_name, trigger) => {
  const { ciphertext } = (await ok(call('POST', '/encrypt', { plaintext }))).json as { ciphertext: string };
  const update = await startUpdate(app, stack);
  const other = `token ${await app.createUser(stack.organization, 'viewer')}`;
  const logs = `/api/orgs/${stack.organization}/auditlogs/export`;
  const reads = () => [
    call('POST', '/decrypt', { ciphertext }),
    call('POST', '/batch-decrypt', { ciphertexts: [ciphertext] }),
    // An event of its own; those above are counted for the update of their user.
    call('POST', '/batch-decrypt', { ciphertexts: [ciphertext] }, other),
    call('GET', '/export'),
    call('GET', '/export/1'),
    app.call('GET', logs, { auth: stack.auth }),
  ];
  for (const answer of await Promise.all(reads())) expect(answer.status).toBe(200);
  await query(app, refuse);
  for (const table of ['audit_events', 'audit_secret_reads']) await query(app, trigger.replace('TABLE', table));
  try {
    for (const answer of await Promise.all(reads())) {
      expect(answer).toMatchObject({
        status: 503,
        json: { message: expect.stringContaining('could not be recorded') },
      });
      expect(answer.text).not.toMatch(/c2VjcmV0|pulumi:index|stack\.import/);
    }
  } finally {
    await query(app, 'drop function refuse_events cascade');
  }
  for (const answer of await Promise.all(reads())) expect(answer.status).toBe(200);
  await ok(call('POST', `/update/${update.id}/cancel`));
});

test('every acknowledged action is recorded while Postgres loses its sessions', async () => {
  const { ciphertext } = (await ok(call('POST', '/encrypt', { plaintext }))).json as { ciphertext: string };
  const acknowledged: { readonly id: string; readonly what: string }[] = [];
  let failed = 0;
  let isOver = false;
  const path = `/api/stacks/${stack.organization}/proj`;
  const token = { auth: stack.auth };
  /** Every kind of change and read that is recorded, with each failure in between. */
  const client = async (name: string): Promise<void> => {
    for (let round = 0; !isOver; round++) {
      const stackName = `${name}-${round}`;
      const calls: [string, () => Promise<TestResponse>][] = [
        ['create', () => app.call('POST', path, { ...token, body: { stackName } })],
        ['tags', () => app.call('PATCH', `${path}/${stackName}/tags`, { ...token, body: { at: String(round) } })],
        ['import', () => app.call('POST', `${path}/${stackName}/import`, { ...token, body: deployment(1) })],
        ['export', () => app.call('GET', `${path}/${stackName}/export`, token)],
        ['decrypt', () => call('POST', '/decrypt', { ciphertext })],
        ['token', () => app.call('POST', '/api/user/tokens', { ...token, body: { description: stackName } })],
        ['delete', () => app.call('DELETE', `${path}/${stackName}?force=true`, token)],
      ];
      for (const [what, send] of calls) {
        const { headers, status } = await send();
        if (status < 300) acknowledged.push({ id: String(headers['x-pulumi-request-id']), what });
        else failed++;
      }
    }
  };
  const killer = new pg.Client({ connectionString: app.database.ownerUrl });
  await killer.connect();
  try {
    const clients = ['a', 'b', 'c'].map(client);
    const deadline = performance.now() + 120_000;
    const isDone = (): boolean => acknowledged.length >= 80 && failed >= 8;
    while (!isDone() && performance.now() < deadline) {
      const before = acknowledged.length;
      while (acknowledged.length < before + 3 && performance.now() < deadline) await sleep(Math.random() * 10);
      // Between any two statements of a transaction.
      await killer.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and state in ('active', 'idle in transaction')`,
      );
    }
    isOver = true;
    await Promise.all(clients);
    expect(acknowledged.length).toBeGreaterThanOrEqual(80);
    expect(failed).toBeGreaterThanOrEqual(8);
    const { rows } = await killer.query<{ id: string }>('select distinct request_id as id from audit_events');
    const recorded = new Set(rows.map(({ id }) => id));
    expect(acknowledged.filter(({ id }) => !recorded.has(id))).toEqual([]);
    expect(new Set(acknowledged.map(({ what }) => what)).size).toBe(7);
  } finally {
    isOver = true;
    await killer.end();
  }
});
