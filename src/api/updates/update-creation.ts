import { ciRunOf } from '../../shared/audit/audit-event.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { assertFieldSize } from '../../shared/platform/errors/field-size.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { createStackRepository } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { commitOf, headOf } from '../../shared/state/journal/change-limits/approvals.ts';
import { assertNoFault } from '../../shared/state/journal/journal-fault.ts';
import { StackBusyError } from '../../shared/updates/admitted-changes.ts';
import { createLockedUpdateRepository } from '../../shared/updates/locked-update-repository.ts';
import { describeBusy, PreviewNeededError, previewRule } from '../../shared/updates/rules/preview-check.ts';
import { createUpdateRuleRepository } from '../../shared/updates/rules/update-rule-repository.ts';
import type { UpdateRules } from '../../shared/updates/rules/update-rules.ts';
import { createUpdateQueueRepository, type WaitingRun } from '../../shared/updates/update-queue-repository.ts';
import { createUpdateRepository } from '../../shared/updates/update-repository.ts';
import type { UpdateKind } from '../../shared/updates/update-state.ts';
import { holdAccess } from '../access/held-access.ts';
import { assertPermission } from '../access/stack-access.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller, Dialect } from '../platform/http/request.ts';
import { limitUpdate } from './approvals/limit-creation.ts';
import { breakGlassReason, isUrgent } from './break-glass.ts';
import { previewMessages } from './preview-messages.ts';
import { lockWaitSeconds } from './queue/lock-wait.ts';
import { waitingRun } from './queue/superseding.ts';
import { assertNotConsumed, awaitConsumers, checkOutputLoss } from './rules/consumers.ts';
import {
  assertNotFrozen,
  assertPreviewed,
  assertWithinLimits,
  LimitsChangedError,
  lockLimits,
} from './update-admission.ts';

/** Maximum time from creating an update to starting it, in seconds; never longer than a lease. The CLI starts it immediately. */
const startWaitSeconds = 300;

export interface NewUpdateRequest {
  readonly kind: Extract<UpdateKind, 'update' | 'preview' | 'refresh' | 'destroy'>;
  readonly dryRun: boolean;
  readonly message: string;
  readonly environment: object;
  readonly config: object;
  readonly program: object;
}

/** An update that was just created. */
export interface CreatedUpdate {
  readonly updateId: string;
  /** What its user should know. */
  readonly messages: readonly string[];
}

/** A creation that passed all checks possible outside its transaction. */
export interface PreparedCreation {
  readonly stackId: string;
  readonly organizationId: string;
  readonly organization: string;
  /** The stack, for the audit log. */
  readonly object: string;
  readonly kind: NewUpdateRequest['kind'];
  readonly environment: object;
  readonly preview: boolean;
  /** Whether the update locks the stack. */
  readonly exclusive: boolean;
  /** How long its caller may wait for the stack; 0: not at all. */
  readonly lockWaitSeconds: number;
  /** After which time webhooks are told that it waits. */
  readonly waitAlertSeconds: number;
  /** Whether it goes before the others that wait. */
  readonly isUrgent: boolean;
  /** What waits, as far as newer runs may take its place. */
  readonly waitingRun: WaitingRun | null;
  /**
   * Creates the update in one statement, which also records that in the audit log. Null, and nothing is changed, if there is more to
   * decide, such as rules; `run` then does that. For callers without a place.
   */
  readonly runAtOnce: (audit: AuditTrail) => Promise<CreatedUpdate | null>;
  /**
   * Creates the update. The transaction then holds a lock on the stack. `place` is that of the caller in the
   * stack's queue, if it has one; its waiting ends. Records in the audit log what rules did not allow. After a LimitsChangedError,
   * call it again.
   */
  readonly run: (tx: Queryable, audit: AuditTrail, place?: string) => Promise<CreatedUpdate>;
}

