import pg from 'pg';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { openBlobStore } from '../../src/shared/platform/blobs/blob-stores.ts';
import { deployment, ok, type RunningUpdate, type TestStack } from './state.ts';
import type { TestApp, TestResponse } from './test-app.ts';

/** Steps of an update and looks into the database that several test files share. */

export function complete(app: TestApp, update: RunningUpdate, status = 'succeeded'): Promise<TestResponse> {
  return app.call('POST', `${update.path}/complete`, { auth: update.lease, body: { status } });
}

export function cancel(app: TestApp, stack: TestStack, update: { path: string }): Promise<TestResponse> {
  return app.call('POST', `${update.path}/cancel`, { auth: stack.auth });
}

/** Saves a full checkpoint with `count` resources. */
export function saveState(app: TestApp, update: RunningUpdate, count: number, note = ''): Promise<TestResponse> {
  return app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: deployment(count, note) });
}

export function saveVerbatim(
  app: TestApp,
  update: RunningUpdate,
  sequenceNumber: number,
  untypedDeployment: object = deployment(1),
): Promise<TestResponse> {
  return app.call('PATCH', `${update.path}/checkpointverbatim`, {
    auth: update.lease,
    body: { version: 3, untypedDeployment, sequenceNumber },
  });
}

export function append(app: TestApp, update: RunningUpdate, entries: readonly object[]): Promise<TestResponse> {
  return app.call('PATCH', `${update.path}/journalentries`, { auth: update.lease, body: { entries } });
}

/** The two journal entries that add a resource, as the engine writes them. */
export function creation(
  sequenceId: number,
  name: string,
  stack: Pick<TestStack, 'project' | 'stack'>,
): [object, object] {
  const type = 'pulumi:index:Stash';
  const state = {
    urn: `urn:pulumi:${stack.stack}::${stack.project}::${type}::${name}`,
    custom: true,
    type,
    inputs: { input: name },
    outputs: { output: name },
  };
  return [
    beginning(sequenceId, sequenceId, { resource: { ...state, outputs: undefined }, type: 'creating' }),
    {
      version: 1,
      kind: 1,
      sequenceID: sequenceId + 1,
      operationID: sequenceId,
      removeOld: null,
      removeNew: null,
      state,
    },
  ];
}

/** A begin entry, with the pending operation when it has one. */
export function beginning(sequenceId: number, operationId: number, operation?: object): object {
  return {
    version: 1,
    kind: 0,
    sequenceID: sequenceId,
    operationID: operationId,
    removeOld: null,
    removeNew: null,
    operation,
  };
}

/** A success that removes the base's resource at `position`. */
export function removal(sequenceId: number, operationId: number, position: number): object {
  return {
    version: 1,
    kind: 1,
    sequenceID: sequenceId,
    operationID: operationId,
    removeOld: position,
    removeNew: null,
  };
}

/** Names of the resources in the stack's newest state, or in that of a version. */
export async function exportedNames(app: TestApp, stack: TestStack, version?: number): Promise<string[]> {
  const exported = await exportState(app, stack, version);
  return resourceNames(exported.json);
}

export function resourceNames(document: { deployment: { resources?: { urn: string }[] | null } }): string[] {
  return (document.deployment.resources ?? []).map(({ urn }) => urn.split('::').at(-1) as string);
}

export function exportState(app: TestApp, stack: TestStack, version?: number): Promise<TestResponse> {
  const suffix = version === undefined ? '' : `/${version}`;
  return ok(app.call('GET', `${stack.path}/export${suffix}`, { auth: stack.auth }));
}

export async function getStack(app: TestApp, stack: TestStack): Promise<TestResponse['json']> {
  return (await ok(app.call('GET', stack.path, { auth: stack.auth }))).json;
}

export async function getUpdate(
  app: TestApp,
  stack: TestStack,
  update: { path: string },
): Promise<TestResponse['json']> {
  return (await ok(app.call('GET', update.path, { auth: stack.auth }))).json;
}

/** Runs SQL beside the app, on a connection of its own. */
export async function query<R extends pg.QueryResultRow = Record<string, unknown>>(
  app: TestApp,
  text: string,
  values: readonly unknown[] = [],
): Promise<R[]> {
  const client = new pg.Client({ connectionString: app.database.url });
  await client.connect();
  try {
    return (await client.query<R>(text, [...values])).rows;
  } finally {
    await client.end();
  }
}

/** Lets the update's lease, or its wait for the start, be over since a second. */
export async function expire(app: TestApp, updateId: string): Promise<void> {
  await query(app, `update updates set expires_at = clock_timestamp() - interval '1 second' where id = $1`, [updateId]);
}

/** Waits until `condition` holds; fails after `limitMs`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  limitMs = 60_000,
): Promise<void> {
  const deadline = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Lets each insert into the table wait, its transaction open, until the gate is released or disposed of. */
export async function holdInserts(
  app: TestApp,
  table: string,
): Promise<
  AsyncDisposable & {
    [Symbol.asyncDispose](): Promise<void>;
    reached(sessions: number): Promise<void>;
    release(): Promise<void>;
  }
> {
  const client = new pg.Client({ connectionString: app.database.url });
  await client.connect();
  await client.query('select pg_advisory_lock(1)');
  await client.query(`create function hold() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock_shared(1); return new; end $$`);
  await client.query(`create trigger hold before insert on ${table} for each row execute function hold()`);
  let released = false;
  const release = async (): Promise<void> => {
    if (released) return;
    released = true;
    await client.query('select pg_advisory_unlock(1)');
  };
  return {
    /** Waits until as many sessions wait for a lock: at the gate, or behind one that does. */
    reached: (sessions) =>
      until(async () => {
        const { rows } = await client.query(
          `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        );
        return rows.length >= sessions;
      }, `${sessions} sessions wait`),
    release,
    [Symbol.asyncDispose]: async () => {
      await release();
      await client.query('drop function hold cascade');
      await client.end();
    },
  };
}

/** A file blob store whose puts wait at a gate while it is shut. */
export async function openGatedBlobs(directory: string): Promise<{
  readonly blobs: BlobStore;
  readonly waiting: () => number;
  shut(): void;
  open(): void;
}> {
  const store = await openBlobStore({ kind: 'files', directory });
  let gate: PromiseWithResolvers<void> | null = null;
  let waiting = 0;
  const blobs: BlobStore = {
    put: async (key, body, options) => {
      const stored = await store.put(key, body, options);
      waiting++;
      await gate?.promise;
      waiting--;
      return stored;
    },
    open: (key, options) => store.open(key, options),
    stat: (key) => store.stat(key),
    delete: (key) => store.delete(key),
    list: (prefix, after) => store.list(prefix, after),
    findAbsent: (keys) => store.findAbsent(keys),
    sweepUnfinished: (olderThanMs) => store.sweepUnfinished(olderThanMs),
    check: (timeoutMs) => store.check(timeoutMs),
    close: () => store.close(),
  };
  return {
    blobs,
    waiting: () => waiting,
    shut: () => {
      gate ??= Promise.withResolvers();
    },
    open: () => {
      gate?.resolve();
      gate = null;
    },
  };
}
