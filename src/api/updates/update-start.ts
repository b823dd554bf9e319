import type { Config } from '../../shared/platform/config/config.ts';
import { mintToken } from '../../shared/platform/crypto/secret-token.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ConflictError } from '../../shared/platform/errors/errors.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { createStackRepository } from '../../shared/stacks/stack-repository.ts';
import { parseTags, readTags } from '../../shared/stacks/tags.ts';
import { createChangeLimitRepository } from '../../shared/state/journal/change-limits/change-limit-repository.ts';
import { JournalNeededError } from '../../shared/state/journal/change-limits/change-limits.ts';
import { assertNoFault } from '../../shared/state/journal/journal-fault.ts';
import { createJournalRepository } from '../../shared/state/journal/journal-repository.ts';
import { describeLoss, isLeaseLoss } from '../../shared/updates/lease.ts';
import { createLockedUpdateRepository } from '../../shared/updates/locked-update-repository.ts';
import { lockUpdate } from '../../shared/updates/update-closer.ts';
import { createUpdateRepository } from '../../shared/updates/update-repository.ts';
import type { UpdateKind } from '../../shared/updates/update-state.ts';
import { holdAccess } from '../access/held-access.ts';
import { assertPermission } from '../access/stack-access.ts';
import { assertMayChangeTags } from '../access/tag-changes.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import { updateNotFound } from './update-errors.ts';

export interface StartRequest {
  /** Replace the stack's tags; null or undefined keeps them. */
  readonly tags: unknown;
  /** The newest journal version that the client can write; 0 for none. */
  readonly journalVersion: number;
}

export interface StartedUpdate {
  readonly token: string;
  readonly expiresAt: Date;
  /** The version that this update will create; for previews, the stack's current version. */
  readonly stackVersion: number;
  /** The version that the update starts from. */
  readonly baseStackVersion: number;
  readonly journalVersion: number;
}

/** A start that passed all checks possible outside its transaction. */
interface PreparedStart {
  /**
   * Starts the update in one statement, which also records that in the audit log. Null, and nothing is changed, if there is more to
   * decide, as there seldom is; `run` then does that.
   */
  readonly runAtOnce: (
    updateId: string,
    audit: AuditTrail,
  ) => Promise<{ readonly kind: UpdateKind; readonly started: StartedUpdate } | null>;
  /** Starts the update in a transaction. */
  readonly run: (tx: Queryable, updateId: string) => Promise<StartedUpdate>;
}

/** Prepares the start of an update. Throws InvalidRequestError for invalid tags. */
export function prepareStart(
  { config, db }: ApiContext,
  { ref, caller, request }: { ref: StackRef; caller: Caller; request: StartRequest },
): PreparedStart {
  const tags = request.tags === null || request.tags === undefined ? null : parseTags(request.tags);
  const tagsText = tags && JSON.stringify(tags);
  const lease = mintToken('lease-');
  const runAtOnce: PreparedStart['runAtOnce'] = async (updateId, audit) => {
    const begun = await audit.recordWith((source, action) =>
      createLockedUpdateRepository(db).start(
        {
          id: updateId,
          ref,
          tokenId: caller.tokenId,
          tags: tagsText,
          leaseHash: lease.hash,
          leaseSeconds: config.leaseSeconds,
          maxSeconds: config.updateSeconds,
          withJournal: usesJournal(config, request.journalVersion),
        },
        source,
        action,
      ),
    );
    if (!begun) return null;
    const { expiresAt, headVersion, journalVersion, kind, stackVersion } = begun;
    const started = {
      token: lease.token,
      expiresAt,
      stackVersion: stackVersion ?? headVersion,
      baseStackVersion: headVersion,
      journalVersion,
    };
    return { kind, started };
  };
  const run: PreparedStart['run'] = async (tx, updateId) => {
    const access = await holdAccess(tx, ref.organization, caller);
    const locked = await lockUpdate(tx, updateId);
    if (!locked) throw updateNotFound(updateId);
    const { stack, update } = locked;
    assertPermission(access, stack, readTags(stack.tags), update.dryRun ? 'preview' : 'write');
    if (update.status !== 'not started' || update.expired) {
      throw new ConflictError(
        update.status === 'running'
          ? 'This update is already running'
          : `This update has ended: ${
              isLeaseLoss(update.endReason)
                ? describeLoss(update.endReason)
                : update.status === 'not started' || update.endReason === 'lease-expired'
                  ? 'it was not started in time'
                  : update.status
            }`,
      );
    }
    if (!update.dryRun) await assertNoFault(tx, stack.id);
    if (tags !== null && tagsText !== null && tagsText !== stack.tags) {
      await assertMayChangeTags(tx, access, stack, tags);
      await createStackRepository(tx).setTags(stack.id, tagsText);
    }
    const writesState = update.exclusive && !update.dryRun;
    const journalVersion = writesState && usesJournal(config, request.journalVersion) ? 1 : 0;
    if (writesState && journalVersion === 0 && update.isLimited) {
      const changeLimit = await createChangeLimitRepository(tx).find(updateId);
      if (changeLimit?.limits?.needsJournal) throw new JournalNeededError(changeLimit.limits);
    }
    const expiresAt = await createUpdateRepository(tx).start({
      id: updateId,
      leaseHash: lease.hash,
      leaseSeconds: config.leaseSeconds,
      tokenId: caller.tokenId,
      maxSeconds: config.updateSeconds,
      stackVersion: writesState ? stack.stackVersion + 1 : null,
      baseStackVersion: stack.stackVersion,
      journalVersion,
      checkpointId: stack.checkpointId,
    });
    if (journalVersion > 0) await createJournalRepository(tx).open(updateId);
    return {
      token: lease.token,
      expiresAt,
      stackVersion: stack.stackVersion + (writesState ? 1 : 0),
      baseStackVersion: stack.stackVersion,
      journalVersion,
    };
  };
  return { runAtOnce, run };
}

/** `offered` is the newest version of the journal that the client knows; it sends what the response names. */
function usesJournal({ checkpointMode }: Config, offered: number): boolean {
  return offered >= 1 && (checkpointMode === 'journal' || checkpointMode === 'auto');
}
