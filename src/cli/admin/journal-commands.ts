import type { Command } from 'commander';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { formatStackRef, parseQualifiedName } from '../../shared/stacks/names.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';
import { createCompactionRepository } from '../../shared/state/journal/compaction-repository.ts';
import { describeFault } from '../../shared/state/journal/journal-fault.ts';
import { reclaimStack } from '../../shared/state/reclaim-stack.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';
import { operator } from './operator-name.ts';
import { printLines } from './print-lines.ts';
import { VersionRestorer } from './version-restorer.ts';

export function addJournalCommands(admin: Command, open: OpenSession): void {
  admin
    .command('recompact')
    .description('replay an invalid journal again from the start')
    .argument('<organization/project/stack>')
    .action((name: string) => withStack(open, name, recompact));
  admin
    .command('accept')
    .description('accept the current state, without the skipped entries')
    .argument('<organization/project/stack>')
    .action((name: string) => withStack(open, name, accept));
  admin
    .command('restore')
    .description('make the state of that version the newest one')
    .argument('<organization/project/stack>')
    .argument('<version>')
    .action((name: string, version: string) =>
      withStack(open, name, (context, stack) => restore(context, stack, toVersion(version))),
    );
  admin
    .command('journal')
    .description('print the entries of a journal, one JSON object per line')
    .argument('<organization/project/stack>')
    .option('--version <version>', 'journal of this version (default: the newest available)')
    .action((name: string, { version }: { readonly version?: string }) =>
      withStack(open, name, (context, stack) =>
        printJournal(context, stack, version === undefined ? null : toVersion(version)),
      ),
    );
}

async function withStack(
  open: OpenSession,
  name: string,
  work: (context: AppContext, stack: StackRow) => Promise<void>,
): Promise<void> {
  await open().withContext(async (context) => {
    const ref = parseQualifiedName(name);
    const stack = ref && (await context.stacks.find(ref));
    if (!stack) throw refused(`there is no stack ${JSON.stringify(name)}; name it as organization/project/stack`);
    await work(context, stack);
  });
}

function toVersion(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw refused('a version is a positive whole number');
  return Number(text);
}

async function recompact(context: AppContext, stack: StackRow): Promise<void> {
  const faults = await findFaults(context, stack);
  if (faults.length === 0)
    throw refused(`no journal of ${formatStackRef(stack)} has an invalid or unknown entry, or lacks one`);
  const problems: string[] = [];
  for (const fault of faults) {
    const version = `Version ${fault.stackVersion} (update ${fault.updateId})`;
    await record(context.db, stack, 'stack.recompact', { updateId: fault.updateId });
    const compacted = await context.compactor.recompact(fault.updateId);
    const left = (await context.compactions.findFaults(stack.id)).find(({ updateId }) => updateId === fault.updateId);
    audit(context, stack, 'recompact', { updateId: fault.updateId, outcome: compacted });
    if (!compacted) {
      problems.push(`${version}: its journal is gone, or another process is compacting it; try again`);
    } else if (compacted.error !== null) {
      problems.push(
        `${version}: ${compacted.error}. ${compacted.entries} of ${fault.entryCount} entries can be replayed`,
      );
    } else if (!compacted.committed) {
      problems.push(`${version}: all entries can be replayed, but an update is running; try again when it has ended`);
    } else if (left) {
      problems.push(`${version}: ${left.compactionWarning}`);
    } else {
      console.log(`${version} now has all ${compacted.entries} entries of its journal.`);
      if (fault.stackVersion !== null && fault.stackVersion < stack.stackVersion)
        console.log(
          `Newer versions were built on its earlier state. They were not changed: if they did nothing, run \`holdfast admin restore ${formatStackRef(stack)} ${fault.stackVersion}\`.`,
        );
    }
  }
  if (problems.length > 0) throw refused(problems.join('\n  '));
}

