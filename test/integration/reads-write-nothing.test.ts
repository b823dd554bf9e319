import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, expect, jest, test } from '@jest/globals';
import { appRouter } from '../../src/api/router.ts';
import { readSmall } from '../../src/shared/backup/stored-bytes.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { fencedBy } from '../../src/shared/platform/read-only/read-only-mode.ts';
import { runInProcess } from '../support/admin.ts';
import { writeEverything } from '../support/all-documents.ts';
import { browserOf, PageBrowser } from '../support/browser.ts';
import { flipBit } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { importVersions } from '../support/encode-versions.ts';
import { creation } from '../support/journal-entries.ts';
import { pages } from '../support/page-routes.ts';
import { procedureTable } from '../support/procedure-table.ts';
import { ask, askFrom } from '../support/procedures.ts';
import { listRoutes } from '../support/routes.ts';
import { provisioningToken } from '../support/scim.ts';
import { ok, startUpdate, type TestStack } from '../support/state.ts';
import { type TestResponse, testApp } from '../support/test-app.ts';
import { append } from '../support/update-calls.ts';

// All reads, of stored bytes that are all damaged, by a token and a session whose last use is an hour ago.

const logged: string[] = [];
const log = { write: (line: string): void => void logged.push(JSON.parse(line).msg) };
const app = testApp({ settings: { HOLDFAST_INLINE_BYTES: '1' }, log });
const login = 'reader';
/**
 * One with all kinds of documents, one whose journal has a snapshot, one with a journal that is too long to be replayed for a read, and one that
 * nothing is wrong with.
 */
const names = ['dev', 'fresh', 'large', 'plain'] as const;
/** What reads change while the installation is read-only: running updates and repairs go on. */
const harmless = [
  ...['audit.insert', 'blobs.insert', 'checkpoints.commitCompaction', 'chunks.replace', 'documentChecks.quarantine'],
  ...['documentChecks.replace', 'eventSegments.markDamaged', 'identity.touchToken', 'journalSnapshotRows.delete'],
  ...['journals.claim', 'policyArchives.markDamaged', 'sessions.touch'],
];
let stack: TestStack;
let ids: Readonly<Record<string, string>>;
let scim: string;
let browser: PageBrowser;
/** Those of `fresh`, which can be read although the snapshot of its journal is damaged. */
let freshResources: unknown;

beforeAll(async () => {
  const written = await writeEverything(app);
  const { organization } = written.stack;
  const auth = `token ${await app.createUser(organization, 'admin', login)}`;
  stack = { ...written.stack, auth };
  await query(app, 'update users set site_admin = true where login = $1', [login]);
  scim = await provisioningToken(app, organization);
  browser = await browserOf(app, login);
  // Gives the session its row among the tokens.
  await askFrom(browser, 'me.get');
  await journalOf('fresh', 2, async (updateId) => app.context.compactor.takeSnapshot(updateId));
  await journalOf('large', 300);
  freshResources = resourcesOf((await ok(readFresh())).text);
  const [pack] = await query<{ id: string }>(app, 'select id from policy_pack_versions');
  ids = {
    ...{ organization, name: organization, login, updateId: written.update, stackVersion: '2' },
    ...{ versionId: String(pack?.id), pack: 'pack', versionTag: '1.0.0', group: 'default-policy-group' },
  };
  const blobs = await query<{ key: string }>(app, 'select key from blobs');
  for (const { key } of blobs) {
    const bytes = await readSmall(app.context.blobs, key);
    await app.context.blobs.put(key, once(flipBit(bytes, bytes.length >> 1, 2)));
  }
  expect(blobs.length).toBeGreaterThan(5);
  const plain = { ...stack, stack: 'plain', path: stack.path.replace('/dev', '/plain') };
  await ok(app.call('POST', `/api/stacks/${organization}/proj`, { auth, body: { stackName: 'plain' } }));
  await importVersions(app, plain, 2);
  await query(app, `update api_tokens set last_used_at = now() - interval '1 hour'`);
  await query(app, `update sessions set last_seen_at = now() - interval '5 minutes'`);
  await noteWrites();
});

const readFresh = (): Promise<TestResponse> =>
  app.call('GET', `/api/stacks/${stack.organization}/proj/fresh/export`, { auth: stack.auth });

