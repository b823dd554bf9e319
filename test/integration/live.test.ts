import { expect, test } from '@jest/globals';
import { LiveHub, type LiveTopic } from '../../src/api/events/live/live-hub.ts';
import type { LiveMessage, LiveStream, PlacedMessage } from '../../src/api/events/live/live-stream.ts';
import type { RightsNotification } from '../../src/shared/events/live/notification.ts';
import { query } from '../support/database.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import type { TestApp } from '../support/test-app.ts';
import { testReplicas } from '../support/test-replicas.ts';
import { until } from '../support/until.ts';
import { cancel, complete } from '../support/update-calls.ts';

const apps = testReplicas({}, {});

/** Reads a stream in the background. */
class Reader implements Disposable {
  readonly placed: PlacedMessage[] = [];
  readonly stream: LiveStream;
  ended: unknown;
  readonly #gone = new AbortController();

  constructor(stream: LiveStream) {
    this.stream = stream;
    void this.#read();
  }

  get messages(): readonly LiveMessage[] {
    return this.placed.map(({ message }) => message);
  }

  has(wanted: Partial<LiveMessage>): boolean {
    return this.messages.some((message) =>
      Object.entries(wanted).every(([key, value]) => message[key as keyof LiveMessage] === value),
    );
  }

  [Symbol.dispose](): void {
    this.#gone.abort();
  }

  async #read(): Promise<void> {
    for (;;) {
      const got = await this.stream.read(this.#gone.signal);
      if (typeof got === 'string' || got === null) {
        this.ended = got;
        return;
      }
      this.placed.push(...got);
    }
  }
}

interface Watched {
  readonly hub: LiveHub;
  readonly rights: (RightsNotification | null)[];
}

const hubs = new Map<TestApp, Watched>();

/** The hub of a replica. */
function hubOf(app: TestApp): Watched {
  const found = hubs.get(app);
  if (found) return found;
  const rights: (RightsNotification | null)[] = [];
  const { logger, notifications } = app.context;
  const hub = new LiveHub({ channel: notifications.channel, logger }, (notification) => rights.push(notification), {
    maxUnreadMs: 10,
  });
  const made = { hub, rights };
  hubs.set(app, made);
  return made;
}

async function open(app: TestApp, topics: readonly LiveTopic[], after: string | null = null): Promise<Reader> {
  const reader = new Reader(await hubOf(app).hub.subscribe(topics, after, () => {}));
  await until(() => reader.has({ kind: 'ready' }) || reader.has({ kind: 'refetch' }), 'the beginning of a stream');
  return reader;
}

interface Topics {
  readonly stack: LiveTopic;
  readonly organization: LiveTopic;
}

async function topicsOf(app: TestApp, { path }: TestStack): Promise<Topics> {
  const [organization, project, stack] = path.split('/').slice(-3) as [string, string, string];
  const [row] = (await query(
    app,
    `select s.id, o.id as organization from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
      where o.name = $1 and p.name = $2 and s.name = $3`,
    [organization, project, stack],
  )) as [{ id: string; organization: string }];
  return {
    stack: { of: 'stack', id: row.id, name: 'stack:x' },
    organization: { of: 'organization', id: row.organization, name: 'organization:x' },
  };
}

test('commits of one replica are notified by the other: the life of an update, its events, tags', async () => {
  const [one, other] = apps;
  const stack = await createStack(one);
  const topics = await topicsOf(one, stack);
  using reader = await open(other, [topics.stack, topics.organization]);
  const update = await startUpdate(one, stack);
  const { id: updateId } = update;
  await until(() => reader.has({ topic: 'stack:x', kind: 'update.created', updateId }), 'creation');
  await until(() => reader.has({ topic: 'stack:x', kind: 'update.started', updateId }), 'start');
  using own = await open(other, [{ of: 'update', id: updateId, name: 'update:y' }]);
  const event = { sequence: 0, timestamp: 1, preludeEvent: { config: {} } };
  await ok(one.call('POST', `${update.path}/events/batch`, { auth: update.lease, body: { events: [event] } }));
  await until(() => own.has({ topic: 'update:y', kind: 'events.appended', updateId }), 'events');
  await ok(complete(one, update));
  await until(() => own.has({ topic: 'update:y', kind: 'update.ended', updateId }), 'end');
  await until(() => reader.has({ topic: 'stack:x', kind: 'stack.changed' }), 'a new version');
  await until(() => reader.has({ topic: 'organization:x', kind: 'update.ended' }), 'end in the organization');
  await one.context.indexer.index(topics.stack.id);
  await until(() => reader.has({ topic: 'stack:x', kind: 'index.changed' }), 'the index of the new version');
  expect(reader.messages.filter(({ kind }) => kind === 'events.appended')).toEqual([]);
  expect(reader.messages.filter(({ topic, updateId: id }) => topic === 'organization:x' && id !== undefined)).toEqual(
    [],
  );
  using later = await open(other, [topics.stack]);
  await ok(one.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { 'pulumi:project': 'x', owner: 'me' } }));
  await until(() => later.has({ kind: 'stack.changed' }), 'tags');
});

