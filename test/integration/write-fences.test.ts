import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { createChangeLimitRepository } from '../../src/shared/state/journal/change-limits/change-limit-repository.ts';
import { changeBefore, withLateChanges } from '../support/differential/late-changes.ts';
import { creation } from '../support/journal-entries.ts';
import { renew } from '../support/lease-owners.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { append, complete, saveState, saveVerbatim } from '../support/update-calls.ts';

// The statement that commits a write of a lease holder checks each condition itself: here one of them ceases to hold just before it.

let app: TestApp;
let client: pg.Client;
beforeAll(async () => {
  app = await createTestApp({ settings: { leaseSeconds: 3600 } });
  client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await app[Symbol.asyncDispose]();
});

/** What changes in the row of the update, how to undo that, and the status of the response. Each leaves all other conditions as they are. */
type Changes = Readonly<Record<string, readonly [change: string, undo: string, status: number]>>;

const ofLease: Changes = {
  'another epoch': ['epoch = epoch + 1', 'epoch = epoch', 403],
  ended: [`status = 'failed'`, `status = 'running'`, 403],
  expired: [
    `expires_at = clock_timestamp() - interval '1 second'`,
    `expires_at = clock_timestamp() + interval '4 minutes'`,
    403,
  ],
};
const ofJournal: Changes = { ...ofLease, 'without a journal': ['journal_version = 0', 'journal_version = 1', 403] };
const ofCheckpoint: Changes = {
  ...ofLease,
  'not exclusive': ['exclusive = false', 'exclusive = true', 409],
  'a dry run': ['dry_run = true', 'dry_run = false', 409],
  'a preview': [`kind = 'preview'`, `kind = 'update'`, 409],
};
const ofNumbered: Changes = {
  ...ofCheckpoint,
  'the same number': ['checkpoint_sequence = 2', 'checkpoint_sequence = 1', 204],
  'a higher number': ['checkpoint_sequence = 3', 'checkpoint_sequence = 1', 204],
};

interface Write {
  readonly changes: Changes;
  readonly withJournal?: boolean;
  readonly call: (update: RunningUpdate, stack: TestStack) => Promise<{ readonly status: number }>;
}

const first = deployment(1);
const writes: Readonly<Record<string, Write>> = {
  'full checkpoint': {
    changes: {
      ...ofCheckpoint,
      'the same arrival': ['full_committed = full_assigned', 'full_committed = 0', 204],
      'a later arrival': ['full_committed = full_assigned + 1', 'full_committed = 0', 204],
    },
    call: (update) => saveState(app, update, 2),
  },
  'verbatim checkpoint': { changes: ofNumbered, call: (update) => saveVerbatim(app, update, 2, deployment(2)) },
  'delta checkpoint': {
    changes: {
      ...ofNumbered,
      'another base': [
        'checkpoint_id = null',
        'checkpoint_id = (select c.id from checkpoints c where c.update_id = u.id)',
        400,
      ],
    },
    call: (update) => saveDelta(update),
  },
  'batch of journal entries': {
    changes: ofJournal,
    withJournal: true,
    call: (update, stack) => append(app, update, creation(1, 'a', stack)),
  },
  'batch of journal entries with change limits': { changes: ofJournal, withJournal: true, call: lockJournal },
  'batch of events': { changes: ofLease, call: (update) => sendEvent(update, { stdoutEvent: { message: 'a' } }) },
  'batch of events with a summary': {
    changes: ofLease,
    call: (update) => sendEvent(update, { summaryEvent: { resourceChanges: { create: 1 } } }),
  },
  renewal: { changes: ofLease, call: (update, stack) => renew(app, update, stack) },
  completion: { changes: ofLease, call: (update) => complete(app, update) },
};

test.each(Object.entries(writes))('a %s checks each condition when it commits', async (_, write) => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: write.withJournal ?? false });
  if (!write.withJournal) await ok(saveVerbatim(app, update, 1, first));
  const found: Record<string, unknown> = {};
  const expected: Record<string, unknown> = {};
  for (const [name, [change, undo, status]] of Object.entries(write.changes)) {
    let before: unknown = null;
    const late = async (): Promise<void> => {
      await set(update, change);
      before = await rowsOf(update);
    };
    const answer = await withLateChanges(() =>
      changeBefore(update.id, late, async () => {
        const response = await write.call(update, stack);
        return { status: response.status, isLate: before !== null };
      }),
    );
    found[name] = { ...answer, rows: await rowsOf(update) };
    expected[name] = { status, isLate: true, rows: before };
    await set(update, undo);
    // The next call is admitted as before, and not by what the last one has left in memory.
    await ok(renew(app, update, stack));
  }
  expect(found).toEqual(expected);
  const before = await rowsOf(update);
  expect((await write.call(update, stack)).status).toBeLessThan(300);
  expect(await rowsOf(update)).not.toEqual(before);
});

function saveDelta(update: RunningUpdate) {
  const text = JSON.stringify(first);
  const span = { start: { offset: text.length }, end: { offset: text.length } };
  return app.call('PATCH', `${update.path}/checkpointdelta`, {
    auth: update.lease,
    body: {
      version: 3,
      sequenceNumber: 2,
      checkpointHash: createHash('sha256').update(`${text} `).digest('hex'),
      deploymentDelta: [{ Span: span, NewText: ' ' }],
    },
  });
}

function sendEvent(update: RunningUpdate, event: object) {
  const body = { events: [{ sequence: 1, timestamp: 1, ...event }] };
  return app.call('POST', `${update.path}/events/batch`, { auth: update.lease, body });
}

/** Without the append that follows in the same transaction, which has a fence of its own. */
async function lockJournal({ id: updateId }: RunningUpdate): Promise<{ readonly status: number }> {
  const { rows } = await client.query('select epoch, stack_id as "stackId" from updates where id = $1', [updateId]);
  const changeLimits = createChangeLimitRepository(app.context.db);
  if (!(await changeLimits.lockJournal({ updateId, ...rows[0] }))) return { status: 403 };
  await changeLimits.enforce(updateId);
  return { status: 204 };
}

const set = (update: RunningUpdate, change: string) =>
  client.query(`update updates u set ${change} where id = $1`, [update.id]);

/** All that a write may change. */
async function rowsOf(update: RunningUpdate): Promise<unknown> {
  const { rows } = await client.query(
    `select to_jsonb(u) as update, to_jsonb(s) as stack, to_jsonb(j) as journal,
       array(select c.id from checkpoints c where c.update_id = u.id) as checkpoints,
       array(select e.entry from journal_entries e where e.update_id = u.id) as entries,
       array(select e.event from engine_events e where e.update_id = u.id) as events
     from updates u join stacks s on s.id = u.stack_id left join journals j on j.update_id = u.id where u.id = $1`,
    [update.id],
  );
  return rows[0];
}
