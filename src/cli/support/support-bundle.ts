import { open } from 'node:fs/promises';
import { release } from 'node:os';
import { createBackgroundTaskRepository } from '../../shared/platform/background-tasks/background-task-repository.ts';
import { type Config, holdfastVersion } from '../../shared/platform/config/config.ts';
import { Settings, secretSettings } from '../../shared/platform/config/settings.ts';
import { type GivenSettings, settingsOfEnvironment } from '../../shared/platform/config/settings-file.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { createProcessRepository } from '../../shared/platform/processes/process-repository.ts';
import { withTimeout } from '../../shared/platform/timeout/with-timeout.ts';
import { checkMs, sentenceOf } from '../doctor/check.ts';
import { createDatabaseFactsRepository } from '../doctor/database-facts-repository.ts';
import { runDoctor } from '../doctor/run-doctor.ts';
import { Visit } from '../doctor/visit.ts';
import { getOwn, ownUrl } from '../own-server.ts';
import { Redactor } from '../redaction/redactor.ts';

/** Size of the part at the end of a log file that is collected, in bytes. */
const maxLogBytes = 1024 * 1024;
const maxRows = 100;

/** The collected data, without secrets. A part that could not be collected contains the reason. */
export type SupportBundle = Readonly<Record<string, unknown>>;

/**
 * Collects the data for finding a fault: versions, settings, the findings of the doctor, and reports of database and server about their
 * work. Contains no states, and no secret that is known or looks like one.
 */
export async function collectSupportBundle(
  load: () => Config,
  { logFile = null, settings = settingsOfEnvironment() }: { logFile?: string | null; settings?: GivenSettings } = {},
): Promise<SupportBundle> {
  const [findings, log, parts] = await Promise.all([
    had(() => runDoctor(load)),
    logFile === null ? null : had(() => readEnd(logFile)),
    had(() => readParts(load)),
  ]);
  const { masterKeys = null, ...read } = parts as { masterKeys?: string | null };
  const redactor = new Redactor(settings, [masterKeys]);
  const { arch, platform, versions } = process;
  return {
    kind: 'holdfast.support-bundle',
    version: 1,
    createdAt: new Date().toISOString(),
    versions: { holdfast: holdfastVersion, node: versions.node, platform, arch, system: release() },
    settings: redactedSettings(settings, redactor),
    doctor: redactor.data(findings),
    ...(redactor.data(read) as object),
    log: Array.isArray(log) ? redactor.lines(log) : redactor.data(log),
  };
}

/** The names of all given settings, and the values that are not secret. */
function redactedSettings(settings: GivenSettings, redactor: Redactor): Readonly<Record<string, string>> {
  const known: readonly string[] = Object.keys(Settings.properties);
  const secret: readonly string[] = secretSettings;
  return Object.fromEntries(
    Object.entries(settings)
      .filter(([name]) => known.includes(name))
      .map(([name, value]) => [name, secret.includes(name) ? '[set]' : redactor.sentence(value)]),
  );
}

async function readParts(load: () => Config): Promise<object> {
  const config = load();
  await using visit = new Visit(config, checkMs);
  const db = await visit.database();
  const [metrics, ...rest] = await Promise.all([
    // From the server with these settings, if it runs here.
    had(() => readMetrics(config)),
    ...(db === null ? [] : databaseParts(db).map(async ([name, read]) => [name, await had(read)] as const)),
  ]);
  return { masterKeys: visit.masterKeys, database: Object.fromEntries(rest), metrics };
}

function databaseParts(db: Database): [string, () => Promise<unknown>][] {
  const facts = createDatabaseFactsRepository(db);
  return [
    ['postgres', () => facts.read()],
    ['migrations', () => facts.listMigrations()],
    ['sessions', () => facts.listSessions(maxRows)],
    ['jobs', () => facts.countJobs()],
    ['slowStatements', () => facts.listSlowStatements(maxRows)],
    ['tables', () => facts.listTables(maxRows)],
    ['processes', () => createProcessRepository(db).list(maxRows)],
    ['tasks', () => createBackgroundTaskRepository(db).list()],
  ];
}

async function readMetrics(config: Config): Promise<readonly string[]> {
  const { body, status } = await getOwn(ownUrl(config, '/metrics'), checkMs);
  if (status !== 200) throw new Error(`the server answers ${status}`);
  return body.split('\n');
}

async function readEnd(file: string): Promise<readonly string[]> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const start = Math.max(0, size - maxLogBytes);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(size, maxLogBytes)), { position: start });
    const lines = buffer.subarray(0, bytesRead).toString().split('\n');
    // A line without its beginning may contain a secret that is no longer recognizable.
    return start > 0 ? lines.slice(1) : lines;
  } finally {
    await handle.close();
  }
}

/** The result, or the reason why there is none. */
async function had(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await withTimeout(work(), 2 * checkMs, () => new Error('no answer'));
  } catch (error) {
    return { missing: sentenceOf(error) };
  }
}
