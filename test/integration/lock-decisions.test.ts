import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { createGrantRepository } from '../../src/shared/access/grant-repository.ts';
import { createIdentityRepository } from '../../src/shared/identity/identity-repository.ts';
import { createTokenRepository, type TokenOwner } from '../../src/shared/identity/token-repository.ts';
import { type Queryable, sql } from '../../src/shared/platform/db/sql.ts';
import { createStackRepository, type StackRow } from '../../src/shared/stacks/stack-repository.ts';
import { createCheckpointRepository } from '../../src/shared/state/checkpoints/checkpoint-repository.ts';
import { createCompactionRepository } from '../../src/shared/state/journal/compaction-repository.ts';
import { createUpdateRuleRepository } from '../../src/shared/updates/rules/update-rule-repository.ts';
import { createUpdateRepository } from '../../src/shared/updates/update-repository.ts';
import { holdInserts, query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { type TestResponse, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete } from '../support/update-calls.ts';

// Statements that wait for a lock decide by what was committed during the wait.

const app = testApp({ settings: { journalGraceSeconds: 600 } });

const document = (byte: number) => ({
  document: {
    sha256: Buffer.alloc(32, byte),
    sizeBytes: 1,
    storedBytes: 1,
    codec: 'none' as const,
    inlineBytes: Buffer.alloc(1, byte),
    blobKey: null,
  },
  resourceCount: 0,
});

const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;

interface Pointers {
  readonly base: string | null;
  readonly own: string | null;
  readonly head: string | null;
}

async function pointersOf({ id }: { readonly id: string }): Promise<Pointers> {
  const [row] = await query<Pointers>(
    app,
    `select u.base_checkpoint_id as base, u.checkpoint_id as own, s.checkpoint_id as head
     from updates u join stacks s on s.id = u.stack_id where u.id = $1`,
    [id],
  );
  return row as Pointers;
}

/** A stack whose state is from an ended update with a journal. */
async function journaled(end: 'complete' | 'cancel' = 'complete') {
  const stack = await createStack(app);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(2) }));
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'new', stack)));
  await ok(end === 'complete' ? complete(app, update) : cancel(app, stack, update));
  const readBack = 'select 1 from journals where update_id = $1 and compacted_at is not null';
  await until(async () => (await query(app, readBack, [update.id])).length === 1, 'the state was read back');
  const [row] = await query<{ stack_id: string }>(app, 'select stack_id from updates where id = $1', [update.id]);
  const { own, head } = await pointersOf(update);
  expect(own).toBe(head);
  const found = { updateId: update.id, stackId: row?.stack_id as string, foundCheckpointId: own as string };
  return { found, stack, update };
}

/** Sends `commit`, which waits for the stack unless it is over before, while the start of another update has the stack. */
async function whileStarting<T>(stack: TestStack, commit: () => Promise<T>): Promise<[T, RunningUpdate]> {
  await using gate = await holdInserts(app, 'journals');
  const start = startUpdate(app, stack, { journal: true });
  await gate.reached(1);
  const committed = commit();
  await Promise.race([gate.reached(2), committed]);
  await gate.release();
  return Promise.all([committed, start]);
}

/** Sends `work`, which waits for a lock, while the transaction of `first`, and then `last`, is open. Returns its result once that is committed. */
async function whileUncommitted<T>(
  first: (tx: Queryable) => Promise<unknown>,
  work: () => Promise<T>,
  last: (tx: Queryable) => Promise<unknown> = async () => undefined,
): Promise<T> {
  const ready = Promise.withResolvers<void>();
  const waits = Promise.withResolvers<void>();
  const committed = app.context.db.inTransaction(async (tx) => {
    await first(tx);
    ready.resolve();
    await waits.promise;
    await last(tx);
  });
  await Promise.race([ready.promise, committed]);
  const result = work();
  try {
    await until(async () => (await query(app, waiting)).length === 1, 'the second one waits');
  } finally {
    waits.resolve();
  }
  await committed;
  return result;
}

