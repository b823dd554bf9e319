import { expect, test } from '@jest/globals';
import { sweepRetention } from '../../src/workers/state/retention/sweep-retention.ts';
import { query } from '../support/database.ts';
import { encrypt, runUpdate, stateWith, testEnds } from '../support/import-ends.ts';
import { ok, startUpdate, type TestStack } from '../support/state.ts';
import { complete } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';
import { createHook } from '../support/webhooks.ts';

const { source, target, organization } = testEnds();

test('webhooks, drift and statistics report no update that an import has copied, but the next import of a state', async () => {
  const ends = await organization('quiet');
  const dev = await ends.createStack('dev');
  await runUpdate(source, dev, stateWith(dev, await encrypt(source, dev, '"a"'), 1));
  const body = (await ok(source.call('GET', `${dev.path}/export`, { auth: ends.auth }))).json;
  await ok(source.call('POST', `${dev.path}/import`, { auth: ends.auth, body }));
  await ok(complete(source, await startUpdate(source, dev, { kind: 'refresh' })));
  const here = { ...dev, auth: ends.authHere };
  await createHook(target, here, 'organization', { payloadUrl: 'https://chat.example/hook' });
  expect((await ends.run('--apply')).text).toBe('Imported 3 versions of 1 stack into quiet.\n');
  const { updates } = await ends.here('proj/dev/updates');
  expect(updates.map(({ kind }: { kind: string }) => kind)).toEqual(['refresh', 'import', 'update']);
  const said = async () => {
    const rows = await query<{ event: string }>(
      target,
      `select event from webhook_events where organization = 'quiet' order by occurred_at`,
    );
    return rows.map(({ event }) => event);
  };
  expect(await said()).toEqual(['stack_created']);
  const counted = await query(
    target,
    `select (select count(*)::int from drift_runs r where r.stack_id = s.id) as drift,
       (select count(*)::int from stack_days d where d.stack_id = s.id) as days
     from stacks s join updates u on u.stack_id = s.id where u.message = 'change'
       and u.organization_id = (select id from organizations where name = 'quiet')`,
  );
  expect(counted).toEqual([{ drift: 0, days: 0 }]);
  await ok(
    target.call('POST', `${dev.path}/import`, { auth: ends.authHere, body: await ends.here('proj/dev/export') }),
  );
  expect(await said()).toEqual(['stack_created', 'import_succeeded']);
});

const commit = 'ab12'.repeat(10);

/** Runs a preview of the commit in the source, as `pulumi preview`, or as `pulumi up` begins. */
async function preview(stack: TestStack, message: string, dialect: 'preview' | 'update', status?: string) {
  const body = {
    options: { dryRun: true },
    config: { 'proj:key': { string: await encrypt(source, stack, 'hunter2'), secret: true, object: false } },
    metadata: { message, environment: { 'git.head': commit } },
  };
  const { json } = await ok(source.call('POST', `${stack.path}/${dialect}`, { auth: stack.auth, body }));
  const path = `${stack.path}/update/${json.updateID}`;
  const started = (await ok(source.call('POST', path, { auth: stack.auth, body: {} }))).json;
  const running = { id: json.updateID as string, path, lease: `update-token ${started.token}`, version: 0 };
  const events = [{ sequence: 0, timestamp: 1, preludeEvent: { config: {} } }];
  await ok(source.call('POST', `${path}/events/batch`, { auth: running.lease, body: { events } }));
  await ok(complete(source, running, status));
}

