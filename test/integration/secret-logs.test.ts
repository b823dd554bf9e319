import { expect, test } from '@jest/globals';
import pg from 'pg';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { PageBrowser, setPassword } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { command } from '../support/procedures.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete, saveState } from '../support/update-calls.ts';
import { createHook } from '../support/webhooks.ts';

function formsOf(value: unknown): string[] {
  if (Buffer.isBuffer(value)) return (['latin1', 'hex', 'base64'] as const).map((encoding) => value.toString(encoding));
  if (Array.isArray(value)) return value.flatMap(formsOf);
  return [typeof value === 'object' ? JSON.stringify(value) : String(value)];
}

/** Every value of every row, in all forms in which bytes can be written. */
async function dump(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const tables = await client.query<{ name: string }>(
      `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`,
    );
    const texts: string[] = [];
    for (const { name } of tables.rows) {
      for (const row of (await client.query(`select * from "${name}"`)).rows as Record<string, unknown>[])
        for (const value of Object.values(row)) texts.push(...formsOf(value));
    }
    return texts.join('\n');
  } finally {
    await client.end();
  }
}

const settings = { HOLDFAST_LOCK_WAIT_SECONDS: '600' };

const forms = (secret: string) => {
  const bytes = Buffer.from(secret);
  return [secret, bytes.toString('base64').replace(/=+$/, ''), bytes.toString('hex')];
};

test('plaintexts, tokens, passwords and keys are in no log line at trace level and in no row', async () => {
  const lines: string[] = [];
  const masterKeys = KeyRing.generate();
  await using app = await createTestApp({ masterKeys, settings, log: { write: (line) => void lines.push(line) } });
  const plaintext = 'hunter2-very-secret-plaintext';
  const encoded = Buffer.from(plaintext).toString('base64');
  const stack = await createStack(app);
  const { auth, path } = stack;

  const { json } = await ok(app.call('POST', `${path}/encrypt`, { auth, body: { plaintext: encoded } }));
  await ok(app.call('POST', `${path}/decrypt`, { auth, body: json }));
  await ok(app.call('POST', `${path}/batch-encrypt`, { auth, body: { plaintexts: [encoded] } }));
  await ok(app.call('POST', `${path}/batch-decrypt`, { auth, body: { ciphertexts: [json.ciphertext] } }));
  const leases: string[] = [];
  for (const journal of [false, true]) {
    const update = await startUpdate(app, stack, { journal });
    leases.push(update.lease);
    if (journal) await ok(append(app, update, creation(1, 'a', stack)));
    else await ok(saveState(app, update, 1));
    await ok(app.call('POST', `${update.path}/renew_lease`, { auth: update.lease, body: { duration: 300 } }));
    await ok(complete(app, update));
    await ok(cancel(app, stack, update));
    // Rejected calls and faults are logged with their cause.
    await saveState(app, update, 1);
  }
  for (const body of [{ plaintext: `${encoded}!` }, { plaintext: 1, secret: plaintext }, `{"plaintext":"${plaintext}`])
    expect((await app.call('POST', `${path}/encrypt`, { auth, body })).status).toBe(400);
  await app.call('POST', `${path}/decrypt`, { auth, body: { ciphertext: encoded } });
  await app.call('POST', `${path}/import`, { auth, body: { ...deployment(1), version: plaintext } });
  await app.call('GET', '/api/user', { auth: `token ${plaintext}` });
  await app.call('GET', `/api/nothing?token=${plaintext}`, { auth });

  const made = await makeSecrets(app, stack);
  // A call that waits has a row, with what is shown of its run.
  const holder = await startUpdate(app, stack);
  leases.push(holder.lease);
  const metadata = { message: 'm', environment: { 'git.head': 'a'.repeat(40) } };
  const waiting = app.call('POST', `${path}/update`, { auth, body: { metadata } });
  await until(async () => (await query(app, 'select 1 from update_queue_waiters')).length > 0, 'the call waits');
  const rows = await dump(app.database.ownerUrl);
  await ok(complete(app, holder));
  await ok(waiting);

  const key = masterKeys.slice(masterKeys.indexOf(':') + 1);
  const secrets = [...made, auth.replace('token ', ''), ...leases.map((lease) => lease.replace('update-token ', ''))];
  const log = lines.join('');
  expect(lines.length).toBeGreaterThan(20);
  expect(rows.length).toBeGreaterThan(1_000);
  for (const secret of [...forms(plaintext), ...secrets.flatMap(forms), ...forms(key), key]) {
    expect(log).not.toContain(secret);
    expect(rows).not.toContain(secret);
  }
  // The ciphertext is sent only to the client.
  expect(log).not.toContain(json.ciphertext);
  expect(rows).not.toContain(json.ciphertext);
  // The search finds values that are present.
  expect(log).toContain('/api/stacks/:organization/:project/:stack/encrypt');
  expect(rows).toContain(stack.organization);
  // In JSON: the commit of the call that waits.
  expect(rows).toContain('a'.repeat(40));
});

/** Secrets of a user, of a token and of a webhook. */
async function makeSecrets(app: TestApp, { auth, organization, ...stack }: TestStack): Promise<string[]> {
  const [login, password, signing] = ['ann', 'a password of many words', 'whsec_c2VjcmV0IG9mIHRoZSB3ZWJob29r'];
  const token = await app.createUser(organization, 'member', login);
  await setPassword(app, login, password);
  const browser = new PageBrowser(app);
  await browser.signIn(login, password);
  const session = browser.cookies.get('holdfast') ?? '';
  expect(session).toMatch(/^hfs-/);
  await createHook(app, { auth, organization, ...stack }, 'stack', {
    name: 'hook',
    payloadUrl: 'https://203.0.113.1/x',
    secret: signing,
  });
  const created = await command(app, token, 'tokens.createMine', { name: 'mine' });
  const rotated = await command(app, token, 'tokens.rotateMine', { id: created.data.id, overlapSeconds: 60 });
  expect(rotated.error).toBeNull();
  return [password, session, signing, token, created.data.value, rotated.data.value];
}

test('the logged configuration hides its secrets', async () => {
  const lines: string[] = [];
  await using app = await createTestApp({ log: { write: (line) => void lines.push(line) } });
  const config = parseConfig({
    HOLDFAST_MASTER_KEYS: KeyRing.generate(),
    HOLDFAST_DATABASE_URL: 'postgres://u:pw@h/d',
  });
  app.context.logger.info({ config }, 'started');
  expect(lines.join('')).toContain('started');
  expect(lines.join('')).not.toContain((config.secrets.masterKeys as string).split(':')[1]);
});