// The manifest has the time of the replay.
const resourcesOf = (text: string): unknown => JSON.parse(text).deployment.resources;

/** A stack with a running update that has written this many resources to its journal. */
async function journalOf(
  name: string,
  count: number,
  then: (updateId: string) => Promise<unknown> = async () => {},
): Promise<void> {
  const { auth, organization } = stack;
  await ok(app.call('POST', `/api/stacks/${organization}/proj`, { auth, body: { stackName: name } }));
  const own = { ...stack, stack: name, path: `/api/stacks/${organization}/proj/${name}` };
  const update = await startUpdate(app, own, { journal: true });
  const entries = Array.from({ length: count }, (_, at) => creation(2 * at + 1, `r${at}`, own));
  await ok(append(app, update, entries.flat()));
  await then(update.id);
}

/** Notes the statement of each row that changes from now on, but for the one that says that a process is alive. */
async function noteWrites(): Promise<void> {
  await query(app, 'create table noted_writes (statement text not null)');
  await query(
    app,
    `create function note_write() returns trigger language plpgsql security definer set search_path = public as
     $$ begin insert into noted_writes values (tg_table_name || ' ' || current_query()); return null; end $$`,
  );
  await query(
    app,
    `do $$ declare name text; begin
       for name in select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
         and relname not in ('noted_writes', 'processes') loop
         execute format('create trigger note_write after insert or update or delete on %I for each row execute function note_write()', name);
       end loop; end $$`,
  );
}

/** The names of the statements that have changed rows since the last call. */
async function takeWrites(): Promise<string[]> {
  const rows = await query<{ statement: string }>(app, 'delete from noted_writes returning statement');
  const nameOf = (statement: string): string => /\/\* (\w+\.\w+) \*\//.exec(statement)?.[1] ?? statement;
  return [...new Set(rows.map(({ statement }) => nameOf(statement)))].sort();
}

