import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { hashToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { query } from '../support/database.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { indexAll, stateOf } from '../support/state-index.ts';
import { createTestApp, type TestApp, type TestResponse } from '../support/test-app.ts';
import { cancel, complete } from '../support/update-calls.ts';
import { keepQueueProcesses } from '../support/update-queue.ts';
import { removeRule, setRule } from '../support/update-rules.ts';

// An update that may not be created for many reasons is refused for the first of them: see creation-checks.ts.

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ settings: { maxFieldBytes: 2_000 } });
  await keepQueueProcesses(app);
});
afterAll(() => app?.[Symbol.asyncDispose]());

/** A reason why an update is refused, and what takes it away. */
interface Reason {
  readonly answer: RegExp;
  readonly end: () => Promise<unknown>;
}

/** Each call meets the first reason, which is then taken away. The last call creates the update. */
async function expectOrder(reasons: readonly Reason[], create: () => Promise<TestResponse>): Promise<void> {
  const answers: string[] = [];
  for (const { end } of reasons) {
    const { json, status } = await create();
    answers.push(`${status} ${json.message}`);
    await end();
  }
  expect(answers).toEqual(reasons.map(({ answer }) => expect.stringMatching(answer)));
  await ok(create());
}

/** Another stack of the organization. */
async function another({ auth, organization }: TestStack, name: string): Promise<TestStack> {
  await ok(app.call('POST', `/api/stacks/${organization}/apps`, { auth, body: { stackName: name } }));
  return { organization, project: 'apps', stack: name, auth, path: `/api/stacks/${organization}/apps/${name}` };
}

async function ruled(stack: TestStack, answer: RegExp, rule: object): Promise<Reason> {
  const id = await setRule(app, stack, { project: 'proj', ...rule });
  return { answer, end: () => removeRule(app, stack, id) };
}

/** Another update holds the stack. */
async function busy(stack: TestStack): Promise<Reason> {
  const held = await startUpdate(app, stack);
  const answer = /^409 Conflict: Another update is currently in progress/;
  return { answer, end: () => ok(cancel(app, stack, held)) };
}

/** An update of another stack runs, and no more may. */
async function limited(stack: TestStack): Promise<() => Promise<Reason>> {
  await startUpdate(app, await another(stack, 'running'));
  const rule = { project: null, kind: 'concurrency', settings: { most: 1 } };
  return () => ruled(stack, /^409 Too many updates at once/, rule);
}

/** Another stack reads the outputs of this one. */
async function consumed(stack: TestStack): Promise<() => Promise<Reason>> {
  const consumer = await another(stack, 'shop');
  const update = await startUpdate(app, consumer);
  const inputs = { name: `${stack.organization}/${stack.project}/${stack.stack}` };
  const body = stateOf(consumer, [{ name: 'network', type: 'pulumi:pulumi:StackReference', inputs }]);
  await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body }));
  await ok(complete(app, update));
  await indexAll(app);
  return () => ruled(stack, /^409 .*its outputs will be gone/, { kind: 'consumers', settings: { mode: 'refuse' } });
}

const idOf = `(select s.id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
  where o.name = $1 and p.name = 'proj')`;

/** Entries of a journal could not be replayed. */
function faulty({ organization }: TestStack): Reason {
  return {
    answer: /^409 The state of version null .* is incomplete/,
    end: () => query(app, `update journals set accepted_at = now() where stack_id = ${idOf}`, [organization]),
  };
}

const makeFault = ({ organization }: TestStack) =>
  query(
    app,
    `with u as (insert into updates (stack_id, kind, exclusive, status, expires_at, ended_at)
       values (${idOf}, 'update', true, 'failed', now(), now()) returning id, stack_id)
     insert into journals (update_id, stack_id, entry_count, compaction_error, compacted_at, ended_at)
     select id, stack_id, 1, 'unknown', now(), now() from u`,
    [organization],
  );

/** Somebody else waits for the stack. */
async function queued({ auth, organization }: TestStack): Promise<Reason> {
  const hash = hashToken(auth.replace('token ', ''));
  await query(
    app,
    `with p as (insert into update_queue_processes (id, alive_until) values (gen_random_uuid(), now() + interval '1 hour') returning id)
     insert into update_queue_waiters (stack_id, token_id, process_id, kept_until)
     select ${idOf}, t.id, p.id, now() + interval '1 hour' from p, api_tokens t where t.token_hash = $2`,
    [organization, hash],
  );
  const answer = /^409 .*at position 2 of the queue/;
  return { answer, end: () => query(app, `delete from update_queue_waiters where stack_id = ${idOf}`, [organization]) };
}

test('a destroy that does not wait', async () => {
  const stack = await createStack(app);
  const makeLimit = await limited(stack);
  const makeConsumer = await consumed(stack);
  const held = await busy(stack);
  const call = { message: 'a\0b', config: { a: 'x'.repeat(3_000) } as object };
  const create = () =>
    app.call('POST', `${stack.path}/destroy`, {
      auth: stack.auth,
      body: { metadata: { message: call.message, environment: {} }, config: call.config },
    });
  await expectOrder(
    [
      { answer: /^400 .*contains a NUL/, end: async () => Object.assign(call, { message: '' }) },
      { answer: /^413 config has/, end: async () => Object.assign(call, { config: {} }) },
      await ruled(stack, /^409 Frozen/, { kind: 'freeze', settings: {} }),
      await makeConsumer(),
      // While another update holds the stack, a fault would be found before all of this.
      { ...held, end: () => held.end().then(() => makeFault(stack)) },
      await ruled(stack, /^403 .*need a preview/, { kind: 'require-preview', settings: { mode: 'refuse' } }),
      await makeLimit(),
      faulty(stack),
    ],
    create,
  );
});

test('an update that waits', async () => {
  const stack = await createStack(app);
  const makeLimit = await limited(stack);
  await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { 'lock-wait': '1s' } }));
  const held = await busy(stack);
  const place = await queued(stack);
  const preview = { kind: 'require-preview', settings: { mode: 'refuse' } };
  await expectOrder(
    [
      // Waiting would not help.
      await ruled(stack, /^403 .*another update holds the stack, after which it will be out of date/, preview),
      { ...held, answer: /^409 .*has held the stack since/ },
      place,
      await makeLimit(),
    ],
    () => app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }),
  );
});