test('a limit for the lives of tokens locks members before their organization, as calls do', async () => {
  const { organization } = await createStack(app);
  const [row] = await query<{ id: string; member: string }>(
    app,
    `select o.id, m.user_id as member from organizations o join memberships m on m.organization_id = o.id where o.name = $1`,
    [organization],
  );
  const { id, member } = row as { readonly id: string; readonly member: string };
  // Its token is the first one in the table, and in the order of ids.
  await query(
    app,
    `insert into api_tokens (id, kind, organization_id, name, role, token_hash)
     values (overlay(gen_random_uuid()::text placing '00000000' from 1)::uuid, 'organization', $1, 'ci', 'member', sha256(gen_random_uuid()::text::bytea))`,
    [id],
  );
  await query(app, `update api_tokens set description = 'later' where user_id = $1`, [member]);
  const attempts = { limit: 0, call: 0 };
  await whileUncommitted(
    async (tx) => {
      attempts.call++;
      await tx.query(sql.nothing`select lock_shared(place_of_user(${member}))`);
    },
    () =>
      app.context.db.inTransaction(async (tx) => {
        attempts.limit++;
        await createTokenRepository(tx).setMaxSeconds(id, 86_400);
      }),
    (tx) => tx.query(sql.nothing`select lock_shared(${id})`),
  );
  expect(attempts).toEqual({ limit: 1, call: 1 });
  const lives = `select expires_at < now() + interval '2 days' as "isShort" from api_tokens where organization_id = $1 or user_id = $2`;
  expect(await query(app, lives, [id, member])).toEqual([{ isShort: true }, { isShort: true }]);
});

test('a limit for the lives of tokens waits for no calls of members whose tokens it does not shorten', async () => {
  const { organization } = await createStack(app);
  const [row] = await query<{ id: string; member: string }>(
    app,
    `select o.id, m.user_id as member from organizations o join memberships m on m.organization_id = o.id where o.name = $1`,
    [organization],
  );
  const { id, member } = row as { readonly id: string; readonly member: string };
  const day = 86_400;
  const setMaxSeconds = (seconds: number | null) =>
    app.context.db.inTransaction((tx) => createTokenRepository(tx).setMaxSeconds(id, seconds));
  await setMaxSeconds(100 * day);
  await app.context.db.inTransaction(async (tx) => {
    await tx.query(sql.nothing`select lock_shared(place_of_user(${member}))`);
    for (const seconds of [100 * day, 200 * day, 150 * day, null]) await setMaxSeconds(seconds);
  });
  expect(await createTokenRepository(app.context.db).findMaxSeconds(id)).toBeNull();
});

