import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { archiveEvents } from '../../src/workers/events/archive-events.ts';
import { sweepRetention } from '../../src/workers/state/retention/sweep-retention.ts';
import { runAdminCommand } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { beginning, removal } from '../support/journal-entries.ts';
import { exportState, resourceNames } from '../support/stack-state.ts';
import { createStack, ok, type RunningUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp, type TestResponse } from '../support/test-app.ts';
import { append, cancel, complete } from '../support/update-calls.ts';

let app: TestApp;
let stack: TestStack;
beforeAll(async () => {
  app = await createTestApp({ settings: { HOLDFAST_LOCK_WAIT_SECONDS: '600' } });
});
afterAll(() => app?.[Symbol.asyncDispose]());
beforeEach(async () => {
  stack = await createStack(app);
});

const commit = 'ab12'.repeat(10);
const other = 'cd34'.repeat(10);
const at = (head: string, more: object = {}) => ({ 'git.head': head, 'git.dirty': 'false', ...more });

const bucketType = 'aws:s3/bucket:Bucket';
const resource = (name: string) => ({
  urn: `urn:pulumi:dev::proj::${bucketType}::${name}`,
  type: bucketType,
  custom: true,
});
const begins = (sequence: number, type: string, name: string) =>
  beginning(sequence, sequence, { resource: resource(name), type });

const setRule = (settings: object, more: object = {}) =>
  ok(
    app.call('POST', `/api/orgs/${stack.organization}/update-rules`, {
      auth: stack.auth,
      body: { kind: 'require-preview', settings, ...more },
    }),
  );

/** A new version of the stack, with buckets. */
async function importBuckets(...names: string[]): Promise<void> {
  const deployment = {
    manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' },
    resources: names.map(resource),
  };
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: { version: 3, deployment } }));
}

interface Run {
  readonly kind?: string;
  readonly environment?: object;
  readonly dryRun?: boolean;
  readonly message?: string;
  readonly auth?: string;
}

const create = ({
  auth = stack.auth,
  dryRun = false,
  environment = at(commit),
  kind = 'update',
  message = '',
}: Run = {}) =>
  app.call('POST', `${stack.path}/${kind}`, {
    auth,
    body: { options: { dryRun }, metadata: { message, environment } },
  });

async function start({ json }: TestResponse): Promise<RunningUpdate> {
  const path = `${stack.path}/update/${json.updateID}`;
  const started = await ok(app.call('POST', path, { auth: stack.auth, body: { journalVersion: 1 } }));
  return { id: json.updateID, path, lease: `update-token ${started.json.token}`, version: started.json.version };
}

/** A preview that says these operations, as in `delete b0`. */
async function preview(
  steps: readonly string[] = [],
  { status = 'succeeded', ...run }: Run & { status?: string } = {},
) {
  const update = await start(await ok(create({ kind: 'preview', ...run })));
  const events = steps.map((step, sequence) => {
    const [op, name] = step.split(' ') as [string, string];
    return { sequence, timestamp: 0, resourcePreEvent: { metadata: { op, urn: resource(name).urn }, planning: true } };
  });
  if (events.length > 0)
    await ok(app.call('POST', `${update.path}/events/batch`, { auth: update.lease, body: { events } }));
  await ok(complete(app, update, status));
  return update;
}

const messagesOf = async (run: Run = {}): Promise<string[]> => {
  const { json } = await ok(create(run));
  await ok(cancel(app, stack, { path: `${stack.path}/update/${json.updateID}` }));
  return json.messages.map(({ message }: { message: string }) => message);
};

