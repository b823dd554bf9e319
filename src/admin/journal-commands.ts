import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { AppContext } from '../shared/context.ts';
import { createCompactionRepository } from '../shared/journal/compaction-repository.ts';
import { describeFault } from '../shared/journal/journal-fault.ts';
import { AppError } from '../shared/platform/errors/errors.ts';
import { formatStackRef, parseQualifiedName } from '../shared/stacks/names.ts';
import { createStackRepository, type StackRow } from '../shared/stacks/stack-repository.ts';
import { reclaimStack } from '../shared/states/reclaim-stack.ts';
import { VersionRestorer } from '../shared/states/version-restorer.ts';
import { operator } from './operator.ts';

export const journalUsage = `  refold <organization/project/stack>              replays an invalid journal again, from its beginning
  accept <organization/project/stack>              accepts the state as it is, without the entries that were left out
  restore <organization/project/stack> <version>   makes the state of that version the newest one
  journal <organization/project/stack> [--version <version>]
                           prints the entries of a journal, one JSON object a line: of the newest that is kept, or of a version`;

/** Each returns what is wrong, or null. */
type Command = (context: AppContext, stack: StackRow, version: number | null) => Promise<string | null>;

const commands: Readonly<Record<string, Command>> = { refold, accept, restore, journal: printJournal };

export function isJournalCommand(command: string): boolean {
  return Object.hasOwn(commands, command);
}

/** Runs one of the commands on the stack named; returns what is wrong, or null. */
export async function runJournalCommand(
  context: AppContext,
  command: string,
  args: { readonly stack: string; readonly version: string | undefined },
): Promise<string | null> {
  const ref = parseQualifiedName(args.stack);
  const stack = ref && (await context.stacks.find(ref));
  if (!stack) return `there is no stack ${JSON.stringify(args.stack)}; name it as organization/project/stack`;
  if (args.version !== undefined && !/^[1-9]\d{0,8}$/.test(args.version)) return 'a version is a number from 1 on';
  try {
    const version = args.version === undefined ? null : Number(args.version);
    return (await commands[command]?.(context, stack, version)) ?? null;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}

async function refold(context: AppContext, stack: StackRow): Promise<string | null> {
  const faults = await findFaults(context, stack);
  if (faults.length === 0) return `no journal of ${formatStackRef(stack)} has an invalid or unknown entry`;
  const problems: string[] = [];
  for (const fault of faults) {
    const version = `Version ${fault.stackVersion} (update ${fault.updateId})`;
    const refolded = await context.compactor.recompact(fault.updateId);
    audit(context, stack, 'refold', { updateId: fault.updateId, outcome: refolded });
    if (!refolded) {
      problems.push(`${version}: its journal is gone, or another process is compacting it; try again`);
    } else if (refolded.error !== null) {
      problems.push(
        `${version}: ${refolded.error}. ${refolded.entries} of ${fault.entryCount} entries can be replayed`,
      );
    } else if (!refolded.committed) {
      problems.push(`${version}: all entries can be replayed, but an update is running; try again when it has ended`);
    } else if (refolded.warning !== null) {
      problems.push(`${version}: ${refolded.warning}`);
    } else {
      console.log(`${version} now has all ${refolded.entries} entries of its journal.`);
      if (fault.stackVersion !== null && fault.stackVersion < stack.stackVersion)
        console.log('Newer versions were built on its earlier state. They were not changed.');
    }
  }
  return problems.length === 0 ? null : problems.join('\n  ');
}

async function accept(context: AppContext, stack: StackRow): Promise<string | null> {
  const faults = await findFaults(context, stack);
  if (faults.length === 0) return `no journal of ${formatStackRef(stack)} has an invalid or unknown entry`;
  await context.db.inTransaction(async (tx) => {
    await createStackRepository(tx).lockById(stack.id);
    await createCompactionRepository(tx).acceptFaults(stack.id);
  });
  for (const fault of faults) {
    audit(context, stack, 'accept', {
      updateId: fault.updateId,
      entries: fault.compactedEntries,
      of: fault.entryCount,
    });
    console.log(`Accepted: ${describeFault(fault)}`);
  }
  console.log(
    `${formatStackRef(stack)} accepts changes again. The journal is kept for ${context.config.journalGraceSeconds} s from now.`,
  );
  return null;
}

async function restore(context: AppContext, stack: StackRow, version: number | null): Promise<string | null> {
  if (version === null) return 'restore needs a version';
  await findFaults(context, stack);
  const newVersion = await new VersionRestorer(context).restore(stack.id, version);
  audit(context, stack, 'restore', { version, newVersion });
  console.log(`The state of version ${version} is now version ${newVersion} of ${formatStackRef(stack)}.`);
  return null;
}

async function printJournal(context: AppContext, stack: StackRow, version: number | null): Promise<string | null> {
  const found = await context.compactions.findWithJournal(stack.id, version);
  const update = found && (await context.updates.find(found.id));
  if (!update) return `${formatStackRef(stack)} has no journal${version === null ? '' : ` of version ${version}`}`;
  console.error(
    `Journal of version ${update.stackVersion} (update ${update.id}): ${update.entryCount} entries, ${update.compactedEntries} in the state.`,
  );
  let entries = 0;
  const lines = async function* (): AsyncGenerator<string> {
    for await (const text of context.journal.readTexts(update.id)) {
      entries++;
      // Outside of strings, which cannot have them, line ends are as good as spaces.
      yield `${text.replace(/[\r\n]+/g, ' ')}\n`;
    }
  };
  try {
    await pipeline(Readable.from(lines()), process.stdout, { end: false });
  } catch (error) {
    // Who reads has seen enough.
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return null;
    throw error;
  }
  return entries < update.entryCount ? `the journal was deleted after ${entries} entries` : null;
}

/** The stack's journals at fault, after what has ended was put into its state. */
async function findFaults({ compactions, compactor, config, db }: AppContext, stack: StackRow) {
  const fold = (updateId: string): Promise<void> => compactor.compact(updateId);
  await reclaimStack(db, stack.id, config.leaseSeconds, fold, { admitsFault: true });
  return compactions.findFaults(stack.id);
}

function audit({ logger }: AppContext, stack: StackRow, action: string, facts: object): void {
  logger.warn({ audit: action, by: operator(), stack: formatStackRef(stack), stackId: stack.id, ...facts }, 'operator');
}
