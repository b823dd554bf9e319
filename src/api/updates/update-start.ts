import { permits } from '../../shared/access/permissions.ts';
import { permissionsOn } from '../../shared/identity/locked-rights.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import { mintToken } from '../../shared/platform/crypto/secret-token.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ConflictError, UnavailableError } from '../../shared/platform/errors/errors.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { createStackRepository } from '../../shared/stacks/stack-repository.ts';
import { parseTags, readTags, type Tags } from '../../shared/stacks/tags.ts';
import { createChangeLimitRepository } from '../../shared/state/journal/change-limits/change-limit-repository.ts';
import { JournalNeededError } from '../../shared/state/journal/change-limits/change-limits.ts';
import { newestJournalVersion } from '../../shared/state/journal/journal-batch.ts';
import { assertNoFault } from '../../shared/state/journal/journal-fault.ts';
import type { Reclaim } from '../../shared/state/reclaim-stack.ts';
import { describeLoss, isLeaseLoss } from '../../shared/updates/lease-loss.ts';
import {
  createLockedUpdateRepository,
  type NewStart,
  type Start,
  type Started,
} from '../../shared/updates/locked-update-repository.ts';
import { createUpdateRepository } from '../../shared/updates/update-repository.ts';
import { lockAccess, lostDuringCall } from '../access/locked-access.ts';
import { deniedBy } from '../access/stack-access.ts';
import { changeTags } from '../access/tag-changes.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import { withoutInvalidQueueTags } from './queue/queue-tags.ts';
import { tagsAfterStart } from './start-tags.ts';
import { updateNotFound } from './update-not-found.ts';

type MintedToken = ReturnType<typeof mintToken>;

/** The hash of a new lease is stored once an update has it. */
export const mintLease = (): MintedToken => mintToken('lease-');

export interface StartRequest {
  /** The tags that replace the stack's tags (see tagsAfterStart); null or undefined keeps them. */
  readonly tags: unknown;
  /** The newest journal version that the client can write; 0 for none. */
  readonly journalVersion: number;
  /** A new one by default. */
  readonly lease?: MintedToken;
}

export interface StartedUpdate {
  readonly token: string;
  readonly expiresAt: Date;
  /** The version that this update will create; for previews, the stack's current version. */
  readonly stackVersion: number;
  readonly baseStackVersion: number;
  readonly journalVersion: number;
  /** The tags that the stack now has, as JSON text; null: the start has no tags. */
  readonly tags: string | null;
  /** Why the stack does not have all tags of the start, for the user; empty: it has all. */
  readonly warnings: readonly string[];
}

type TagResult = Pick<StartedUpdate, 'tags' | 'warnings'>;

export type PreparedStart = (updateId: string, audit: AuditTrail) => Promise<StartedUpdate>;

/** The SQL function start_update decides whether the update may start. `reclaim` prepares the stack if the function asks for it. */
export function prepareStart(
  { config, db, metrics }: ApiContext,
  { ref, caller, request }: { ref: StackRef; caller: Caller; request: StartRequest },
  reclaim: Reclaim,
): PreparedStart {
  const tags = request.tags === null || request.tags === undefined ? null : parseTags(request.tags);
  const lease = request.lease ?? mintLease();
  const attempt = (
    on: Queryable,
    id: string,
    audit: AuditTrail,
    given: Pick<NewStart, 'isPrepared' | 'tags'>,
  ): Promise<Start> =>
    audit.recordWith(
      (source, action) =>
        createLockedUpdateRepository(on).start(
          {
            ...{ id, ref, tokenId: caller.tokenId, ...given },
            leaseHash: lease.hash,
            leaseSeconds: config.leaseSeconds,
            maxSeconds: config.updateSeconds,
            withJournal: usesJournal(config, request.journalVersion),
          },
          source,
          action,
        ),
      ({ outcome }) => outcome === 'started',
    );
  const assertStarted = async (on: Queryable, id: string, start: Start): Promise<Started> => {
    if (start.outcome !== 'started') throw await refusal(on, { ref, updateId: id }, start);
    return start;
  };
  /** Used for changed tags: the SQL function does not know whether the caller may change the tags of the stack. */
  const startWith = (given: Tags, id: string, audit: AuditTrail): Promise<[Started, TagResult]> =>
    db.inTransaction(async (tx) => {
      const started = await assertStarted(tx, id, await attempt(tx, id, audit, { isPrepared: true, tags: null }));
      return [started, await replaceTags(tx, { ...started, updateId: id }, { caller, ref, tags: given, audit })];
    });
  return async (id, audit) => {
    const given = { tags: tags && JSON.stringify(tags) };
    const unchanged: TagResult = { ...given, warnings: [] };
    let start = await attempt(db, id, audit, { ...given, isPrepared: false });
    if (start.outcome === 'unprepared') {
      await reclaim(start.stackId, { organization: ref.organization, admitsFault: start.dryRun });
      start = await attempt(db, id, audit, { ...given, isPrepared: true });
    }
    const [started, result] =
      start.outcome === 'new-tags' && tags !== null
        ? await startWith(tags, id, audit)
        : [await assertStarted(db, id, start), unchanged];
    metrics.updatesStarted.labels(started.kind).inc();
    return { ...describeStart(started, lease.token, request.journalVersion), ...result };
  };
}