describe('an update without a preview of its commit and version', () => {
  test('is refused, until there is one', async () => {
    await setRule({ mode: 'refuse' }, { project: 'proj', note: 'ask #platform' });
    expect(await create()).toMatchObject({
      status: 403,
      json: {
        message:
          `Updates of project proj need a preview of the same commit and stack version (ask #platform), and there is none of commit ${commit}. ` +
          'Run pulumi preview again, look at it, and then run this one',
      },
    });
    await preview([], { environment: at(other) });
    await preview([], { status: 'failed' });
    await preview([], { environment: at(commit, { 'git.dirty': 'true' }) });
    expect((await create()).json.message).toContain('there is none of commit');
    await preview();
    expect(await messagesOf()).toEqual([]);
    expect((await create({ environment: at(commit, { 'git.dirty': 'true' }) })).json.message).toContain(
      'local changes',
    );
    expect((await create({ environment: {} })).json.message).toContain('no Git commit');
    await importBuckets('b0');
    expect((await create()).json.message).toContain(`that of commit ${commit} was of version 0, and the stack is at 1`);
    await preview();
    expect(await messagesOf()).toEqual([]);
  });

  test('only gets a warning where the rule warns, and a rule of the stack can turn that off', async () => {
    await setRule({ mode: 'warn' });
    expect(await messagesOf()).toEqual([expect.stringMatching(/and there is none of commit ab12.*: pulumi preview$/)]);
    await preview();
    expect(await messagesOf()).toEqual([]);
    await importBuckets('b0');
    expect(await messagesOf({ kind: 'destroy' })).toEqual([expect.stringMatching(/pulumi destroy --preview-only$/)]);
    await setRule({ mode: 'off' }, { project: 'proj', stack: 'dev' });
    expect(await messagesOf()).toEqual([]);
  });

  test('each kind of update has previews of its own; a refresh needs none', async () => {
    await setRule({ mode: 'refuse' });
    await preview();
    expect((await create({ kind: 'destroy' })).status).toBe(403);
    await preview([], { kind: 'destroy', dryRun: true });
    expect(await messagesOf({ kind: 'destroy' })).toEqual([]);
    expect(await messagesOf({ kind: 'refresh' })).toEqual([]);
  });

  test('the preview that a run begins with counts, unless the rule says otherwise', async () => {
    await setRule({ mode: 'refuse' });
    await preview([], { kind: 'update', dryRun: true });
    expect(await messagesOf()).toEqual([]);
    await setRule({ mode: 'refuse', ownPreview: 'ignored' });
    expect((await create()).status).toBe(403);
    await preview([], { kind: 'destroy', dryRun: true });
    expect((await create({ kind: 'destroy' })).status).toBe(403);
    // The CLI records each flag that was given, with its value.
    const flagged = (value: string) =>
      preview([], {
        kind: 'destroy',
        dryRun: true,
        environment: at(commit, { 'pulumi.flag.preview-only': value }),
      });
    await flagged('false');
    expect((await create({ kind: 'destroy' })).status).toBe(403);
    await flagged('true');
    expect(await messagesOf({ kind: 'destroy' })).toEqual([]);
    await preview();
    expect(await messagesOf()).toEqual([]);
  });

  test('does not wait for an update after which its preview is outdated', async () => {
    await setRule({ mode: 'refuse' });
    await preview();
    const running = await start(await ok(create()));
    expect(await create()).toMatchObject({ status: 403, json: { message: expect.stringContaining('out of date') } });
    await ok(complete(app, running));
    expect((await create()).json.message).toContain('was of version 0, and the stack is at 1');
  });

  test('passes in an emergency, which is recorded', async () => {
    const { json: rule } = await setRule({ mode: 'refuse' });
    const message = 'break-glass: the shop is down';
    const writer = await person(app, stack.organization, 'member');
    expect((await create({ message, auth: writer.auth })).status).toBe(403);
    expect(await messagesOf({ message })).toEqual([]);
    const events = await query(
      app,
      `select details from audit_events where action = 'update.break-glass' and organization = $1`,
      [stack.organization],
    );
    expect(events.map(({ details }) => JSON.parse(details as string))).toEqual([
      { reason: 'the shop is down', rules: [rule.id] },
    ]);
  });
});

