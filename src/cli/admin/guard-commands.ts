import type { Command } from 'commander';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import { drainUpdate, parseReason } from '../../shared/journal/guards/drain-update.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { AppError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, parseQualifiedName } from '../../shared/stacks/names.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';
import { lockUpdate } from '../../shared/updates/update-closer.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';
import { operator } from './operator.ts';

/** Adds the commands that stop updates before they do more. */
export function addGuardCommands(admin: Command, open: OpenSession): void {
  admin
    .command('drain')
    .description('let the running update of a stack begin nothing more; what it has begun is finished and saved')
    .argument('<organization/project/stack>')
    .option('--reason <text>', 'for those who run the update', '')
    .action((name: string, { reason }: { readonly reason: string }) =>
      open().withDatabase((db) => refusing(() => drain(db, name, reason))),
    );
}

/** Errors that say what is wrong with a call say it to operators, too. */
async function refusing(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof AppError && error.status < 500) throw new CommandRefusedError(error.message);
    throw error;
  }
}

async function drain(db: Database, name: string, reason: string): Promise<void> {
  const stack = await findStack(db, name);
  const by = operator();
  const parsed = parseReason(reason);
  const text = await db.inTransaction(async (tx) => {
    const locked = stack.activeUpdateId === null ? null : await lockUpdate(tx, stack.activeUpdateId);
    if (!locked) throw new CommandRefusedError(`no update of ${formatStackRef(stack)} is running`);
    const { id: updateId, kind } = locked.update;
    if (!(await drainUpdate(tx, locked, { by, reason: parsed }))) return `Update ${updateId} was stopped before.`;
    await createAuditRepository(tx).insert(operatorSource(by), {
      action: 'update.drain',
      organization: stack.organization,
      object: formatStackRef(stack),
      updateId,
      details: { stackId: stack.id, kind, reason: parsed },
    });
    return `Update ${updateId} begins nothing more. It ends when what is running is finished and saved.`;
  });
  console.log(text);
}

async function findStack(db: Database, name: string): Promise<StackRow> {
  const ref = parseQualifiedName(name);
  const stack = ref && (await createStackRepository(db).find(ref));
  if (!stack) {
    throw new CommandRefusedError(`there is no stack ${JSON.stringify(name)}; name it as organization/project/stack`);
  }
  return stack;
}
