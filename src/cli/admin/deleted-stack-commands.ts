import type { Command } from 'commander';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import {
  createRestorableStackRepository,
  type DeletedStackPosition,
} from '../../shared/stacks/restorable-stack-repository.ts';
import { DeletedStackRestorer } from '../../shared/state/deleted-stack-restorer.ts';
import type { Printed } from '../output/output-types.ts';
import { jsonOption, type outputs, printResult } from '../output/outputs.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';
import { operator } from './operator-name.ts';

const pageSize = 500;

interface OrganizationOptions {
  readonly organization: string;
}

interface RestoreOptions extends OrganizationOptions {
  readonly project?: string;
  readonly stack?: string;
}

export function addDeletedStackCommands(admin: Command, open: OpenSession): void {
  const deleted = admin.command('deleted').description('list, restore and purge deleted stacks');
  deleted
    .command('list')
    .description('list deleted stacks with their ids and times')
    .requiredOption('--organization <name>', 'organization')
    .option(...jsonOption)
    .action((options: OrganizationOptions & { readonly json?: true }) =>
      open().withDatabase((db) => list(db, options)),
    );
  deleted
    .command('restore')
    .description('restore a stack, with its history')
    .argument('<id>', 'as listed')
    .requiredOption('--organization <name>', 'organization')
    .option('--project <name>', 'another project')
    .option('--stack <name>', 'another name')
    .action((id: string, options: RestoreOptions) => restore(open, id, options));
  deleted
    .command('purge')
    .description('delete a stack for good: its data keys at once, its data soon after')
    .argument('<id>', 'as listed')
    .requiredOption('--organization <name>', 'organization')
    .action((id: string, { organization }: OrganizationOptions) => purge(open, id, organization));
}

async function list(
  db: Database,
  { json, organization }: OrganizationOptions & { readonly json?: true },
): Promise<void> {
  if (!(await createIdentityRepository(db).findOrganization(organization)))
    throw new CommandRefusedError(`there is no organization ${JSON.stringify(organization)}`);
  const stacks = createRestorableStackRepository(db);
  const found: Printed<(typeof outputs)['admin deleted list']>['stacks'][number][] = [];
  let before: DeletedStackPosition | null = null;
  do {
    const rows = await stacks.list(organization, before, pageSize);
    for (const { deletedAt, deletedBy, id, project, resourceCount, restorableUntil, stack } of rows)
      found.push({ id, project, stack, deletedAt, deletedBy: deletedBy || null, restorableUntil, resourceCount });
    before = rows.length < pageSize ? null : (rows.at(-1) ?? null);
  } while (before !== null);
  const lines = found.map(({ deletedAt, deletedBy, id, project, resourceCount, restorableUntil, stack }) =>
    [
      id,
      formatStackRef({ organization, project, stack }),
      `deleted ${deletedAt.toISOString()} by ${deletedBy ?? 'unknown'}`,
      `until ${restorableUntil?.toISOString() ?? 'now'}`,
      `${resourceCount} resources`,
    ].join('  '),
  );
  printResult('admin deleted list', { stacks: found }, { json, text: lines.join('\n') });
}

async function restore(open: OpenSession, id: string, { organization, project, stack }: RestoreOptions): Promise<void> {
  assertId(id);
  await open().withContext(async (context) => {
    const to = await new DeletedStackRestorer(context).restore(
      { organization, id, project: project ?? null, stack: stack ?? null, requestedBy: null },
      {
        hold: async () => {},
        record: (tx, from, name) =>
          record(tx, 'stack.undelete', from, { deletedAt: from.deletedAt.toISOString(), to: formatStackRef(name) }),
      },
    );
    context.logger.warn(
      { audit: 'deleted restore', by: operator(), stackId: id, to: formatStackRef(to) },
      'an operator ran a command',
    );
    console.log(`Restored ${formatStackRef(to)}.`);
  });
}

async function purge(open: OpenSession, id: string, organization: string): Promise<void> {
  assertId(id);
  await open().withContext(async (context) => {
    const from = await new DeletedStackRestorer(context).purge(
      { organization, id },
      { hold: async () => {}, record: (tx, stack) => record(tx, 'stack.purge', { ...stack, id }, {}) },
    );
    context.logger.warn({ audit: 'deleted purge', by: operator(), stackId: id }, 'an operator ran a command');
    console.log(`${formatStackRef(from)} can no longer be restored. Its data is deleted by the next sweeps.`);
  });
}

function assertId(id: string): void {
  if (!isUuid(id))
    throw new CommandRefusedError('name the stack by its id, as `holdfast admin deleted list` prints it');
}

async function record(
  tx: Queryable,
  action: 'stack.undelete' | 'stack.purge',
  stack: StackRef & { readonly id: string },
  details: Readonly<Record<string, unknown>>,
): Promise<void> {
  await createAuditRepository(tx).insert(operatorSource(operator()), {
    action,
    organization: stack.organization,
    object: formatStackRef(stack),
    details: { stackId: stack.id, ...details },
  });
}
