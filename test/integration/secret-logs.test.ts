import { expect, test } from '@jest/globals';
import pg from 'pg';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { createTestApp } from '../support/test-app.ts';
import { append, cancel, complete, saveState } from '../support/update-calls.ts';

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
        for (const value of Object.values(row))
          texts.push(
            Buffer.isBuffer(value)
              ? `${value.toString('latin1')}\n${value.toString('hex')}\n${value.toString('base64')}`
              : String(value),
          );
    }
    return texts.join('\n');
  } finally {
    await client.end();
  }
}

const forms = (secret: string) => {
  const bytes = Buffer.from(secret);
  return [secret, bytes.toString('base64').replace(/=+$/, ''), bytes.toString('hex')];
};

test('plaintexts, tokens and keys are in no log line at trace level and in no row', async () => {
  const lines: string[] = [];
  const masterKeys = KeyRing.generate();
  await using app = await createTestApp({ masterKeys, log: { write: (line) => void lines.push(line) } });
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

  const key = masterKeys.slice(masterKeys.indexOf(':') + 1);
  const secrets = [auth.replace('token ', ''), ...leases.map((lease) => lease.replace('update-token ', ''))];
  const log = lines.join('');
  const rows = await dump(app.database.ownerUrl);
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
  expect(rows).toContain(Buffer.from(stack.organization).toString());
});

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
