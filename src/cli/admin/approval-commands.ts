import type { Command } from 'commander';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { AppError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, parseQualifiedName } from '../../shared/stacks/names.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';
import { drainUpdate } from '../../shared/state/journal/change-limits/drain-update.ts';
import { createApprovalRepository } from '../../shared/updates/approvals/approval-repository.ts';
import { approvableKinds, parseApproval, parseKind } from '../../shared/updates/approvals/approvals.ts';
import { lockUpdate } from '../../shared/updates/cancel-or-expire.ts';
import { parseCommit } from '../../shared/updates/commit.ts';
import { parseReason } from '../../shared/updates/reason.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';
import { operator } from './operator-name.ts';

export function addApprovalCommands(admin: Command, open: OpenSession): void {
  admin
    .command('drain')
    .description(
      'drain the running update of a stack: it starts no new steps, and the steps in progress are finished and saved',
    )
    .argument('<organization/project/stack>')
    .option('--reason <text>', 'shown to the user who runs the update')
    .action((name: string, { reason = '' }: { readonly reason?: string }) =>
      open().withDatabase((db) => refusing(() => drain(db, name, reason))),
    );
  admin
    .command('approve')
    .description('let runs of a commit exceed change limits and protected types for a limited time')
    .argument('<organization/project/stack>')
    .argument('<commit>', 'the full hash of the commit')
    .requiredOption('--reason <text>', 'for the record (required)')
    .option('--kind <kind>', approvableKinds.join(', '), 'update')
    .option('--minutes <minutes>', 'how long', '60')
    .action((name: string, commit: string, given: Given) =>
      open().withDatabase((db) => refusing(() => approve(db, name, commit, given))),
    );
  admin
    .command('approvals')
    .description('list the requested and given approvals of a stack, newest first')
    .argument('<organization/project/stack>')
    .option(...jsonOption)
    .action((name: string, { json }: { readonly json?: true }) =>
      open().withDatabase((db) => listApprovals(db, name, json)),
    );
}

/** Shows errors with messages for API clients to operators, too. */
async function refusing(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof AppError && error.status < 500) throw new CommandRefusedError(error.message);
    throw error;
  }
}

interface Given {
  readonly reason: string;
  readonly kind: string;
  readonly minutes: string;
}

async function approve(db: Database, name: string, commit: string, given: Given): Promise<void> {
  const { organization, ...stack } = await findStack(db, name);
  const by = operator();
  const subject = { stackId: stack.id, kind: parseKind(given.kind), commit: parseCommit(commit) };
  const approval = parseApproval({ reason: given.reason, minutes: Number(given.minutes) });
  await db.inTransaction(async (tx) => {
    const approvals = createApprovalRepository(tx);
    const id = (await approvals.findId(subject)) ?? (await approvals.ask(subject, actor(by), ''));
    await approvals.approve(id, actor(by), approval);
    await createAuditRepository(tx).insert(operatorSource(by), {
      action: 'approval.give',
      organization,
      object: name,
      details: { ...subject, approvalId: id, ...approval },
    });
  });
  console.log(`Approved: runs of ${commit} (${subject.kind}) on ${name} pass for ${approval.seconds / 60} minutes.`);
}

const actor = (login: string) => ({ login, userId: null, tokenId: null });

async function listApprovals(db: Database, name: string, json: true | undefined): Promise<void> {
  const stack = await findStack(db, name);
  const rows = await createApprovalRepository(db).list(stack.id, 100);
  const approvals = rows.map(
    ({ approvedBy, askedAt, askedBy, commit, expiresAt, id, isValid, kind, reason, request }) => ({
      ...{ id, kind, commit, request, askedAt, askedBy, approvedBy, reason, expiresAt, isValid },
    }),
  );
  const lines = approvals.map(({ approvedBy, askedAt, askedBy, commit, expiresAt, isValid, kind, reason, request }) => {
    const given =
      approvedBy === null || expiresAt === null
        ? 'not approved'
        : `approved by ${approvedBy} (${reason}) ${isValid ? 'until' : 'but ended, granted until'} ${expiresAt.toISOString()}`;
    return `${commit}  ${kind}  asked ${askedAt.toISOString()} by ${askedBy}  ${given}  ${request}`;
  });
  printResult('admin approvals', { approvals }, { json, text: lines.join('\n') });
}

async function drain(db: Database, name: string, reason: string): Promise<void> {
  const stack = await findStack(db, name);
  const by = operator();
  const parsed = parseReason(reason);
  const text = await db.inTransaction(async (tx) => {
    const locked = stack.activeUpdateId === null ? null : await lockUpdate(tx, stack.activeUpdateId);
    if (!locked) throw new CommandRefusedError(`no update of ${formatStackRef(stack)} is running`);
    const { id: updateId, kind } = locked.update;
    if (!(await drainUpdate(tx, locked, { by, reason: parsed }))) return `Update ${updateId} was already stopped.`;
    await createAuditRepository(tx).insert(operatorSource(by), {
      action: 'update.drain',
      organization: stack.organization,
      object: formatStackRef(stack),
      updateId,
      details: { stackId: stack.id, kind, reason: parsed },
    });
    return `Update ${updateId} starts no new steps. It ends when the steps in progress are finished and saved.`;
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