describe('a token and a limit for its life that are made at once', () => {
  const day = 86_400;
  interface Made {
    readonly auth: string;
    readonly organization: string;
    readonly organizationId: string;
    readonly userId: string;
  }
  /** A member whose tokens, and those of whose organization, no limit of `later` days shortens. */
  const later = 150;
  async function made(): Promise<Made> {
    const { auth, organization } = await createStack(app);
    const [row] = await query<{ organizationId: string; userId: string }>(
      app,
      `select o.id as "organizationId", m.user_id as "userId"
       from organizations o join memberships m on m.organization_id = o.id where o.name = $1`,
      [organization],
    );
    const found = { auth, organization, ...(row as { organizationId: string; userId: string }) };
    for (const days of [100, null]) await app.context.db.inTransaction((tx) => limit(tx, found, days));
    return found;
  }
  const limit = (db: Queryable, { organizationId }: Made, days: number | null) =>
    createTokenRepository(db).setMaxSeconds(organizationId, days === null ? null : days * day);
  const ends = async (name: string, days: number) => {
    const [row] = await query(
      app,
      `select expires_at <= created_at + make_interval(days => $2) as "isLimited" from api_tokens where name = $1`,
      [name, days],
    );
    expect(row).toEqual({ isLimited: true });
  };
  const ask = (of: Made, path: string, name: string) =>
    app.call('POST', path, { auth: of.auth, body: { name, description: name } });
  const insert = (db: Queryable, owner: TokenOwner, name: string) =>
    createTokenRepository(db).insert({
      ...{
        owner,
        name,
        hash: randomBytes(32),
        description: '',
        scopes: owner.kind === 'service' ? [] : null,
        expiresAt: null,
        createdBy: null,
      },
    });
  const owners = (of: Made): readonly (readonly [TokenOwner, string])[] => [
    [{ kind: 'personal', userId: of.userId }, '/api/user/tokens'],
    [{ kind: 'service', organizationId: of.organizationId }, `/api/orgs/${of.organization}/tokens`],
  ];

  test('a token that is made meanwhile has it', async () => {
    const of = await made();
    for (const [, path] of owners(of)) {
      const name = randomUUID();
      await app.context.db.inTransaction((tx) => limit(tx, of, null));
      await ok(
        whileUncommitted(
          (tx) => limit(tx, of, later),
          () => ask(of, path, name),
        ),
      );
      await ends(name, later);
    }
  });

  test('a token that was made before, and is not committed, has it', async () => {
    const of = await made();
    for (const [owner] of owners(of)) {
      const name = randomUUID();
      await app.context.db.inTransaction((tx) => limit(tx, of, null));
      await whileUncommitted(
        (tx) => insert(tx, owner, name),
        () => app.context.db.inTransaction((tx) => limit(tx, of, later)),
      );
      await ends(name, later);
    }
  });

  test('a token has that of an organization of which its owner becomes a member meanwhile', async () => {
    for (const isFirst of [true, false]) {
      const [of, other] = [await made(), await made()];
      const name = randomUUID();
      await app.context.db.inTransaction((tx) => limit(tx, other, later));
      const join = (tx: Queryable): Promise<unknown> =>
        createIdentityRepository(tx).setMembership(other.organizationId, of.userId, 'viewer');
      const make = (tx: Queryable): Promise<unknown> => insert(tx, { kind: 'personal', userId: of.userId }, name);
      const [first, second] = isFirst ? [make, join] : [join, make];
      await whileUncommitted(first, () => app.context.db.inTransaction(second));
      await ends(name, later);
    }
  });

  test('changes of grants do not wait for tokens that are being made', async () => {
    const of = await made();
    await app.context.db.inTransaction(async (tx) => {
      await insert(tx, { kind: 'service', organizationId: of.organizationId }, randomUUID());
      await app.context.db.inTransaction(async (other) => {
        const grants = createGrantRepository(other);
        await grants.lockDefaults(of.organizationId);
        await grants.setDefaults(of.organizationId, null);
      });
    });
  });
});

test('an update that starts while its base is being rebuilt has the new base', async () => {
  const { found, stack } = await journaled();
  const { replace } = createCheckpointRepository(app.context.db);
  const [id, update] = await whileStarting(stack, () => replace(found, document(1)));
  expect(id).not.toBeNull();
  expect(await pointersOf(update)).toEqual({ base: id, own: id, head: id });
});

test.each(['complete', 'cancel'] as const)(
  'a compaction does not take the base of an update that starts meanwhile (%s)',
  async (end) => {
    const { found, stack } = await journaled(end);
    const before = found.foundCheckpointId;
    const repository = createCheckpointRepository(app.context.db);
    const outcome = { error: null, warning: null, isNew: end === 'complete' };
    const compaction = { ...found, compactedEntries: 3, outcome };
    const [id, update] = await whileStarting(stack, () => repository.commitCompaction(compaction, document(2)));
    expect([id, await pointersOf(update)]).toEqual([null, { base: before, own: before, head: before }]);
  },
);

test('neither does the return to the base of an update whose entries cannot be replayed', async () => {
  const { found, stack } = await journaled();
  const before = found.foundCheckpointId;
  const { revertToBase } = createCompactionRepository(app.context.db);
  const [reverted, update] = await whileStarting(stack, () => revertToBase({ ...found, error: 'damaged' }));
  expect([reverted, await pointersOf(update)]).toEqual([false, { base: before, own: before, head: before }]);
});

test('a state counts as read back only if it was read back', async () => {
  const { found, update } = await journaled();
  await query(app, 'update journals set compacted_at = null where update_id = $1', [update.id]);
  const { markCompacted } = createCompactionRepository(app.context.db);
  const marked = await whileUncommitted(
    (tx) => createCheckpointRepository(tx).replace(found, document(3)),
    () => markCompacted(update.id, found.foundCheckpointId),
  );
  expect(marked).toBe(false);
  expect(await query(app, 'select compacted_at from journals where update_id = $1', [update.id])).toEqual([
    { compacted_at: null },
  ]);
});

