import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { type Person, person } from '../support/grants.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import {
  createTestApp,
  createTestDatabase,
  listOpenApps,
  type TestApp,
  type TestDatabase,
  type TestResponse,
} from '../support/test-app.ts';
import { removeRule, setRule } from '../support/update-rules.ts';

// Two replicas at one database.
let database: TestDatabase;
let replicas: readonly [TestApp, TestApp];
beforeAll(async () => {
  database = await createTestDatabase();
  const first = await createTestApp({ database });
  replicas = [first, await createTestApp({ database, dataDir: first.dataDir })];
});
afterAll(async () => {
  for (const replica of listOpenApps()) await replica[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

let turn = 0;
/** The same call of each replica in turn. */
function call(...parts: Parameters<TestApp['call']>): Promise<TestResponse> {
  return replicas[turn++ % 2 === 0 ? 0 : 1].call(...parts);
}

async function statusesOf(calls: readonly Promise<TestResponse>[]): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (const { status } of await Promise.all(calls)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

/** Events of the audit log about updates of the stack, by action. */
async function recorded(stack: TestStack): Promise<Record<string, number>> {
  const rows = await query<{ action: string; count: number }>(
    replicas[0],
    `select action, count(*)::integer as count from audit_events where organization = $1 and action like 'update.%' and outcome = 'done' group by action`,
    [stack.organization],
  );
  return Object.fromEntries(rows.map(({ action, count }) => [action, count]));
}

test('of many calls that create, start and complete an update at once, one does', async () => {
  const stack = await createStack(replicas[0]);
  const { auth } = stack;
  for (const [round, count] of [100, 10].entries()) {
    const create = () => call('POST', `${stack.path}/update`, { auth, body: {} });
    expect(await statusesOf(times(count, create))).toEqual({ 200: 1, 409: count - 1 });
    const [held] = await query<{ id: string }>(
      replicas[0],
      `select u.id from updates u join stacks s on s.active_update_id = u.id where u.status = 'not started' and u.requested_by is not null
         and u.organization_id = (select id from organizations where name = $1)`,
      [stack.organization],
    );
    const path = `${stack.path}/update/${held?.id}`;
    const starts = times(20, () => call('POST', path, { auth, body: { journalVersion: 1 } }));
    expect(await statusesOf(starts)).toEqual({ 200: 1, 409: 19 });
    const started = (await Promise.all(starts)).find(({ status }) => status === 200);
    const lease = `update-token ${started?.json.token}`;
    const completions = times(20, () =>
      call('POST', `${path}/complete`, { auth: lease, body: { status: 'succeeded' } }),
    );
    expect(await statusesOf(completions)).toEqual({ 204: 20 });
    const ended = round + 1;
    expect(await recorded(stack)).toEqual({ 'update.create': ended, 'update.start': ended, 'update.end': ended });
  }
  const [head] = await query(
    replicas[0],
    `select max(stack_version) as version, count(*)::integer as updates from updates
     where organization_id = (select id from organizations where name = $1)`,
    [stack.organization],
  );
  expect(head).toEqual({ version: 2, updates: 2 });
});

interface Scene {
  readonly stack: TestStack;
  readonly caller: Person;
}

const lives = { clients: 6, each: 6 };

/** What a call was answered. */
interface Said {
  readonly what: 'update' | 'preview' | 'start' | 'complete';
  readonly status: number;
  /** Whether it began after the change. */
  readonly isAfter: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Clients begin and end updates and previews of the stack, and `change` is made in their midst. The last answer is that of an update after it. */
async function whileChanging({ caller, stack }: Scene, change: () => Promise<unknown>): Promise<Said[]> {
  const answers: Said[] = [];
  let isChanged = false;
  let begun = 0;
  let changing: Promise<unknown> | null = null;
  const send = async (what: Said['what'], path: string, body: object, auth = caller.auth): Promise<Said> => {
    const isAfter = isChanged;
    const { status, text } = await call('POST', path, { auth, body });
    const said = { what, status, isAfter, body: text === '' ? {} : JSON.parse(text) };
    answers.push(said);
    return said;
  };
  const client = async (_: unknown, index: number): Promise<void> => {
    for (let life = 0; life < lives.each; life++) {
      if (++begun === (lives.clients * lives.each) / 2)
        changing = change().then(() => {
          isChanged = true;
        });
      const kind = index % 2 === 0 ? 'update' : 'preview';
      const created = await send(kind, `${stack.path}/${kind}`, {});
      if (created.status !== 200) continue;
      const path = `${stack.path}/update/${created.body['updateID']}`;
      const started = await send('start', path, { journalVersion: life % 2 });
      // Some are left as they are.
      if (started.status !== 200 || life === lives.each - 1) continue;
      await send('complete', `${path}/complete`, { status: 'succeeded' }, `update-token ${started.body['token']}`);
    }
  };
  await Promise.all(Array.from({ length: lives.clients }, client));
  await changing;
  await endHolder({ caller, stack });
  await send('update', `${stack.path}/update`, {});
  return answers;
}

/** What must be so whatever has happened. */
async function expectConsistent({ stack }: Scene, answers: readonly Said[]): Promise<void> {
  const created = answers.filter(({ body, status }) => status === 200 && 'updateID' in body).length;
  const started = answers.filter(({ body, status }) => status === 200 && 'token' in body).length;
  expect(await recorded(stack)).toMatchObject({ 'update.create': created, 'update.start': started });
  const [found] = await query(
    replicas[0],
    `select count(*)::integer as updates, count(*) filter (where u.started_at is not null)::integer as started,
       count(*) filter (where u.exclusive and u.status in ('not started', 'running') and s.active_update_id is distinct from u.id)::integer as "without stack",
       count(*) filter (where u.status not in ('not started', 'running') and s.active_update_id = u.id)::integer as "ended with stack",
       count(*) filter (where u.status = 'running' and u.journal_version > 0 and not exists (select 1 from journals j where j.update_id = u.id))::integer as "without journal"
     from updates u join stacks s on s.id = u.stack_id
     where u.organization_id = (select id from organizations where name = $1) and u.kind <> 'rename'`,
    [stack.organization],
  );
  expect(found).toEqual({ updates: created, started, 'without stack': 0, 'ended with stack': 0, 'without journal': 0 });
}

/** The number of active updates of the scene's token that nothing stops. */
async function liveUpdates({ caller }: Scene): Promise<number> {
  const rows = await query(
    replicas[0],
    `select 1 from updates where token_id = $1 and status in ('not started', 'running') and end_reason is null and expires_at > clock_timestamp()`,
    [caller.tokenId],
  );
  return rows.length;
}

const byAdmin = ({ stack }: Scene, method: string, path: string, body?: object) =>
  ok(call(method, path, { auth: stack.auth, ...(body ? { body } : {}) }));

/** What is changed, what calls may be answered, what the last one is answered, and whether updates of the caller may go on. */
const changes: Record<
  string,
  {
    readonly change: (scene: Scene) => Promise<unknown>;
    readonly statuses: readonly number[];
    readonly last: number;
    readonly mayGoOn: boolean;
  }
> = {
  'the membership ends': {
    change: (scene) => byAdmin(scene, 'DELETE', `/api/orgs/${scene.stack.organization}/members/${scene.caller.login}`),
    ...{ statuses: [401, 403, 404, 409], last: 404, mayGoOn: false },
  },
  'the caller may only read': {
    change: (scene) =>
      byAdmin(scene, 'PATCH', `/api/orgs/${scene.stack.organization}/members/${scene.caller.login}`, {
        role: 'viewer',
      }),
    ...{ statuses: [403, 409], last: 403, mayGoOn: false },
  },
  'the token is revoked': {
    change: ({ caller }) => ok(call('DELETE', `/api/user/tokens/${caller.tokenId}`, { auth: caller.auth })),
    ...{ statuses: [401, 403, 409], last: 401, mayGoOn: false },
  },
  'the stack is frozen': {
    change: ({ stack }) => setRule(replicas[0], stack, { kind: 'freeze', settings: {} }),
    ...{ statuses: [409], last: 409, mayGoOn: true },
  },
  'rules come and go': {
    change: async ({ stack }) => {
      for (let round = 1; round <= 8; round++) {
        const id = await setRule(replicas[0], stack, { kind: 'wait-alert', settings: { seconds: 60 } });
        await removeRule(replicas[0], stack, id);
      }
    },
    ...{ statuses: [409], last: 200, mayGoOn: true },
  },
  'the stack is deleted': {
    change: (scene) => deleteWhenFree(scene),
    ...{ statuses: [403, 404, 409], last: 404, mayGoOn: false },
  },
  'the stack is renamed': {
    change: (scene) => renameWhenFree(scene),
    ...{ statuses: [403, 404, 409], last: 404, mayGoOn: true },
  },
};

/** Repeats a call that is refused while an update holds the stack, ending that. */
async function whenFree(scene: Scene, attempt: () => Promise<TestResponse>): Promise<void> {
  for (;;) {
    const answer = await attempt();
    if (answer.status !== 409) return void (await ok(Promise.resolve(answer)));
    await endHolder(scene);
  }
}

/** Ends the update that holds the stack, if one does. */
async function endHolder({ stack }: Scene): Promise<void> {
  const [held] = await query<{ id: string }>(
    replicas[0],
    `select active_update_id as id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
       where o.name = $1 and active_update_id is not null`,
    [stack.organization],
  );
  if (held) await call('POST', `${stack.path}/update/${held.id}/cancel`, { auth: stack.auth });
}

const deleteWhenFree = (scene: Scene) =>
  whenFree(scene, () => call('DELETE', `${scene.stack.path}?force=true`, { auth: scene.stack.auth }));
const renameWhenFree = (scene: Scene) =>
  whenFree(scene, () =>
    call('POST', `${scene.stack.path}/rename`, { auth: scene.stack.auth, body: { newName: 'moved' } }),
  );

describe('while updates begin and end', () => {
  test.each(Object.keys(changes))('%s', async (name) => {
    const { change, last, mayGoOn, statuses } = changes[name] as (typeof changes)[string];
    const stack = await createStack(replicas[0]);
    const scene = { stack, caller: await person(replicas[0], stack.organization, 'member') };
    const answers = await whileChanging(scene, () => change(scene));
    const others = answers.filter(({ status }) => status > 299 && !statuses.includes(status));
    expect(others).toEqual([]);
    expect(answers.at(-1)?.status).toBe(last);
    const late = answers.filter(({ isAfter, status, what }) => isAfter && status === 200 && what === 'update');
    if (last !== 200) expect(late).toEqual([]);
    await expectConsistent(scene, answers);
    if (!mayGoOn) expect(await liveUpdates(scene)).toBe(0);
  });
});

test('no calls have waited for each other in a circle', async () => {
  // Those of a session are counted when it ends.
  for (const replica of replicas.toReversed()) await replica[Symbol.asyncDispose]();
  const client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  const counted = 'select deadlocks::integer from pg_stat_database where datname = current_database()';
  const { rows } = await client.query(counted);
  await client.end();
  expect(rows).toEqual([{ deadlocks: 0 }]);
});
