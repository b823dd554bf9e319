import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import type { InjectOptions } from 'fastify';
import { type App, buildApi } from '../../src/api/app.ts';
import { createApiContext } from '../../src/api/create-api-context.ts';
import type { ApiContext } from '../../src/api/platform/api-context.ts';
import type { Role } from '../../src/shared/access/roles.ts';
import { type ContextOverrides, createContext } from '../../src/shared/context.ts';
import { mintToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { createLogger, type Logger } from '../../src/shared/platform/logger/logger.ts';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { startInProcessJobs } from '../../src/workers/in-process-jobs.ts';
import { asApp, templateDatabase, withDatabase } from './global-setup.ts';
import { endKeptSessions, runInKeptSession } from './kept-sessions.ts';
import { configOf, type TestSettings } from './test-settings.ts';
import { until } from './until.ts';

export const cliAccept = 'application/vnd.pulumi+9';
export const contractAccept = 'application/vnd.service+8';

/** A database for one test, with all migrations. */
export interface TestDatabase extends AsyncDisposable {
  [Symbol.asyncDispose](): Promise<void>;
  /** For the user that runs the server and owns nothing. */
  readonly url: string;
  /** For the owner of the tables. */
  readonly ownerUrl: string;
}

/** Shared by all apps of a test file, so that they can share a database. */
export const masterKeys = KeyRing.generate();
const openApps = new Set<TestApp>();

/** Clones the template, or another database without sessions. Drop it with `await using` or in afterAll. */
export async function createTestDatabase(original?: TestDatabase): Promise<TestDatabase> {
  const server = process.env['HOLDFAST_TEST_DATABASE_URL'];
  if (server === undefined) throw new Error('No test database: run through the integration or contracts project');
  const name = `test_${process.pid}_${randomBytes(4).toString('hex')}`;
  const template = original ? new URL(original.url).pathname.slice(1) : templateDatabase;
  if (original) await endKeptSessions(original.ownerUrl);
  // A session may end some time after its client has; Postgres waits for 5 s.
  const sessions = `select 1 from pg_stat_activity where datname = '${template}' and backend_type = 'client backend'`;
  await until(async () => (await runOnServer(server, sessions)) === 0, `nobody uses ${template}`);
  // A copy through the log takes three times the CPU time.
  await runOnServer(server, `create database ${name} template ${template} strategy file_copy`);
  return {
    url: asApp(withDatabase(server, name)),
    ownerUrl: withDatabase(server, name),
    [Symbol.asyncDispose]: async () => void (await runOnServer(server, `drop database if exists ${name} with (force)`)),
  };
}

/** Returns how many rows there are. */
async function runOnServer(url: string, statement: string): Promise<number> {
  return (await runInKeptSession(url, statement)).rows.length;
}

export interface TestAppOptions {
  /** Apps that share both are like replicas. */
  readonly database?: TestDatabase;
  readonly dataDir?: string;
  readonly settings?: TestSettings;
  readonly overrides?: ContextOverrides;
  /** In the format of HOLDFAST_MASTER_KEYS. */
  readonly masterKeys?: string;
  /** Where log lines go; discarded by default. */
  readonly log?: { write(line: string): void };
}

export interface TestResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>;
  readonly text: string;
  readonly bytes: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly json: any;
}

/** API and job handlers, embedded in the test, with their own pool. */
export interface TestApp extends AsyncDisposable {
  [Symbol.asyncDispose](): Promise<void>;
  readonly app: App;
  readonly context: ApiContext;
  readonly database: TestDatabase;
  readonly dataDir: string;
  /** Creates the organization if it is missing. Returns an API token. */
  createUser(organization: string, role: Role, login?: string): Promise<string>;
  /** Calls the API like the CLI: JSON in, JSON out. `auth` is the whole Authorization header. */
  call(method: string, url: string, options?: CallOptions): Promise<TestResponse>;
}

export interface CallOptions {
  readonly auth?: string;
  /** An object is sent as JSON; a Buffer or string is sent unchanged. */
  readonly body?: object | Buffer | string;
  readonly accept?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** The client leaves. */
  readonly signal?: AbortSignal;
}

/** The roles of one app, started. */
export interface Roles {
  readonly context: ApiContext;
  /** Closes what the API's own lifecycle does not close. */
  readonly close: () => Promise<void>;
}

/** The inputs for starting roles. */
export interface RoleParts {
  readonly settings: TestSettings;
  readonly database: TestDatabase;
  readonly masterKeys: string;
  readonly logger: Logger;
  readonly overrides: ContextOverrides;
}

let fileSettings: TestSettings = {};

/** Settings of all apps of this test file from now on; an app's own settings override them. */
export function setSettings(settings: TestSettings): void {
  fileSettings = settings;
}

let startRoles: (parts: RoleParts) => Promise<Roles> = startEmbedded;