describe('an update that does more than its preview has said', () => {
  beforeEach(async () => {
    await importBuckets('b0', 'b1', 'b2', 'b3');
  });

  test('is stopped before that begins', async () => {
    await setRule({ mode: 'refuse' });
    await preview(['delete b0', 'same b1', 'create-replacement b2', 'replace b2', 'create new', 'update b3']);
    const update = await start(await ok(create()));
    await ok(
      append(app, update, [begins(1, 'deleting', 'b0'), begins(2, 'creating', 'b2'), begins(3, 'creating', 'new')]),
    );
    const batch = [removal(4, 1, 0), begins(5, 'updating', 'b3'), begins(6, 'deleting', 'b1')];
    const refused = await append(app, update, batch);
    expect(refused).toMatchObject({
      status: 403,
      json: {
        message:
          `No update of organization ${stack.organization} deletes or replaces more than its preview announced; this one deletes ${bucketType} "b1". ` +
          'No more operations begin; running ones are finished and saved. To continue, run a new preview, check it, and run the update again',
      },
    });
    expect((await append(app, update, batch)).status).toBe(403);
    expect(resourceNames((await exportState(app, stack)).json)).toEqual(['b1', 'b2', 'b3']);
    // A new preview is what it needs, not an approval.
    expect((await ok(app.call('GET', `${stack.path}/approvals`, { auth: stack.auth }))).json.approvals).toEqual([]);
    await ok(complete(app, update, 'failed'));
  });

  test.each([
    ['creating', 'replaces'],
    ['deleting', 'deletes'],
  ])('also by %s, where the rule of the stack asks for a preview that said nothing', async (type, verb) => {
    await setRule({ mode: 'refuse' });
    await preview();
    const update = await start(await ok(create()));
    await ok(append(app, update, [begins(1, 'creating', 'new')]));
    expect((await append(app, update, [begins(2, type, 'b1')])).json.message).toContain(`${verb} ${bucketType} "b1"`);
  });

  test('events that limit it are kept until it has ended; then the preview no longer counts', async () => {
    await setRule({ mode: 'refuse' });
    const { id } = await preview(['delete b0', 'delete b1']);
    const update = await start(await ok(create()));
    await query(app, `update updates set ended_at = ended_at - interval '3 days' where id = $1`, [id]);
    await archiveEvents(app.context);
    await setRule({ days: 1 }, { kind: 'keep-events' });
    expect(await sweepRetention(app.context)).toBe(0);
    await ok(append(app, update, [begins(1, 'deleting', 'b0')]));
    await ok(append(app, update, [removal(2, 1, 0)]));
    await ok(complete(app, update, 'failed'));
    await query(app, 'update updates set base_stack_version = 2 where id = $1', [id]);
    expect(await messagesOf()).toEqual([]);
    expect(await sweepRetention(app.context)).toBeGreaterThan(0);
    expect((await create()).json.message).toContain(`there is none of commit ${commit}`);
  });

  test('is let go where the rule only warns', async () => {
    await setRule({ mode: 'warn' });
    await preview();
    const update = await start(await ok(create()));
    await ok(append(app, update, [begins(1, 'deleting', 'b1')]));
  });

  test('an approval of its commit lifts other limits, but not that one', async () => {
    await setRule({ mode: 'refuse' });
    await ok(
      app.call('POST', `/api/orgs/${stack.organization}/update-rules`, {
        auth: stack.auth,
        body: { kind: 'change-limit', settings: { changes: 0 } },
      }),
    );
    await preview(['delete b0']);
    const name = `${stack.organization}/proj/dev`;
    expect(await runAdminCommand(app, 'approve', name, commit, '--reason', 'reviewed')).toMatchObject({ code: 0 });
    const update = await start(await ok(create()));
    await ok(append(app, update, [begins(1, 'deleting', 'b0')]));
    expect((await append(app, update, [begins(2, 'deleting', 'b1')])).json.message).toContain(
      'more than its preview announced',
    );
  });

  test('is refused at its start without a journal, where the rule says so', async () => {
    await setRule({ mode: 'refuse', withoutJournal: 'refuse' });
    await preview();
    const { json } = await ok(create());
    const started = await app.call('POST', `${stack.path}/update/${json.updateID}`, { auth: stack.auth, body: {} });
    expect(started).toMatchObject({ status: 403, json: { message: expect.stringContaining('sends a journal') } });
  });
});
