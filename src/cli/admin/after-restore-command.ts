import type { Command } from 'commander';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createSessionRepository } from '../../shared/identity/session-repository.ts';
import { createSignInLinkRepository } from '../../shared/identity/sign-in-link-repository.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { createHeldOutgoingRepository } from '../../shared/platform/outgoing/held-outgoing-repository.ts';
import { createRestorableStackRepository } from '../../shared/stacks/restorable-stack-repository.ts';
import { endRevokedLeases } from '../../shared/updates/end-revoked-leases.ts';
import { endLeasesAfterLoss } from '../../shared/updates/rollback-detection/rollback-monitor.ts';
import type { OpenSession } from './admin-session.ts';
import { operator } from './operator-name.ts';

export function addAfterRestoreCommand(admin: Command, open: OpenSession): void {
  admin
    .command('after-restore')
    .description(
      'end all running updates, whose saved state the restored database may lack, and all sessions; webhooks wait for take-over',
    )
    .action(() =>
      open().withDatabase(async (db) => {
        // First, so that a running server sends nothing more meanwhile.
        await createHeldOutgoingRepository(db).hold();
        console.log(endedText(await afterRestore(db)));
        console.log(revokedText);
        console.log('Webhooks, audit events, the bundle and scheduled backups wait until `holdfast admin take-over`.');
      }),
    );
}

/**
 * Ends all running updates, and the sessions and sign-in links that the database contains again, and prolongs the time to restore deleted
 * stacks.
 */
export async function afterRestore(db: Database): Promise<number> {
  await createSignInLinkRepository(db).removeEveryones();
  await createSessionRepository(db, { idleSeconds: 0, maxSeconds: 0 }).removeEveryones();
  await createRestorableStackRepository(db).prolong();
  return endUpdates(db);
}

export async function endUpdates(db: Database): Promise<number> {
  const order = { isOrdered: true, why: 'after-restore', source: operatorSource(operator()) };
  const ended = (await db.inTransaction((tx) => endLeasesAfterLoss(tx, order))) ?? 0;
  await endRevokedLeases(db);
  return ended;
}

/** A restored database does not contain these revocations. */
export const revokedText =
  'Everybody must sign in again. Repeat the revocations made since the backup: tokens, passwords, passkeys, members, users, issuers and grants. Events that were exported (`audit/events/`) name them.';

export function endedText(ended: number): string {
  return ended === 0
    ? 'No updates were running.'
    : `Ended ${ended} ${ended === 1 ? 'update' : 'updates'}. Their stacks need \`pulumi state repair\` and \`pulumi refresh\`.`;
}