/** Makes `createTestApp` start its roles in another way, in this test file from now on. */
export function startRolesBy(start: (parts: RoleParts) => Promise<Roles>): void {
  startRoles = start;
}

/** Bodies pass to workers through Redis. */
export function isClustered(): boolean {
  return startRoles !== startEmbedded;
}

async function startEmbedded({ settings, database, masterKeys, logger, overrides }: RoleParts): Promise<Roles> {
  const secrets = { databaseUrl: database.url, masterKeys };
  const shared = await createContext(configOf(settings), secrets, { logger, ...overrides });
  return { context: await createApiContext(shared, startInProcessJobs(shared)), close: async () => {} };
}

/** Starts an app on a fresh database, or on the given one. Everything is closed by `await using`, or by disposing. */
export async function createTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const database = options.database ?? (await createTestDatabase());
  const dataDir = options.dataDir ?? mkdtempSync(path.join(tmpdir(), 'holdfast-test-'));
  const settings = {
    HOLDFAST_DATABASE_URL: database.url,
    HOLDFAST_DATA_DIR: dataDir,
    HOLDFAST_DATABASE_POOL_SIZE: '8',
    HOLDFAST_SHUTDOWN_SECONDS: '5',
    HOLDFAST_MANAGEMENT_LISTEN: 'same',
    // What deletes data is tested without waiting; deleted-stacks.test.ts and others set days.
    HOLDFAST_DELETED_STACK_DAYS: '0',
    ...fileSettings,
    ...options.settings,
  };
  const logger = createLogger({ level: options.log ? 'trace' : 'silent' }, options.log ?? { write: () => {} });
  const { context, close } = await startRoles({
    settings,
    database,
    masterKeys: options.masterKeys ?? masterKeys,
    logger,
    overrides: options.overrides ?? {},
  });
  const app = await buildApi(context);
  context.lifecycle.onClose('intake', 'http', () => app.close());
  await app.ready();
  const testApp: TestApp = {
    app,
    context,
    database,
    dataDir,
    createUser: (organization, role, login) => createUser(context, organization, role, login),
    call: (method, url, callOptions) => call(app, method, url, callOptions),
    [Symbol.asyncDispose]: async () => {
      openApps.delete(testApp);
      await context.lifecycle.close();
      await close();
      if (!options.database) await database[Symbol.asyncDispose]();
      if (!options.dataDir) rmSync(dataDir, { recursive: true, force: true });
    },
  };
  openApps.add(testApp);
  return testApp;
}

/** Another process of the service on the same data, for all tests of a file. */
export function testReplica(of: TestApp): TestApp {
  return testApp(() => ({ database: of.database, dataDir: of.dataDir }));
}

/** Started before the first test of a file and closed after the last. */
export function testApp(options: TestAppOptions | (() => TestAppOptions) = {}): TestApp {
  let started: TestApp | null = null;
  const running = (): TestApp => {
    if (!started) throw new Error('The app runs during the tests and their hooks only');
    return started;
  };
  beforeAll(async () => {
    started = await createTestApp(typeof options === 'function' ? options() : options);
  });
  const close = async (): Promise<void> => started?.[Symbol.asyncDispose]();
  afterAll(close);
  return {
    get app() {
      return running().app;
    },
    get context() {
      return running().context;
    },
    get database() {
      return running().database;
    },
    get dataDir() {
      return running().dataDir;
    },
    createUser: (organization, role, login) => running().createUser(organization, role, login),
    call: (method, url, callOptions) => running().call(method, url, callOptions),
    [Symbol.asyncDispose]: close,
  };
}

/** Apps that the test has not disposed of, for the leak guard. */
export function listOpenApps(): readonly TestApp[] {
  return [...openApps];
}

async function createUser(context: ApiContext, organization: string, role: Role, login?: string): Promise<string> {
  const { token, hash } = mintToken('test-');
  const { identity } = context;
  const { id } = await identity.ensureOrganization(organization);
  const user = await identity.ensureUser(login ?? `${role}-${randomBytes(4).toString('hex')}`);
  await identity.setMembership(id, user.id, role);
  await identity.insertToken({ userId: user.id, hash, description: 'test', expiresAt: null });
  return token;
}

async function call(app: App, method: string, url: string, options: CallOptions = {}): Promise<TestResponse> {
  const { auth, body, accept = cliAccept, headers = {}, signal } = options;
  const payload = body === undefined || Buffer.isBuffer(body) || typeof body === 'string' ? body : JSON.stringify(body);
  const response = await app.inject({
    method: method as NonNullable<InjectOptions['method']>,
    url,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(accept === null ? {} : { accept }),
      ...(auth === undefined ? {} : { authorization: auth }),
      ...headers,
    },
    ...(payload === undefined ? {} : { payload }),
    ...(signal === undefined ? {} : { signal }),
  });
  return {
    status: response.statusCode,
    headers: response.headers,
    text: response.payload,
    bytes: response.rawPayload,
    get json() {
      return JSON.parse(response.payload);
    },
  };
}