test('previews come with times, results and events, in their place, and one that was deleted does not come again', async () => {
  const ends = await organization('previews');
  const dev = await ends.createStack('dev');
  const leave = async (version: number) =>
    runUpdate(source, dev, stateWith(dev, await encrypt(source, dev, '"a"'), version));
  await preview(dev, 'before all', 'preview');
  await leave(1);
  await preview(dev, 'of the second', 'update');
  await preview(dev, 'broken', 'preview', 'failed');
  const ofPreviews = `organization_id = (select id from organizations where name = 'previews')`;
  const spread = `update updates set started_at = started_at - make_interval(secs => 10 * (100 - number)),
    ended_at = ended_at - make_interval(secs => 10 * (100 - number)) where ${ofPreviews}`;
  await query(source, spread);
  const running = await startUpdate(source, dev, { kind: 'preview' });
  await createHook(target, { ...dev, auth: ends.authHere }, 'organization', {
    payloadUrl: 'https://chat.example/hook',
  });

  expect((await ends.run()).text).toContain('1 version and 3 previews');
  expect((await ends.run('--apply')).text).toBe('Imported 1 version and 3 previews of 1 stack into previews.\n');
  const list = 'proj/dev/updates/latest/previews?output-type=service&pageSize=10';
  const [there, here] = await Promise.all([
    source.call('GET', `/api/stacks/previews/${list}`, { auth: ends.auth }),
    target.call('GET', `/api/stacks/previews/${list}`, { auth: ends.authHere }),
  ]);
  const comparable = ({ config: _, updateID: _id, ...rest }: Record<string, unknown>) => rest;
  expect(here.json.updates.map(comparable)).toEqual(there.json.updates.slice(1).map(comparable));
  expect(here.json.updates.map(({ message }: { message: string }) => message)).toEqual([
    ...['broken', 'of the second', 'before all'],
  ]);
  const all = await query(
    target,
    `select kind, dry_run, status, stack_version as version, base_stack_version as base from updates
     where ${ofPreviews} order by number`,
  );
  expect(all).toEqual([
    { kind: 'preview', dry_run: true, status: 'succeeded', version: null, base: 0 },
    { kind: 'update', dry_run: false, status: 'succeeded', version: 1, base: 0 },
    { kind: 'update', dry_run: true, status: 'succeeded', version: null, base: 1 },
    { kind: 'preview', dry_run: true, status: 'failed', version: null, base: 1 },
  ]);
  const newest = here.json.updates[0];
  expect((await ends.here(`proj/dev/update/${newest.updateID}/events`)).events).toHaveLength(1);
  const ciphertexts = [newest.config['proj:key'].string];
  const decrypted = await target.call('POST', `${dev.path}/batch-decrypt`, {
    ...{ auth: ends.authHere, body: { ciphertexts } },
  });
  expect(Buffer.from(decrypted.json.plaintexts[ciphertexts[0]], 'base64').toString()).toBe('hunter2');
  expect(await query(target, `select event from webhook_events where ${ofPreviews}`)).toEqual([
    { event: 'stack_created' },
  ]);
  expect((await ends.run('--verify')).text).toMatch(/^Compared 1 stack, 1 version and 3 previews, .* no differences/);

  await ok(complete(source, running));
  expect((await ends.run('--apply')).text).toBe('Imported 0 versions and 1 preview of 1 stack into previews.\n');
  expect((await ends.run('--apply')).text).toBe('Imported 0 versions of 0 stacks into previews.\n');
  await setRule(target, { ...dev, auth: ends.authHere }, { kind: 'keep-previews', settings: { days: 1 } });
  await query(
    target,
    `update updates set ended_at = ended_at - interval '3 days', events_archived = true where ${ofPreviews}`,
  );
  await query(target, `delete from engine_events`);
  await sweepRetention(target.context);
  expect(await query(target, `select 1 from updates where dry_run and ${ofPreviews}`)).toEqual([]);
  expect((await ends.run('--apply')).text).toBe('Imported 0 versions of 0 stacks into previews.\n');
});

test('a preview of another server does not count where a rule requires one', async () => {
  const ends = await organization('required');
  const dev = await ends.createStack('dev');
  await runUpdate(source, dev, stateWith(dev, await encrypt(source, dev, '"a"'), 1));
  await preview(dev, 'there', 'preview');
  expect((await ends.run('--apply')).code).toBe(0);
  const here = { ...dev, auth: ends.authHere };
  await setRule(target, here, { kind: 'require-preview', settings: { mode: 'refuse' } });
  const body = { metadata: { message: '', environment: { 'git.head': commit, 'git.dirty': 'false' } } };
  const update = () => target.call('POST', `${dev.path}/update`, { auth: here.auth, body });
  expect((await update()).status).toBe(403);
  const own = await ok(target.call('POST', `${dev.path}/preview`, { auth: here.auth, body }));
  const path = `${dev.path}/update/${own.json.updateID}`;
  const { token } = (await ok(target.call('POST', path, { auth: here.auth, body: {} }))).json;
  await ok(complete(target, { id: own.json.updateID, path, lease: `update-token ${token}`, version: 0 }));
  expect((await update()).status).toBe(200);
});