/** Does all checks that are possible before an update is created. Throws the errors of UpdateService.create. */
export async function prepareCreation(
  context: ApiContext,
  { ref, caller, dialect, request }: { ref: StackRef; caller: Caller; dialect: Dialect; request: NewUpdateRequest },
  reclaim: (stackId: string, options: { readonly admitsFault: boolean }) => Promise<void>,
): Promise<PreparedCreation> {
  const { config, db, quotas } = context;
  // The rest of the request is stored as JSON, in which these can be escaped.
  if (!request.message.isWellFormed() || request.message.includes('\0')) {
    throw new InvalidRequestError('metadata.message is not valid text: it contains a NUL or half a surrogate pair');
  }
  const { message } = request;
  const environment = JSON.stringify(request.environment);
  const settings = JSON.stringify(request.config);
  const program = JSON.stringify(request.program);
  const { maxFieldBytes } = config.limits;
  assertFieldSize('metadata.message', message, maxFieldBytes);
  assertFieldSize('metadata.environment', environment, maxFieldBytes);
  assertFieldSize('config', settings, maxFieldBytes);
  assertFieldSize('The program (name, runtime, main and description)', program, maxFieldBytes);
  const found = await createUpdateRuleRepository(db).findStack(ref);
  if (!found) throw stackNotFound(ref);
  const preview = request.kind === 'preview' || request.dryRun;
  const exclusive = !preview || dialect === 'contract';
  if (exclusive && found.activeUpdateId !== null) await reclaim(found.id, { admitsFault: preview });
  // A destroy is allowed over quota: it is how a stack gets smaller.
  if (!preview && request.kind !== 'destroy') await quotas.assertMayKeepMore(ref.organization);
  const limits = await quotas.limitsOf(ref.organization);
  const tags = readTags(found.tags);
  const waitSeconds = exclusive ? lockWaitSeconds(tags, found.updateRules, dialect, config.updateQueue.waitSeconds) : 0;
  const previewOf = { ...caller, commit: headOf(request.environment) };
  const mayLoseOutputs = !preview && (request.kind === 'destroy' || request.kind === 'update');
  const unindexed =
    mayLoseOutputs && breakGlassReason(message) === null
      ? await awaitConsumers(db, found, request.kind === 'destroy' ? null : previewOf)
      : [];
  let isCounting = !preview && isLimited(found.updateRules);
  const newUpdate = {
    kind: request.kind,
    dryRun: preview,
    exclusive,
    message,
    environment,
    ciRun: ciRunOf(request.environment),
    config: settings,
    program,
    requestedBy: caller.userId,
    tokenId: caller.tokenId,
    waitSeconds: Math.min(startWaitSeconds, config.leaseSeconds),
  };
  const runAtOnce = async (audit: AuditTrail): Promise<CreatedUpdate | null> => {
    if (limits.updates !== null || !found.updateRules.isEmpty || breakGlassReason(message) !== null) return null;
    const ordinary = { ...newUpdate, stackId: found.id, organization: ref.organization, mayWait: waitSeconds > 0 };
    const updateId = await audit.recordWith((source, action) =>
      createLockedUpdateRepository(db)
        .create(ordinary, formatStackRef(ref), source, action)
        .catch((error: unknown) => {
          if (violatedConstraint(error) === 'updates_one_active_per_stack') return null;
          throw error;
        }),
    );
    return updateId === null ? null : { updateId, messages: [] };
  };
  const run = async (tx: Queryable, audit: AuditTrail, place?: string): Promise<CreatedUpdate> => {
    const access = await holdAccess(tx, ref.organization, caller);
    await quotas.assertMayAddUpdate(tx, { id: found.organizationId, name: ref.organization }, limits);
    if (isCounting) await lockLimits(tx, found.organizationId);
    const stack = await createUpdateRuleRepository(tx).lockStack(found.id);
    if (!stack) throw stackNotFound(ref);
    assertPermission(access, stack, readTags(stack.tags), preview ? 'preview' : 'write');
    if (!preview && !isCounting && isLimited(stack.updateRules)) {
      isCounting = true;
      throw new LimitsChangedError();
    }
    const breakGlass = preview ? null : assertNotFrozen(stack, access, message);
    if (request.kind === 'destroy' && !preview && breakGlass === null)
      await assertNotConsumed(tx, stack, access, 'destroy', unindexed);
    const removal =
      request.kind === 'update' && !preview && breakGlass === null
        ? await checkOutputLoss(tx, stack, access, previewOf, unindexed)
        : null;
    const rule = preview ? null : previewRule(stack, request.kind);
    if (exclusive && stack.activeUpdateId !== null) {
      // Whoever waits for the end of an update gets another version than that of the preview.
      if (rule?.settings.mode === 'refuse' && waitSeconds > 0 && breakGlass === null)
        throw new PreviewNeededError(describeBusy(stack, rule, request.kind));
      throw new StackBusyError();
    }
    const commit = commitOf(request.environment);
    const previewed = rule && (await assertPreviewed(tx, rule, { stack, kind: request.kind, commit, breakGlass }));
    // An emergency goes before all that wait.
    const waits = waitSeconds > 0 && (breakGlass === null || place !== undefined);
    if (waits) await assertTurn(tx, stack.id, place ?? null);
    if (!preview) await assertWithinLimits(tx, stack, { breakGlass, caller, place: place ?? null });
    const waitedMs = waits && place !== undefined ? await endWaiting(tx, place) : null;
    if (!preview) await assertNoFault(tx, stack.id);
    const id = await createUpdateRepository(tx)
      .insert({ ...newUpdate, stackId: stack.id, baseStackVersion: stack.stackVersion, waitedMs })
      .catch((error: unknown) => {
        throw violatedConstraint(error) === 'updates_one_active_per_stack' ? new StackBusyError() : error;
      });
    if (exclusive) await createStackRepository(tx).setActiveUpdate(stack.id, id);
    if (breakGlass !== null)
      await audit.record(tx, {
        action: 'update.break-glass',
        organization: ref.organization,
        object: formatStackRef(ref),
        updateId: id,
        details: { ...breakGlass },
      });
    if (!preview)
      await limitUpdate(tx, id, {
        ...{ stack, kind: request.kind, environment: request.environment, caller },
        preview: previewed?.rule.settings.mode === 'refuse' && breakGlass === null ? previewed : null,
      });
    const messages = await previewMessages(tx, previewed, stack.id, request.kind);
    return { updateId: id, messages: removal === null ? messages : [...messages, removal] };
  };
  return {
    stackId: found.id,
    organizationId: found.organizationId,
    organization: ref.organization,
    object: formatStackRef(ref),
    kind: request.kind,
    environment: request.environment,
    preview,
    exclusive,
    lockWaitSeconds: waitSeconds,
    waitAlertSeconds: found.updateRules.first('wait-alert')?.settings.seconds ?? config.updateQueue.alertSeconds,
    isUrgent: !preview && isUrgent(caller, ref, message),
    waitingRun: waitingRun(tags, found.updateRules, request.kind, request.environment),
    runAtOnce,
    run,
  };
}

function isLimited(rules: UpdateRules): boolean {
  return rules.first('concurrency') !== null;
}

/** Throws StackBusyError unless it is the turn of the caller. The stack is locked and free. */
async function assertTurn(tx: Queryable, stackId: string, place: string | null): Promise<void> {
  if ((await createUpdateQueueRepository(tx).findFirst(stackId)) !== place) throw new StackBusyError();
}

/** Ends the waiting of the caller and returns how long it has lasted, in ms. Throws StackBusyError if a newer run has taken the place. */
async function endWaiting(tx: Queryable, place: string): Promise<number> {
  const waitedMs = await createUpdateQueueRepository(tx).take(place);
  if (waitedMs === null) throw new StackBusyError();
  return waitedMs;
}
