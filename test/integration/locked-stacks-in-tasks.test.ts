import { expect, test } from '@jest/globals';
import { deleteEmptyProjects } from '../../src/workers/stacks/delete-projects.ts';
import { compactEndedUpdates } from '../../src/workers/state/compact-journals.ts';
import { endExpiredUpdates } from '../../src/workers/updates/expire-leases.ts';
import { query } from '../support/database.ts';
import { blockedBy, during } from '../support/held-transactions.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, ok, type RunningUpdate, startUpdate } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, expire } from '../support/update-calls.ts';

// No wait for a lock ends by itself during a test.
const app = testApp({ settings: { statementTimeoutMs: 600_000 } });

/** An update with a journal, whose lease has expired. */
async function expired(): Promise<RunningUpdate> {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'r1', stack)));
  await expire(app, update.id);
  return update;
}

const stackOf = ({ id }: RunningUpdate): [string, ...unknown[]] => [
  'select 1 from stacks where id = (select stack_id from updates where id = $1) for update',
  id,
];

async function isEnded({ id }: RunningUpdate): Promise<boolean> {
  return (await query(app, `select 1 from updates where id = $1 and status = 'cancelled'`, [id])).length > 0;
}

async function isCompacted({ id }: RunningUpdate): Promise<boolean> {
  return (
    (await query(app, 'select 1 from journals where update_id = $1 and compacted_at is not null', [id])).length > 0
  );
}

test('an expired update whose stack is locked does not delay the end of others', async () => {
  const locked = await expired();
  const other = await expired();
  await during(app, stackOf(locked), async (session, end) => {
    const run = endExpiredUpdates(app.context);
    await blockedBy(app, session);
    await until(() => isEnded(other), 'the other update has ended');
    expect([await run, await isEnded(locked)]).toEqual([1, false]);
    await end('rollback');
  });
  expect([await endExpiredUpdates(app.context), await isEnded(locked)]).toEqual([1, true]);
});

test('a journal whose compaction waits for its stack does not delay the compaction of others', async () => {
  const locked = await expired();
  await endExpiredUpdates(app.context);
  const others = [await expired(), await expired(), await expired()];
  await endExpiredUpdates(app.context);
  await during(app, stackOf(locked), async (session, end) => {
    const run = compactEndedUpdates(app.context);
    await blockedBy(app, session);
    for (const each of others) await until(() => isCompacted(each), 'the journal of another update is compacted');
    expect(await isCompacted(locked)).toBe(false);
    await end('rollback');
    await run;
  });
  expect(await isCompacted(locked)).toBe(true);
});

test('the deletion of empty projects keeps few of them locked', async () => {
  const { organization } = await createStack(app);
  await query(
    app,
    `insert into projects (organization_id, name, may_be_empty)
     select o.id, 'empty-' || n, true from organizations o, generate_series(1, 120) n where o.name = $1`,
    [organization],
  );
  await query(
    app,
    `create function hold_deletion() returns trigger language plpgsql as
     $$ begin perform pg_advisory_xact_lock_shared(77); return old; end $$`,
  );
  await query(
    app,
    'create trigger hold_deletion before delete on projects for each row execute function hold_deletion()',
  );
  await during(app, ['select pg_advisory_xact_lock(77)'], async (session, end) => {
    const run = deleteEmptyProjects(app.context, new AbortController().signal);
    await blockedBy(app, session);
    const free = await query(app, 'select 1 from projects where may_be_empty for key share skip locked');
    expect(free.length).toBeGreaterThanOrEqual(70);
    await end('rollback');
    expect(await run).toBe(120);
  });
});
