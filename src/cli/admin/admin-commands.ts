import type { Command } from 'commander';
import type { CommandRun } from '../command-run.ts';
import { AdminSession, type OpenSession } from './admin-session.ts';
import { addAfterRestoreCommand } from './after-restore-command.ts';
import { addApprovalCommands } from './approval-commands.ts';
import { addAuditCommands } from './audit-commands.ts';
import { addDeletedStackCommands } from './deleted-stack-commands.ts';
import { addFreezeCommands } from './freeze-commands.ts';
import { addFsckCommand } from './fsck-command.ts';
import { addGrantCommands } from './grant-commands.ts';
import { addHoldCommands } from './hold-commands.ts';
import { addIndexCommand } from './index-command.ts';
import { addIssuerCommands } from './issuer-commands.ts';
import { addJournalCommands } from './journal-commands.ts';
import { addKeyCommands } from './key-commands.ts';
import { addPeopleCommands } from './people-commands.ts';
import { addQuotaCommands } from './quota-commands.ts';
import { addReadOnlyCommands } from './read-only-commands.ts';
import { addReconcileCommand } from './reconcile-command.ts';
import { addRuleCommands } from './rule-commands.ts';
import { addScrubCommand } from './scrub-command.ts';
import { addSiteCommands } from './site-commands.ts';
import { addTakeOverCommand } from './take-over-command.ts';
import { addTeamCommands } from './team-commands.ts';
import { addTokenCommands } from './token-commands.ts';
import { addUserCommands } from './user-commands.ts';

export function addAdminCommands(admin: Command, run: CommandRun): void {
  const open: OpenSession = () => new AdminSession(run.loadConfig(), run);
  admin.addHelpText(
    'after',
    `
When a token, its user or a membership is removed, the updates that run with it are cancelled. The state they have saved
is kept.

The commands access the database directly: HOLDFAST_DATABASE_URL, or the embedded one of a running server (HOLDFAST_DATA_DIR).
See docs/deploy.md for quotas ("Limits and quotas") and docs/runbook.md for journals ("HoldfastJournalInvalid").`,
  );
  admin.commandsGroup('Organizations, users and tokens:');
  addPeopleCommands(admin, open);
  addTokenCommands(admin, open);
  addUserCommands(admin, open);
  admin.commandsGroup('Teams and grants:');
  addTeamCommands(admin, open);
  addGrantCommands(admin, open);
  admin.commandsGroup('CI systems:');
  addIssuerCommands(admin, open);
  admin.commandsGroup('Rules for updates:');
  addRuleCommands(admin, open);
  addFreezeCommands(admin, open);
  addApprovalCommands(admin, open);
  addHoldCommands(admin, open);
  admin.commandsGroup('Quotas:');
  addQuotaCommands(admin, open);
  admin.commandsGroup('Keys:');
  addKeyCommands(admin, open);
  admin.commandsGroup('Audit log:');
  addAuditCommands(admin, open);
  admin.commandsGroup('States and journals:');
  addJournalCommands(admin, open);
  addDeletedStackCommands(admin, open);
  addReadOnlyCommands(admin, open);
  addFsckCommand(admin, open, run);
  addScrubCommand(admin, open, run);
  addReconcileCommand(admin, open);
  addAfterRestoreCommand(admin, open);
  addTakeOverCommand(admin, open);
  addSiteCommands(admin, open);
  addIndexCommand(admin, open);
}