/** `offered` is the newest journal version that the client knows; the client sends entries of the version in the response. */
function describeStart(started: Started, token: string, offered: number): Omit<StartedUpdate, keyof TagResult> {
  const { expiresAt, headVersion, stackVersion } = started;
  return {
    token,
    expiresAt,
    stackVersion: stackVersion ?? headVersion,
    baseStackVersion: headVersion,
    journalVersion: started.journalVersion === 0 ? 0 : Math.min(offered, newestJournalVersion),
  };
}

/**
 * Call under the locks of the start. The CLI sends all tags with every start: callers who may only preview change none, and an invalid
 * queue tag does not prevent the update. Throws DecidingTagError.
 */
async function replaceTags(
  tx: Queryable,
  { stackId, updateId }: Pick<Started, 'stackId'> & { readonly updateId: string },
  given: { readonly caller: Caller; readonly ref: StackRef; readonly tags: Tags; readonly audit: AuditTrail },
): Promise<TagResult> {
  const access = await lockAccess(tx, given.ref.organization, given.caller);
  const stack = await createStackRepository(tx).findById(stackId);
  if (!stack) throw stackNotFound(given.ref);
  const before = readTags(stack.tags);
  if (!permits(permissionsOn(access, { ...stack, tags: before }), 'write')) return { tags: stack.tags, warnings: [] };
  const arrived = await createUpdateRepository(tx).findTagsAtArrival(updateId);
  const next = tagsAfterStart(given.tags, before, arrived === null ? null : readTags(arrived));
  const { problems, tags } = withoutInvalidQueueTags(next.tags, before);
  if (stack.tags !== JSON.stringify(tags)) await changeTags(tx, access, stack, tags, given.audit);
  return { tags: JSON.stringify(tags), warnings: [...problems, ...next.warnings] };
}

async function refusal(
  on: Queryable,
  { ref, updateId }: { readonly ref: StackRef; readonly updateId: string },
  start: Exclude<Start, Started>,
): Promise<Error> {
  switch (start.outcome) {
    case 'no-access':
      return lostDuringCall();
    case 'not-found':
      return updateNotFound(updateId);
    case 'denied':
      // Callers with the permission to preview get here because the preview locks the stack.
      return deniedBy(
        start.permissions,
        ref,
        start.dryRun && !permits(start.permissions, 'preview') ? 'preview' : 'write',
      );
    case 'not-waiting':
      return new ConflictError(
        start.status === 'running' ? 'This update is already running' : `This update has ended: ${endOf(start)}`,
      );
    case 'journal-needed': {
      const changeLimit = await createChangeLimitRepository(on).find(updateId);
      return changeLimit?.limits ? new JournalNeededError(changeLimit.limits) : changesTooQuickly();
    }
    case 'fault':
      await assertNoFault(on, start.stackId);
      return changesTooQuickly();
    default:
      return changesTooQuickly();
  }
}

function endOf({ endReason, status }: Extract<Start, { outcome: 'not-waiting' }>): string {
  if (isLeaseLoss(endReason)) return describeLoss(endReason);
  return status === 'not started' || endReason === 'lease-expired' ? 'it was not started in time' : status;
}

/** The state has changed since the decision. */
function changesTooQuickly(): UnavailableError {
  return new UnavailableError('The stack changes too quickly; please retry', { retryAfterSeconds: 1 });
}

function usesJournal({ checkpointMode }: Config, offered: number): boolean {
  return offered >= 1 && (checkpointMode === 'journal' || checkpointMode === 'auto');
}
