import { limitLockWait } from '../../shared/platform/db/limit-lock-wait.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { isLockTimeout } from '../../shared/platform/db/sqlstate.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { denseSliceBytes, Slices } from '../../shared/platform/slices/slices.ts';
import type { UnindexedStack } from '../../shared/search/due-index-repository.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import type { Reclaim } from '../../shared/state/reclaim-stack.ts';
import { createStatisticsRepository } from '../../shared/statistics/statistics-repository.ts';
import { countsOf, describeUnusual, findUnusual } from '../../shared/statistics/unusual-updates.ts';
import { cliConfig, cliEnvironment } from '../../shared/updates/cli-texts.ts';
import { createUpdateRuleRepository, type StackWithRules } from '../../shared/updates/rules/update-rule-repository.ts';
import { StackBusyError } from '../../shared/updates/update-errors.ts';
import { createUpdateQueueRepository, type WaitingRun } from '../../shared/updates/update-queue-repository.ts';
import { lockAccess } from '../access/locked-access.ts';
import { assertPermission } from '../access/stack-access.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { assertFieldSize } from '../platform/http/field-size.ts';
import type { Caller, Dialect } from '../platform/http/request.ts';
import { limitUpdate } from './approvals/set-change-limits.ts';
import { breakGlassReason, isUrgent } from './break-glass.ts';
import { type Candidate, checkCandidate, type Findings, keysOfLimits, previewOf } from './creation-checks.ts';
import { insertUpdate, type Stored } from './insert-update.ts';
import { dropStored, type NewUpdateRequest } from './new-update-request.ts';
import { lockWaitSeconds } from './queue/lock-wait.ts';
import { waitingRun } from './queue/superseding.ts';
import { createConcurrencyLimitRepository } from './rules/concurrency-limit-repository.ts';
import { awaitConsumers } from './rules/consumers.ts';
import type { PreviewCheck } from './rules/preview-check.ts';
import { limitsBusy } from './rules/rule-checks.ts';

/** Maximum time from creation to start; never longer than a lease. The CLI starts an update immediately. */
const startWaitSeconds = 300;
/** After this time, the checks outside the transaction are repeated for a waiting caller, in ms. */
const freshMs = 1_000;

/** Maximum waits for the locks of limits and of a stack while other creations may wait for this one. */
const lockWaitMs = { first: 2_000, repeated: 300 };

export interface CreatedUpdate {
  readonly updateId: string;
  readonly messages: readonly string[];
}

/** A creation that passed all checks possible outside its transaction. */
export interface PreparedCreation {
  readonly stackId: string;
  readonly organizationId: string;
  readonly organization: string;
  /** The stack, as the audit log names it. */
  readonly object: string;
  readonly kind: NewUpdateRequest['kind'];
  readonly environment: object;
  readonly preview: boolean;
  readonly exclusive: boolean;
  /** 0: not at all. A caller that already waits keeps its time. */
  readonly lockWaitSeconds: number;
  /** Tags as JSON text: when the caller began to wait, or now. */
  readonly tagsAtArrival: string;
  /** Time after which webhooks are notified that the update waits. */
  readonly waitAlertSeconds: number;
  /** Size of the texts that are kept while the update waits. */
  readonly chars: number;
  readonly isUrgent: boolean;
  readonly waitingRun: WaitingRun | null;
  /**
   * Creates the update. The transaction then holds a lock on the stack. `entryId`: the caller's entry in the stack's queue, whose wait
   * ends. After a LimitsChangedError or a lock timeout, call it again.
   */
  readonly run: (tx: Queryable, audit: AuditTrail, entryId?: string) => Promise<CreatedUpdate>;
  /**
   * Repeats the checks whose results may change, unless they are recent. Call before `run` if the caller has waited. False: the checks have
   * not ended at `until` by `performance.now()`.
   */
  readonly renew: (until: number) => Promise<boolean>;
}

interface CreationCall {
  readonly ref: StackRef;
  readonly caller: Caller;
  readonly dialect: Dialect;
  readonly request: NewUpdateRequest;
  readonly entryId: string | null;
}

interface Texts {
  readonly message: string;
  readonly environment: string;
  readonly config: string;
  readonly cliEnvironment: string | null;
  readonly cliConfig: string | null;
  readonly program: string;
}