test.each<[string, (db: Queryable, id: string) => Promise<StackRow | null>]>([
  ['alone', (db, id) => createStackRepository(db).lockById(id)],
  ['with its rules', (db, id) => createUpdateRuleRepository(db).lockStack(id)],
])('a stack that moves to another project meanwhile is not taken for a deleted one: %s', async (_, lock) => {
  const { db, stacks } = app.context;
  const stack = (await stacks.find(await createStack(app))) as StackRow;
  const moved = await whileUncommitted(
    async (tx) => {
      const project = await createStackRepository(tx).ensureProject(stack.organizationId, 'elsewhere');
      await createStackRepository(tx).rename(stack.id, project, 'dev');
    },
    () => lock(db, stack.id),
  );
  expect(moved).toMatchObject({ id: stack.id, project: 'elsewhere' });
});

describe('two calls at once add no more than there may be', () => {
  const add = async (
    table: string,
    most: number,
    fill: string,
    call: (stack: TestStack, at: number) => Promise<TestResponse>,
  ) => {
    const stack = await createStack(app);
    await query(app, `${fill} from generate_series(1, $2::integer) n, organizations where organizations.name = $1`, [
      stack.organization,
      most - 1,
    ]);
    await using gate = await holdInserts(app, table);
    const calls = Promise.all([1, 2].map((at) => call(stack, at)));
    await gate.reached(2);
    await gate.release();
    return (await calls).map(({ status }) => status).toSorted();
  };

  test('webhooks of an organization', async () => {
    const fill = `insert into webhooks (organization_id, name, display_name, url, format, is_active, events, event_groups)
      select id, n::text, n::text, 'https://hooks.example.com', 'raw', false, '{}', '{}'`;
    const create = ({ auth, organization }: TestStack, at: number) =>
      app.call('POST', `/api/orgs/${organization}/hooks`, {
        auth,
        body: { displayName: `new ${at}`, active: false, payloadUrl: 'https://hooks.example.com' },
      });
    expect(await add('webhooks', 100, fill, create)).toEqual([200, 409]);
  });

  test('objects of a configuration', async () => {
    const declare = ({ auth, organization }: TestStack, at: number) =>
      app.call('PATCH', `/api/orgs/${organization}/managed-objects`, {
        auth,
        body: { set: [{ kind: 'Team', name: `new ${at}`, object: 'x', labels: {} }] },
      });
    const fill = `insert into managed_objects (organization_id, kind, name, object, labels, applied_by)
      select id, 'Stack', n::text, n::text, '{}', ''`;
    expect(await add('managed_objects', 20_000, fill, declare)).toEqual([204, 409]);
  });
});

describe('a lease does not outlast its token, whose life is shortened', () => {
  const shorten = (on: Queryable, { id }: RunningUpdate) =>
    on.query(sql.nothing`
      update api_tokens set expires_at = now() + interval '100 seconds' where id = (select token_id from updates where id = ${id})`);
  const secondsOf = async ({ id }: RunningUpdate) => {
    const [row] = await query<{ left: number }>(
      app,
      'select extract(epoch from expires_at - clock_timestamp())::float8 as left from updates where id = $1',
      [id],
    );
    return row?.left;
  };

  test('before it is renewed', async () => {
    const update = await startUpdate(app, await createStack(app));
    const { renewLease } = createUpdateRepository(app.context.db);
    const renewed = await whileUncommitted(
      (tx) => shorten(tx, update),
      () => renewLease(update.id, 1, 300),
    );
    expect(renewed).toBeInstanceOf(Date);
    expect(await secondsOf(update)).toBeLessThan(101);
  });

  test('after it is renewed', async () => {
    const update = await startUpdate(app, await createStack(app));
    await query(app, `update updates set expires_at = now() + interval '60 seconds' where id = $1`, [update.id]);
    await whileUncommitted(
      async (tx) => expect(await createUpdateRepository(tx).renewLease(update.id, 1, 300)).toBeInstanceOf(Date),
      () => shorten(app.context.db, update),
    );
    expect(await secondsOf(update)).toBeLessThan(101);
  });
});
