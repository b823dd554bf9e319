import { parseArgs } from 'node:util';
import { createIdentityRepository, type IdentityRepository } from '../shared/identity/identity-repository.ts';
import { createPeopleRepository, type PeopleRepository } from '../shared/identity/people-repository.ts';
import type { Database } from '../shared/platform/db/database.ts';
import { mapDatabaseError } from '../shared/platform/db/sqlstate.ts';
import type { Logger } from '../shared/platform/logger/logger.ts';
import { describeLoss } from '../shared/updates/lease.ts';
import { endLostUpdates } from '../shared/updates/lost-leases.ts';
import { operator } from './operator.ts';

/** Wrong in how the command was written, not in what was asked for. */
class UsageError extends Error {}

/** What a command works with: one transaction. */
export interface Work {
  readonly identity: IdentityRepository;
  readonly people: PeopleRepository;
  readonly values: Values;
  readonly positionals: readonly string[];
  /** Goes to stdout once all is committed. */
  say(sentence: string): void;
}

const options = {
  organization: { type: 'string' },
  role: { type: 'string' },
  'site-admin': { type: 'boolean' },
  description: { type: 'string' },
  days: { type: 'string' },
  user: { type: 'string' },
  force: { type: 'boolean' },
} as const;
type Option = keyof typeof options;
type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>['values'];

export interface Command {
  /** Names of the arguments. `...?` may be left out. */
  readonly args: readonly string[];
  readonly options: readonly Option[];
  /** Not of interest to those who read who changed what. */
  readonly isQuestion?: true;
  /** Returns what is wrong, and then nothing is changed; or null. */
  run(work: Work): Promise<string | null>;
}

/**
 * Runs one command in one transaction, then cancels the updates that lost their lease by it. Returns the exit code: 1 when
 * what was asked for is refused, 2 when it was not understood; nothing is changed in either case.
 */
export async function runCommand(
  open: () => Promise<Database>,
  command: Command & { readonly name: string },
  args: readonly string[],
  logger: Logger,
): Promise<number> {
  const { name } = command;
  let parsed: { values: Values; positionals: string[] };
  try {
    parsed = parse(command, args);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`holdfast: ${name}: ${error.message}; see holdfast admin help`);
    return 2;
  }
  const db = await open();
  try {
    const sentences: string[] = [];
    const problem = await runInTransaction(db, command, parsed, sentences);
    if (problem !== null) {
      console.error(`holdfast: ${problem}`);
      return 1;
    }
    for (const sentence of sentences) console.log(sentence);
    if (command.isQuestion) return 0;
    logger.warn({ audit: name, by: operator(), arguments: parsed.positionals, ...parsed.values }, 'operator');
    for (const { updateId, reason } of await endLostUpdates(db))
      if (reason !== 'lease-expired') console.log(`Update ${updateId} was cancelled: ${describeLoss(reason)}.`);
    return 0;
  } catch (error) {
    throw mapDatabaseError(error);
  } finally {
    await db.close();
  }
}

/** Rolls back what a command has done before it found that something is wrong. */
class Refusal extends Error {}

async function runInTransaction(
  db: Database,
  command: Command,
  parsed: { values: Values; positionals: string[] },
  sentences: string[],
): Promise<string | null> {
  try {
    await db.inTransaction(async (tx) => {
      // It may be run again, when Postgres asks for that.
      sentences.length = 0;
      const people = createPeopleRepository(tx);
      if (!command.isQuestion) await people.lock();
      const say = (sentence: string): void => void sentences.push(sentence);
      const problem = await command.run({ identity: createIdentityRepository(tx), people, ...parsed, say });
      if (problem !== null) throw new Refusal(problem);
    });
    return null;
  } catch (error) {
    if (error instanceof Refusal) return error.message;
    throw error;
  }
}

function parse(command: Command, args: readonly string[]): { values: Values; positionals: string[] } {
  let parsed: { values: Values; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...args], allowPositionals: true, options });
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')) throw new UsageError((error as Error).message);
    throw error;
  }
  for (const option of Object.keys(parsed.values) as Option[])
    if (!command.options.includes(option)) throw new UsageError(`there is no --${option} here`);
  for (const [at, name] of command.args.entries())
    if (!name.endsWith('?') && !parsed.positionals[at]) throw new UsageError(`<${name}> is missing`);
  const unexpected = parsed.positionals[command.args.length];
  if (unexpected !== undefined) throw new UsageError(`${JSON.stringify(unexpected)} is one argument too many`);
  return parsed;
}
