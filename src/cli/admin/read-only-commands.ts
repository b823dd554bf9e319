import type { Command } from 'commander';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { createReadOnlyRepository } from '../../shared/platform/read-only/read-only-repository.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';
import { operator } from './operator-name.ts';

const maxReasonChars = 500;

export function addReadOnlyCommands(admin: Command, open: OpenSession): void {
  const readOnly = admin
    .command('read-only')
    .description('refuse new updates and other writes, except writes of running updates');
  readOnly
    .command('on')
    .description('make the installation read-only, or change the reason; servers follow within two seconds')
    .requiredOption('--reason <text>', 'shown to everyone whose write is refused')
    .action(({ reason }: { readonly reason: string }) => open().withDatabase((db) => switchOn(db, reason)));
  readOnly
    .command('off')
    .description('accept all writes again')
    .action(() => open().withDatabase(switchOff));
  readOnly
    .command('status')
    .description('show whether the installation is read-only, and how many updates still run')
    .option(...jsonOption)
    .action(({ json }: { readonly json?: true }) =>
      open().withDatabase(async (db) => {
        const { mode, updates } = await createReadOnlyRepository(db).find();
        const found = { readOnly: mode, runningUpdates: updates };
        printResult('admin read-only status', found, { json, text: await describe(db) });
      }),
    );
}

async function switchOn(db: Database, given: string): Promise<void> {
  const reason = given.trim();
  if (reason === '' || reason.length > maxReasonChars)
    throw new CommandRefusedError(`the reason must have 1 to ${maxReasonChars} characters`);
  await db.inTransaction(async (tx) => {
    await createReadOnlyRepository(tx).switchOn(reason);
    await recordReadOnly(tx, { isReadOnly: true, reason });
  });
  console.log(await describe(db));
}

async function switchOff(db: Database): Promise<void> {
  await db.inTransaction(async (tx) => {
    if (await createReadOnlyRepository(tx).switchOff()) await recordReadOnly(tx, { isReadOnly: false });
  });
  console.log(await describe(db));
}

export function recordReadOnly(tx: Queryable, details: Readonly<Record<string, unknown>>) {
  const event = { action: 'installation.read-only', organization: null, object: 'installation', details } as const;
  return createAuditRepository(tx).insert(operatorSource(operator()), event);
}

async function describe(db: Database): Promise<string> {
  const { mode, updates } = await createReadOnlyRepository(db).find();
  const running = `${updates} ${updates === 1 ? 'update is' : 'updates are'} running`;
  return mode
    ? `Read-only since ${mode.since.toISOString()}: ${mode.reason}\n${running}.`
    : `The installation accepts all writes. ${running}.`;
}
