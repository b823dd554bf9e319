import { parseArgs } from 'node:util';
import { reachDatabase } from './admin/admin-database.ts';
import { isJournalCommand, journalUsage, runJournalCommand } from './admin/journal-commands.ts';
import { isKeyCommand, runKeyCommand } from './admin/key-commands.ts';
import { isPeopleCommand, peopleUsage, runPeopleCommand } from './admin/people-commands.ts';
import { isQuotaCommand, quotaUsage, runQuotaCommand } from './admin/quota-commands.ts';
import { createContext } from './shared/context.ts';
import type { Config } from './shared/platform/config/config.ts';
import { readMasterKeys } from './shared/platform/config/data-dir.ts';
import { type Database, openDatabase } from './shared/platform/db/database.ts';
import { createLogger } from './shared/platform/logger/logger.ts';

const usage = `Usage: holdfast admin <command>

${peopleUsage}

Keys and stored states:

  rotate-data-keys --stack <organization>/<project>/<stack> | --organization <organization> | --documents | --all
                           gives stacks, or documents in the blob store, new data keys; existing ciphertexts stay readable
  rewrap-keys              wraps all data keys with the first master key, so that the others can be retired
  check-keys               shows which data keys the master keys unwrap, and names the stacks whose keys they do not
  scrub [--stack <organization>/<project>/<stack>]
                           reads all stored checkpoints now, and repairs damaged ones where it can; exits with 1 when one stays
                           damaged. Needs the settings of the blob store, too
  reconcile [--adopt-all]  compares the blob store with the database now, as the servers do regularly. Needs the settings
                           of the blob store, too

Quotas, see "Limits and quotas" in docs/operations.md:

${quotaUsage}

States and journals, see "A journal that cannot be replayed" in docs/operations.md:

${journalUsage}

The commands connect to the database: HOLDFAST_DATABASE_URL, or the embedded one of a running server (HOLDFAST_DATA_DIR).`;

/** Runs one admin command; returns the exit code. */
export async function runAdmin(config: Config, args: string[]): Promise<number> {
  const [command, ...rest] = args;
  if (command === undefined || command === 'help') {
    console.log(usage);
    return command === undefined ? 2 : 0;
  }
  if (command === 'reconcile') return (await import('./admin/reconcile.ts')).runReconcile(config, rest);
  if (isQuotaCommand(command)) return runQuotaCommand(config, command, rest);
  if (command === 'scrub') return (await import('./admin/scrub.ts')).runScrub(config, rest);
  if (isKeyCommand(command)) return runKeyCommand(config, command, rest);
  // Standard output is for what was asked.
  const logger = createLogger({ level: config.logLevel }, process.stderr);
  const open = async (): Promise<Database> =>
    openDatabase({ ...config.database, url: await reachDatabase(config, logger), poolSize: 2 });
  if (isPeopleCommand(command)) return runPeopleCommand(open, command, rest, logger);
  const { values, positionals } = parseArgs({
    args: rest,
    allowPositionals: true,
    options: { version: { type: 'string' } },
  });
  if (isJournalCommand(command)) {
    const url = await reachDatabase(config, logger);
    const version = command === 'restore' ? positionals[1] : values.version;
    return exitCode(await withContext(config, url, command, { stack: positionals[0] ?? '', version }));
  }
  console.error(`holdfast: there is no admin command ${JSON.stringify(command)}\n\n${usage}`);
  return 2;
}

function exitCode(problem: string | null): number {
  if (problem === null) return 0;
  console.error(`holdfast: ${problem}`);
  return 1;
}

/** The log goes to stderr, since stdout is what the operator asked for. */
async function withContext(
  config: Config,
  databaseUrl: string,
  command: string,
  args: { stack: string; version: string | undefined },
): Promise<string | null> {
  const logger = createLogger({ level: config.logLevel }, process.stderr);
  const masterKeys = config.secrets.masterKeys ?? readMasterKeys(config.dataDir);
  await using context = await createContext(config, { databaseUrl, masterKeys }, { logger });
  return await runJournalCommand(context, command, args);
}