/** Calls each route that reads. Returns how many succeed, and the statements of each that has changed rows. */
async function readRoutes(): Promise<{ read: number; writes: Record<string, string[]> }> {
  const writes: Record<string, string[]> = {};
  let read = 0;
  const routes = listRoutes(app.app).filter((route) => route.startsWith('GET ') && route !== 'GET /trpc/:procedures');
  for (const route of routes) {
    const pattern = route.slice('GET '.length).replace(/:kind\(.*\)\//, 'update/');
    for (const name of pattern.includes(':stack/') || pattern.endsWith(':stack') ? names : names.slice(0, 1)) {
      const url = pattern.replace(
        /:(\w+)/g,
        (_, key: string) => ({ ...ids, project: 'proj', stack: name })[key] ?? randomUUID(),
      );
      const auth = url.startsWith('/scim/') ? scim : stack.auth;
      const page = pages[route] === 'session' ? browser : new PageBrowser(app);
      const { status } = await (pages[route] === undefined ? app.call('GET', url, { auth }) : page.get(url));
      if (status < 300) read++;
    }
    const found = await takeWrites();
    if (found.length > 0) writes[route] = found;
  }
  return { read, writes };
}

/** Calls each query. Returns the same. */
async function readQueries(): Promise<{ read: number; writes: Record<string, string[]> }> {
  const writes: Record<string, string[]> = {};
  let read = 0;
  const { procedures } = appRouter._def as unknown as { procedures: Record<string, { _def: { type: string } }> };
  for (const [name, { _def }] of Object.entries(procedures)) {
    if (_def.type !== 'query') continue;
    const { input: given = {} } = procedureTable[name] ?? {};
    for (const each of names) {
      const target = { organization: stack.organization, project: 'proj', stack: each };
      const input = { ...target, ...(typeof given === 'function' ? given(target) : given) };
      const { status } = await ask(app, stack.auth.replace('token ', ''), name, { ...input, ...idsOf(input) });
      if (status === 200) read++;
    }
    const found = await takeWrites();
    if (found.length > 0) writes[name] = found;
  }
  return { read, writes };
}

const idsOf = (input: object): object => ('updateId' in input ? { updateId: ids['updateId'] } : {});

async function readArchive(): Promise<string[]> {
  await expect(app.context.policyArchives.open(String(ids['versionId']))).rejects.toMatchObject({ status: 500 });
  return takeWrites();
}

const refused = { status: 503, text: expect.stringContaining('another site has taken over') };

test('at a site that another one has replaced, damage is proved and reported once', async () => {
  const { copies, policyArchives, readOnly, states } = app.context;
  const get = (path: string) => async () =>
    (await app.call('GET', `${stack.path}${path}`, { auth: stack.auth })).status;
  const reads: Readonly<Record<string, readonly [read: () => Promise<unknown>, result: unknown, message: string]>> = {
    version: [get('/export/1'), 500, 'stored document is damaged'],
    head: [get('/export'), 500, 'stored document is damaged'],
    events: [get(`/update/${ids['updateId']}/events`), 500, 'archived events are damaged'],
    archive: [
      () => policyArchives.open(String(ids['versionId'])).catch(({ status }: { status: number }) => status),
      500,
      'the archive of a policy pack is damaged',
    ],
    snapshot: [
      async () => {
        const { state } = (await states.readHead({ ...stack, stack: 'fresh' })) ?? {};
        return resourcesOf(Buffer.concat(await Array.fromAsync(state?.bytes ?? [])).toString());
      },
      freshResources,
      'journal snapshot is damaged',
    ],
  };
  const prove = jest.spyOn(copies, 'prove');
  const take = async (read: () => Promise<unknown>, message: string) => {
    logged.length = 0;
    prove.mockClear();
    const result = await read();
    const isDamage = (line: string) => line.replace('still ', '') === message;
    return { result, isProved: prove.mock.calls.length > 0, logged: logged.filter(isDamage) };
  };
  readOnly.remember(fencedBy(new Date()));
  try {
    for (const [what, [read, result, message]] of Object.entries(reads)) {
      const first = await take(read, message);
      const second = await take(read, message);
      expect({ what, first, second }).toEqual({
        what,
        first: { result, isProved: true, logged: [message] },
        second: { result, isProved: false, logged: [] },
      });
    }
  } finally {
    prove.mockRestore();
    readOnly.remember(null);
  }
});

test('at a site that another one has replaced, no read changes a row', async () => {
  const { readOnly } = app.context;
  await takeWrites();
  readOnly.remember(fencedBy(new Date()));
  try {
    const routes = await readRoutes();
    const queries = await readQueries();
    expect([routes.writes, queries.writes, await readArchive()]).toEqual([{}, {}, []]);
    expect(Math.min(routes.read, queries.read)).toBeGreaterThan(50);
    // It must be recorded, which is not done here.
    expect(await readFresh()).toMatchObject(refused);
    const { state } = (await app.context.states.readHead({ ...stack, stack: 'fresh' })) ?? {};
    expect(resourcesOf(Buffer.concat(await Array.fromAsync(state?.bytes ?? [])).toString())).toEqual(freshResources);
    await expect(app.context.states.readHead({ ...stack, stack: 'large' })).rejects.toMatchObject({
      code: 'read-only',
    });
  } finally {
    readOnly.remember(null);
  }
});

test('at such a site, commands that read mark no damage', async () => {
  await query(app, 'update installation set fenced_since = now()');
  const home = mkdtempSync(path.join(tmpdir(), 'holdfast-reads-'));
  try {
    await takeWrites();
    const words = ['export', '--organization', stack.organization, '--to', `file://${home}`];
    const { stdout } = await runInProcess(app, ...words);
    expect(stdout).toContain('proj/dev: not exported: The server');
    expect(await takeWrites()).toEqual(['audit.insert']);
  } finally {
    rmSync(home, { recursive: true, force: true });
    await query(app, 'update installation set fenced_since = null');
    await takeWrites();
  }
});

test('while an operator has made the installation read-only, reads change only what is harmless', async () => {
  const { readOnly } = app.context;
  readOnly.remember({ since: new Date(), reason: 'a move' });
  try {
    const writes = [await readRoutes(), await readQueries()].flatMap((each) => Object.values(each.writes).flat());
    expect([...new Set([...writes, ...(await readArchive())])].sort()).toEqual(harmless);
  } finally {
    readOnly.remember(null);
  }
});
