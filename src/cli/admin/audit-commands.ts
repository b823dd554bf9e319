import type { Command } from 'commander';
import { serverId } from '../../shared/audit/audit-repository.ts';
import { verifyAudit } from '../../shared/audit/verify-audit.ts';
import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import { openBlobs } from '../../shared/platform/blobs/open-blobs.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { createLogger } from '../../shared/platform/logger/logger.ts';
import { assertConfiguredStore } from '../../shared/state/blobs/store-ownership.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import { Progress } from '../output/progress.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';

const maxLines = 1_000;

export function addAuditCommands(admin: Command, open: OpenSession): void {
  const audit = admin.command('audit').description('check the audit log');
  audit
    .command('verify')
    .description(
      'find events that were changed, removed, reordered or inserted after they were chained; exits with 1 if there are any',
    )
    .option('--organization <organization>', 'only the chain of this organization')
    .addHelpText('after', '\nIt also needs the settings of the blob store.')
    .option(...jsonOption)
    .action(async ({ json, organization }: { readonly json?: true; readonly organization?: string }) => {
      const session = open();
      await session.withDatabase((db) => verify(db, session.config, { name: organization ?? null, json }));
    });
}

/** Throws CommandRefusedError if the log was tampered with. */
async function verify(
  db: Database,
  config: Config,
  { json, name }: { readonly name: string | null; readonly json: true | undefined },
): Promise<void> {
  const organization = name === null ? null : await createIdentityRepository(db).findOrganization(name);
  if (name !== null && !organization) throw new CommandRefusedError(`there is no organization ${JSON.stringify(name)}`);
  const blobs = await openBlobs({ config, db, logger: createLogger({ level: 'warn' }, process.stderr) });
  try {
    await assertConfiguredStore(config, { blobs, db });
    const progress = new Progress();
    const { chains, events, problems } = await verifyAudit({ blobs, db }, organization?.id ?? null, (done, total) =>
      progress.report('batches', done, total),
    );
    const found = problems.slice(0, maxLines).map(({ kind, organizationId, text }) => ({
      ...{ kind, text, organizationId: organizationId === serverId ? null : organizationId },
    }));
    const text = [
      `Checked ${events} chained events in ${chains} ${chains === 1 ? 'chain' : 'chains'}.`,
      ...(problems.length === 0 ? ['All events are unchanged.'] : []),
    ].join('\n');
    printResult('admin audit verify', { chains, events, problems: found }, { json, text });
    if (problems.length === 0) return;
    const lines = found.map(
      (each) => `  ${each.organizationId === null ? 'server' : `organization ${each.organizationId}`}: ${each.text}`,
    );
    const more = problems.length > maxLines ? [`  and ${problems.length - maxLines} more`] : [];
    throw new CommandRefusedError([`the audit log has been tampered with:`, ...lines, ...more].join('\n'));
  } finally {
    await blobs.close();
  }
}
