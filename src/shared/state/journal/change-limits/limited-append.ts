import { serverSource } from '../../../audit/audit-event.ts';
import { createAuditRepository } from '../../../audit/audit-repository.ts';
import type { Database } from '../../../platform/db/database.ts';
import type { Queryable } from '../../../platform/db/sql.ts';
import { ForbiddenError } from '../../../platform/errors/errors.ts';
import { createApprovalRepository } from '../../../updates/approvals/approval-repository.ts';
import { FenceError, type LeaseFence, whileFenceHolds } from '../../../updates/fence.ts';
import { urnKey } from '../../deployments/live-urns.ts';
import type { BatchEntry } from '../journal-batch.ts';
import { type Appended, createJournalRepository } from '../journal-repository.ts';
import type { BaseUrns } from './base-urns.ts';
import { type BegunOperation, readBegins, readMigrated, refusedEntry } from './begin-entry.ts';
import { type ChangeLimit, createChangeLimitRepository } from './change-limit-repository.ts';
import {
  type ChangeLimits,
  changesAmong,
  judge,
  needsBase,
  needsPreview,
  type Protection,
  protectionOf,
  type Stop,
} from './change-limits.ts';

/**
 * The update may begin no more operations; the rest of the batch is stored. The CLI shows the message at each resource of the batch, calls
 * no provider for operations that were about to begin, and ends the update as failed.
 */
export class BeginRefusedError extends ForbiddenError {
  override readonly name = 'BeginRefusedError';
  override readonly code = 'begin-refused';
}

/** The keys of resources that the preview would delete or replace. */
export interface PreviewedChanges {
  of(previewId: string): Promise<ReadonlySet<string>>;
}

export interface LimitParts {
  readonly db: Database;
  readonly baseUrns: BaseUrns;
  readonly previewed: PreviewedChanges;
}

export interface LimitedAppend {
  readonly appended: Appended;
  /** Null if nothing was refused. */
  readonly refusal: Stop | null;
}

/**
 * One transaction holds the lock on all batches of the update. If one begin entry of the batch is refused, all its begin entries are,
 * because the client gets one response; the rest is stored. A repeated batch gets the same response: accepted entries are stored as they
 * are, and refused ones are recognized by their stored form. Returns null if the lease is invalid. Also throws the errors of reading the
 * state before the update.
 */
export async function appendLimited(
  { db, baseUrns, previewed }: LimitParts,
  fence: LeaseFence,
  entries: readonly BatchEntry[],
): Promise<LimitedAppend | null> {
  const { updateId } = fence;
  const begins = await readBegins(entries);
  // Outside the transaction: limits, base and preview never change, and reading them may take long.
  const found = await createChangeLimitRepository(db).find(updateId);
  const limits = found && !found.stop ? found.limits : null;
  const migrated = limits ? await readMigrated(entries) : none;
  const protection: Protection = limits ? await protectionOf(limits, begins) : new Map();
  const base =
    limits && needsBase(limits, begins, protection) ? await baseUrns.of(found?.baseCheckpointId ?? null) : none;
  const previewId = limits && needsPreview(limits, begins);
  const said = previewId === null ? none : await previewed.of(previewId);
  return whileFenceHolds(db, async (tx) => {
    const changeLimits = createChangeLimitRepository(tx);
    if (!(await changeLimits.lockJournal(fence))) return null;
    const changeLimit = await changeLimits.find(updateId);
    if (migrated.size > 0) await changeLimits.addMigrated(updateId, [...migrated]);
    const stored = await changeLimits.findStored(
      updateId,
      begins.map(({ sequenceId }) => sequenceId),
    );
    const known = new Set(stored.map(({ sequenceId }) => sequenceId));
    const added = begins.filter(({ sequenceId }) => !known.has(sequenceId));
    // Includes resources inserted by earlier batches.
    const inserted =
      limits && needsBase(limits, added, protection)
        ? await changeLimits.findMigrated(
            updateId,
            added.map(({ urn }) => urnKey(urn)),
          )
        : none;
    const live = { has: (key: string) => base.has(key) || inserted.has(key) };
    const stop =
      changeLimit &&
      (changeLimit.stop ??
        (await judgeBegins(tx, updateId, changeLimit, { changes: changesAmong(added, live), protection, said })));
    const refused = new Map(stop ? added.map((begin) => [begin.sequenceId, refusedEntry(begin)]) : []);
    const accepted = entries.map((entry) => (entry.isBegin && refused.get(entry.sequenceId)) || entry);
    const appended = await createJournalRepository(tx).append(fence, accepted, true);
    if (!appended) throw new FenceError();
    const isRefused = refused.size > 0 || stored.some((entry) => entry.isRefused);
    return { appended, refusal: isRefused ? stop : null };
  });
}

const none: ReadonlySet<string> = new Set();

/** Returns null, or stops the update and returns the reason. The journal is locked. */
async function judgeBegins(
  tx: Queryable,
  updateId: string,
  { limits, ...changeLimit }: ChangeLimit,
  {
    changes,
    protection,
    said,
  }: {
    readonly changes: ReadonlyMap<string, BegunOperation>;
    readonly protection: Protection;
    readonly said: ReadonlySet<string>;
  },
): Promise<Stop | null> {
  if (limits === null || changes.size === 0) return null;
  const changeLimits = createChangeLimitRepository(tx);
  const counted = limits.changeLimit
    ? await changeLimits.findChanged(updateId, [...changes.keys()])
    : new Set<string>();
  const added = [...changes.keys()].filter((key) => !counted.has(key));
  const counts = {
    before: changeLimit.changes,
    added: added.length,
    previewed: said,
    protection,
    resources: changeLimit.resources,
  };
  const stop = judge(limits, changes.values(), counts);
  if (stop) await stopUpdate(tx, updateId, changeLimit.stackId, limits, stop);
  else if (limits.changeLimit && added.length > 0) await changeLimits.addChanged(updateId, added);
  return stop;
}

/** Also records the stop, and requests approval of the update's commit. */
async function stopUpdate(
  tx: Queryable,
  updateId: string,
  stackId: string,
  limits: ChangeLimits,
  stop: Stop,
): Promise<void> {
  await createChangeLimitRepository(tx).stop(updateId, stop);
  const { commit, kind, stack } = limits;
  // A run that exceeds its preview needs a new preview instead.
  if (commit !== null && stop.reason !== 'require-preview')
    await createApprovalRepository(tx).askForUpdate(updateId, { stackId, kind, commit, request: stop.message });
  await createAuditRepository(tx).insert(serverSource, {
    action: 'update.stop',
    outcome: 'refused',
    organization: stack.slice(0, stack.indexOf('/')),
    object: stack,
    updateId,
    details: { stackId, kind, rule: stop.reason, message: stop.message, ...(commit && { commit }) },
  });
}