test('a stream is resumed at another replica from where it was', async () => {
  const [one, other] = apps;
  const stack = await createStack(one);
  const topics = await topicsOf(one, stack);
  hubOf(one);
  const reader = await open(other, [topics.stack]);
  const first = await startUpdate(one, stack);
  await until(() => reader.has({ kind: 'update.started' }), 'start');
  reader[Symbol.dispose]();
  const last = reader.placed.at(-1);
  await ok(cancel(one, stack, first));
  const second = await startUpdate(other, stack);
  using watcher = await open(one, [topics.stack]);
  await ok(cancel(one, stack, second));
  await until(() => watcher.has({ kind: 'update.ended', updateId: second.id }), 'end');

  using resumed = await open(one, [topics.stack], last?.id);
  await until(() => resumed.has({ kind: 'update.ended', updateId: second.id }), 'what was missed');
  expect(resumed.has({ kind: 'refetch' })).toBe(false);
  expect(resumed.has({ kind: 'update.ended', updateId: first.id })).toBe(true);
  expect(resumed.has({ kind: 'update.created', updateId: second.id })).toBe(true);
  expect(resumed.has({ kind: 'update.created', updateId: first.id })).toBe(false);
});

test('a client that returns with an unknown position, or after a lost connection, is instructed to refetch everything', async () => {
  const [one] = apps;
  const topics = await topicsOf(one, await createStack(one));
  // The notification of the stack's creation may arrive later.
  const ofItself = ({ messages }: Reader) => messages.filter(({ topic }) => topic === null);
  using unknown = await open(one, [topics.stack], 'someone.1.0');
  expect(ofItself(unknown)).toEqual([{ topic: null, kind: 'refetch' }]);
  using reader = await open(one, [topics.stack]);
  expect(ofItself(reader)).toEqual([{ topic: null, kind: 'ready' }]);
  const { rights } = hubOf(one);
  const before = rights.length;
  const cut = await query(
    one,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and query ~* '^listen .*holdfast_live|notifications.send'`,
  );
  expect(cut.length).toBeGreaterThan(0);
  await until(() => reader.has({ kind: 'refetch' }), 'the connection is there again');
  expect(rights.slice(before)).toContain(null);
});

test('changes of rights are notified in their transaction', async () => {
  const [one, other] = apps;
  const { organization } = await createStack(one);
  const { rights } = hubOf(one);
  await other.createUser(organization, 'member', 'leaver');
  const [{ id }] = (await query(one, `select id from users where login = 'leaver'`)) as [{ id: string }];
  await query(one, `delete from memberships where user_id = $1`, [id]);
  await until(
    () => rights.some((notification) => notification?.of === 'user' && notification.id === id),
    'the member has gone',
  );
  const [access] = (await query(
    one,
    `update organization_access a set version = version + 1 from organizations o
    where o.id = a.organization_id and o.name = $1 returning o.id`,
    [organization],
  )) as [{ id: string }];
  await until(
    () => rights.some((notification) => notification?.of === 'organization' && notification.id === access.id),
    'grants',
  );
});

test('a page that does not read is cut, and never has more than a few messages', async () => {
  const [one] = apps;
  const stack = await createStack(one);
  const topics = await topicsOf(one, stack);
  const { hub } = hubOf(one);
  let isCut = false;
  const stream = await hub.subscribe([topics.stack], null, () => {
    isCut = true;
  });
  using watcher = await open(one, [topics.stack]);
  for (let n = 0; n < 500; n++) {
    const updateId = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
    one.context.notifications.notify({
      kind: 'update.created',
      organizationId: null,
      stackId: topics.stack.id,
      updateId,
    });
  }
  one.context.notifications.notify({
    kind: 'index.changed',
    organizationId: null,
    stackId: topics.stack.id,
    updateId: null,
  });
  await until(() => watcher.has({ kind: 'index.changed' }) || watcher.has({ kind: 'refetch' }), 'all were notified');
  expect(stream.size).toBeLessThanOrEqual(64);
  await until(() => isCut, 'the connection is closed');
  expect(watcher.ended).toBeUndefined();
  expect(await stream.read(new AbortController().signal)).toBe('slow');
  hub.leave(stream);
});