async function accept(context: AppContext, stack: StackRow): Promise<void> {
  const faults = await findFaults(context, stack);
  if (faults.length === 0)
    throw refused(`no journal of ${formatStackRef(stack)} has an invalid or unknown entry, or lacks one`);
  const accepted = await context.db.inTransaction(async (tx) => {
    if (!(await createStackRepository(tx).lockById(stack.id))) throw refused('the stack was deleted meanwhile');
    const compactions = createCompactionRepository(tx);
    const updateIds: string[] = [];
    for (const fault of faults) if (await compactions.acceptFault(fault)) updateIds.push(fault.updateId);
    if (updateIds.length > 0) await record(tx, stack, 'stack.accept', { updateIds });
    return updateIds;
  });
  const left: string[] = [];
  for (const fault of faults) {
    const { compactedEntries, entryCount, updateId } = fault;
    if (!accepted.includes(updateId)) {
      left.push(`not accepted, because its update is running or it has just changed: ${describeFault(fault)}`);
      continue;
    }
    audit(context, stack, 'accept', { updateId, entries: compactedEntries, of: entryCount });
    console.log(`Accepted: ${describeFault(fault)}`);
  }
  if (left.length > 0) throw refused(left.join('\n  '));
  console.log(
    `${formatStackRef(stack)} accepts changes again. The journal is kept for ${context.config.journalGraceSeconds} s from now.`,
  );
}

async function restore(context: AppContext, stack: StackRow, version: number): Promise<void> {
  await findFaults(context, stack);
  const newVersion = await new VersionRestorer(context).restore(stack.id, version, (tx, to) =>
    record(tx, stack, 'stack.restore', { version, newVersion: to }),
  );
  audit(context, stack, 'restore', { version, newVersion });
  console.log(`The state of version ${version} is now version ${newVersion} of ${formatStackRef(stack)}.`);
}

async function printJournal(context: AppContext, stack: StackRow, version: number | null): Promise<void> {
  const found = await context.compactions.findWithJournal(stack.id, version);
  const update = found && (await context.updates.find(found.id));
  if (!update)
    throw refused(`${formatStackRef(stack)} has no journal${version === null ? '' : ` of version ${version}`}`);
  await record(context.db, stack, 'stack.journal', { updateId: update.id, stackVersion: update.stackVersion });
  console.error(
    `Journal of version ${update.stackVersion} (update ${update.id}): ${update.entryCount} entries, ${update.compactedEntries} in the state.`,
  );
  let entries = 0;
  const lines = async function* (): AsyncGenerator<string> {
    for await (const text of context.journal.readTexts(update.id)) {
      entries++;
      // JSON strings cannot contain line breaks; elsewhere, line breaks are equivalent to spaces.
      yield `${text.replace(/[\r\n]+/g, ' ')}\n`;
    }
  };
  if (!(await printLines(lines(), process.stdout))) return;
  if (entries < update.entryCount) throw refused(`the journal was deleted after ${entries} entries`);
}

/** The journals of ended updates are compacted first. */
async function findFaults(context: AppContext, stack: StackRow) {
  const { compactions, compactor, config } = context;
  const compact = (updateId: string): Promise<void> => compactor.compact(updateId);
  await reclaimStack(context, stack.id, config.leaseSeconds, compact, { admitsFault: true });
  return compactions.findFaults(stack.id);
}

/** Adds an event to the audit log: in the transaction of the change, or before work in several transactions. */
async function record(tx: Queryable, stack: StackRow, action: AuditAction, details: Readonly<Record<string, unknown>>) {
  const event = { action, organization: stack.organization, object: formatStackRef(stack) };
  await createAuditRepository(tx).insert(operatorSource(operator()), {
    ...event,
    details: { stackId: stack.id, ...details },
  });
}

function audit({ logger }: AppContext, stack: StackRow, action: string, facts: object): void {
  logger.warn(
    { audit: action, by: operator(), stack: formatStackRef(stack), stackId: stack.id, ...facts },
    'an operator ran a command',
  );
}

const refused = (message: string): CommandRefusedError => new CommandRefusedError(message);