/** Runs all checks that are possible outside the transaction. Drops the stored parts from the request. No update exists if it throws. */
export async function prepareCreation(
  context: ApiContext,
  call: CreationCall,
  reclaim: Reclaim,
): Promise<PreparedCreation> {
  const { config, quotas } = context;
  const { caller, dialect, entryId: keptEntry, ref, request } = call;
  const texts = await readTexts(request, config.limits.maxFieldBytes);
  dropStored(request);
  const found = await createUpdateRuleRepository(context.db).findStack(ref);
  if (!found) throw stackNotFound(ref);
  const isPreview = request.kind === 'preview' || request.dryRun;
  const isExclusive = !isPreview || dialect === 'contract';
  const tags = readTags(found.tags);
  // The transaction decides. But a caller that it would refuse takes no position in the queue, and changes nothing on the way.
  assertPermission(caller, found, tags, isExclusive ? 'write' : 'preview');
  if (isExclusive && found.activeUpdateId !== null)
    await reclaim(found.id, { organization: ref.organization, admitsFault: isPreview });
  const check = async (stack: StackWithRules, until?: number) => {
    // A destroy is allowed over quota, because it makes a stack smaller.
    if (!isPreview && request.kind !== 'destroy') await quotas.assertMayKeepMore(ref.organization);
    const limits = await quotas.limitsOf(ref.organization);
    const unindexed = isPreview ? [] : await findUnindexed(context, stack, call, until);
    return { limits, unindexed, since: performance.now() };
  };
  let checked = await check(found);
  const renew = async (until: number): Promise<boolean> => {
    if (performance.now() - checked.since < freshMs) return true;
    const stack = await createUpdateRuleRepository(context.db).findStack(ref);
    if (!stack) throw stackNotFound(ref);
    const renewed = await check(stack, until);
    if (renewed.unindexed.length > 0 && performance.now() >= until) return false;
    checked = renewed;
    return true;
  };
  const owner = { stackId: found.id, tokenId: caller.tokenId };
  const keptTerms =
    keptEntry === null ? null : await createUpdateQueueRepository(context.db).findWaitTerms(keptEntry, owner);
  const tagsAtArrival = keptTerms?.tags ?? found.tags;
  const waitSeconds = isExclusive
    ? (keptTerms?.waitSeconds ?? lockWaitSeconds(tags, found.updateRules, dialect, config.updateQueue.waitSeconds))
    : 0;
  let counted: ReadonlySet<string> = new Set(isPreview ? [] : keysOfLimits(found, caller));
  const run = async (tx: Queryable, audit: AuditTrail, entryId: string | null = null): Promise<CreatedUpdate> => {
    const { limits, unindexed } = checked;
    const access = await lockAccess(tx, ref.organization, caller);
    // Creations with the same limits wait meanwhile, so this one waits only briefly: it can wait in its stack's queue instead, or try
    // again.
    const isLimited = counted.size > 0 || limits.updates !== null;
    if (isLimited) {
      const isRepeated = waitSeconds === 0 || entryId !== null;
      await limitLockWait(tx, isRepeated ? lockWaitMs.repeated : lockWaitMs.first);
      const organization = { id: found.organizationId, name: ref.organization };
      await quotas.assertMayAddUpdate(tx, organization, limits).catch(limitsBusy);
      if (counted.size > 0)
        await createConcurrencyLimitRepository(tx)
          .lock(found.organizationId, [...counted])
          .catch(limitsBusy);
    }
    const stack = await createUpdateRuleRepository(tx)
      .lockStack(found.id)
      .catch((error: unknown) => {
        throw isLimited && waitSeconds > 0 && isLockTimeout(error) ? new StackBusyError() : error;
      });
    // The stack was renamed during the wait, and the caller would start the update under the former name.
    if (!stack || formatStackRef(stack) !== formatStackRef(found)) throw stackNotFound(ref);
    const candidate: Candidate = {
      ...{ tx, request, caller, access, stack, isPreview, isExclusive, entryId, counted, unindexed },
      mayWait: waitSeconds > 0,
    };
    // If other limits apply now, the next attempt takes their locks.
    if (!isPreview) counted = new Set(keysOfLimits(stack, caller));
    const startSeconds = Math.min(startWaitSeconds, config.leaseSeconds);
    const stored = {
      ...{ ...texts, waitSeconds: startSeconds },
      tagsAtArrival: entryId !== null && stack.tags !== tagsAtArrival ? tagsAtArrival : null,
    };
    return createChecked(candidate, await checkCandidate(candidate), stored, audit);
  };
  return {
    stackId: found.id,
    organizationId: found.organizationId,
    organization: ref.organization,
    object: formatStackRef(ref),
    kind: request.kind,
    environment: request.environment,
    preview: isPreview,
    exclusive: isExclusive,
    lockWaitSeconds: waitSeconds,
    tagsAtArrival,
    waitAlertSeconds: found.updateRules.first('wait-alert')?.settings.seconds ?? config.updateQueue.alertSeconds,
    chars: Object.values(texts).reduce((sum, text) => sum + (text?.length ?? 0), tagsAtArrival.length),
    isUrgent: !isPreview && isUrgent(caller, ref, request.message),
    waitingRun: waitingRun(tags, found.updateRules, request.kind, request.environment),
    run,
    renew,
  };
}

async function readTexts(
  { config, environment, message, program }: NewUpdateRequest,
  maxFieldBytes: number,
): Promise<Texts> {
  // The rest of the request is stored as JSON, in which these characters can be escaped.
  if (!message.isWellFormed() || message.includes('\0')) {
    throw new InvalidRequestError('metadata.message is not valid text: it contains a NUL or half a surrogate pair');
  }
  const slices = new Slices(denseSliceBytes);
  const textOf = async (value: unknown): Promise<string> => {
    const text = JSON.stringify(value);
    await slices.spend(text.length);
    return text;
  };
  const texts = {
    message,
    environment: await textOf(environment),
    config: await textOf(config),
    program: await textOf(program),
  };
  assertFieldSize('metadata.message', texts.message, maxFieldBytes);
  assertFieldSize('metadata.environment', texts.environment, maxFieldBytes);
  assertFieldSize('config', texts.config, maxFieldBytes);
  assertFieldSize('The program (name, runtime, main and description)', texts.program, maxFieldBytes);
  const forCli = { cliEnvironment: cliEnvironment(environment), cliConfig: cliConfig(config) };
  await slices.spend(texts.environment.length + texts.config.length);
  return { ...texts, ...forCli };
}

async function findUnindexed(
  { db }: ApiContext,
  stack: StackWithRules,
  { caller, request }: CreationCall,
  until?: number,
): Promise<readonly UnindexedStack[]> {
  if (breakGlassReason(request.message) !== null) return [];
  if (request.kind === 'destroy') return awaitConsumers(db, stack, { until });
  const preview = previewOf({ caller, request });
  return request.kind === 'update' ? awaitConsumers(db, stack, { preview, until }) : [];
}

async function createChecked(
  candidate: Candidate,
  findings: Findings,
  stored: Stored,
  audit: AuditTrail,
): Promise<CreatedUpdate> {
  const { caller, isPreview, request, stack, tx } = candidate;
  const { environment, kind } = request;
  const { breakGlass, previewed, removal } = findings;
  const updateId = await insertUpdate(candidate, findings, stored, audit);
  const details = { ...breakGlass };
  const event = {
    action: 'update.break-glass',
    organization: stack.organization,
    object: formatStackRef(stack),
  } as const;
  if (breakGlass !== null) await audit.record(tx, { ...event, updateId, details });
  // An emergency is not limited by a preview.
  const preview = previewed?.rule.settings.mode === 'refuse' && breakGlass === null ? previewed : null;
  if (!isPreview) await limitUpdate(tx, updateId, { stack, kind, environment, caller, preview });
  const messages = await previewMessages(tx, previewed, stack.id, kind);
  return { updateId, messages: removal === null ? messages : [...messages, removal] };
}

/** Warns of a missing preview, and of one that changes more than earlier updates did. */
async function previewMessages(
  tx: Queryable,
  check: PreviewCheck | null,
  stackId: string,
  kind: string,
): Promise<readonly string[]> {
  if (check?.problem) return [check.problem];
  if (!check?.previewId) return [];
  const statistics = createStatisticsRepository(tx);
  const usual = await statistics.findUsual(stackId, kind, null);
  const unusual = findUnusual(countsOf(await statistics.findChanges(check.previewId)), usual).map(describeUnusual);
  return unusual.length === 0 ? [] : [`The preview ${unusual.join('; ')} (of ${usual?.count} updates in 90 days)`];
}
