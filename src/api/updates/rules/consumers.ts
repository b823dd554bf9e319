import { setTimeout as sleep } from 'node:timers/promises';
import { hasPermission } from '../../../shared/access/permissions.ts';
import type { LockedAccess } from '../../../shared/identity/identity-repository.ts';
import { permissionsOn } from '../../../shared/identity/locked-rights.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { ConflictError } from '../../../shared/platform/errors/errors.ts';
import { createDueIndexRepository, type UnindexedStack } from '../../../shared/search/due-index-repository.ts';
import { formatStackRef, type StackRef } from '../../../shared/stacks/names.ts';
import { readTags } from '../../../shared/stacks/tags.ts';
import { createConsumerRepository } from '../../../shared/updates/rules/consumer-repository.ts';
import {
  createUpdateRuleRepository,
  type StackWithRules,
} from '../../../shared/updates/rules/update-rule-repository.ts';
import { type AllConsumers, findAllConsumers, maxConsumers } from './all-consumers.ts';
import { listOutputs } from './output-loss.ts';
import { createOutputLossRepository, type RemovedOutputs } from './output-loss-repository.ts';

const maxNames = 10;

export type OutputLoss = 'delete' | 'destroy' | 'rename';

const losses: Record<OutputLoss, string> = {
  delete: 'its outputs would be gone',
  destroy: 'its outputs will be gone',
  rename: 'they would no longer find it under its name',
};

/** A rule does not allow removing outputs that other stacks read. */
export class ConsumersError extends ConflictError {
  override readonly name = 'ConsumersError';
  override readonly code = 'has-consumers';
  /** The message for anybody who may read the stack: consumers are counted, not named. */
  readonly shared: string;

  constructor(consumers: Consumers, describe: (isReadBy: string) => string) {
    super(describe(isReadBy(consumers, consumers.named)));
    this.shared = describe(isReadBy(consumers, consumers.counted));
  }
}

interface Consumers {
  /** Names the consumers that the caller may read, and counts the others. */
  readonly named: string;
  readonly counted: string;
  /** Why it is uncertain whether they are consumers; null: it is certain. */
  readonly doubt: string | null;
}

interface PreviewOf {
  readonly commit: string | null;
  readonly userId: string | null;
  readonly tokenId: string;
}

/**
 * Call before the transaction of a change that takes outputs away. Waits for the index if a rule of kind `consumers` needs it; with
 * `preview`, only if the preview would remove outputs. `until`: see awaitIndex. Returns the stacks whose references are unknown.
 */
export async function awaitConsumers(
  db: Queryable,
  stack: StackWithRules,
  { preview = null, until }: { readonly preview?: PreviewOf | null; readonly until?: number | undefined } = {},
): Promise<readonly UnindexedStack[]> {
  const rule = stack.updateRules.first('consumers');
  if (!rule || (preview === null && rule.settings.mode === 'warn')) return [];
  if (preview !== null) {
    const { id: stackId, stackVersion } = stack;
    const loss = await createOutputLossRepository(db).findPreviewed({ stackId, stackVersion, ...preview });
    if (loss === null) return [];
  }
  return awaitIndex(db, stack, until);
}

/**
 * Applies a rule that refuses removals: no stack of the organization may read the outputs. Other organizations do not count: a reference to
 * any name could otherwise hold the change up. Throws ConsumersError, also if the references of `unindexed` stacks are unknown. A consumer
 * may count for a moment after its reference is gone.
 */
export async function assertNotConsumed(
  tx: Queryable,
  stack: StackWithRules,
  access: LockedAccess,
  loss: OutputLoss,
  unindexed: readonly UnindexedStack[],
): Promise<void> {
  const rule = stack.updateRules.first('consumers');
  if (rule?.settings.mode !== 'refuse') return;
  const consumers = (await describeOwn(tx, stack, access)) ?? describeUnindexed(access, unindexed);
  if (consumers === null) return;
  const note = rule.note === '' ? '' : ` ${rule.note}`;
  throw new ConsumersError(
    consumers,
    (isReadBy) =>
      `Stack ${formatStackRef(stack)} ${isReadBy}: ${losses[loss]}. A rule does not allow this while they have a stack reference to it.${note}`,
  );
}

/** Null without a rule of kind `consumers`, or without consumers. `until`: see awaitIndex. */
export async function warnOfConsumers(
  db: Queryable,
  ref: StackRef,
  access: LockedAccess,
  loss: OutputLoss,
  until?: number,
): Promise<string | null> {
  const stack = await createUpdateRuleRepository(db).findStack(ref);
  const rule = stack?.updateRules.first('consumers');
  if (!stack || !rule) return null;
  // A rule that refuses waits for the index elsewhere.
  const unindexed = rule.settings.mode === 'warn' ? await awaitIndex(db, stack, until) : [];
  const consumers = (await describeAll(db, stack, access)) ?? describeUnindexed(access, unindexed);
  return consumers && `Stack ${formatStackRef(ref)} ${isReadBy(consumers, consumers.named)}: ${losses[loss]}.`;
}

/**
 * A warning if the preview of the update would remove outputs that other stacks read. Throws ConsumersError if the rule refuses such an
 * update.
 */
export async function checkOutputLoss(
  tx: Queryable,
  stack: StackWithRules,
  access: LockedAccess,
  preview: PreviewOf,
  unindexed: readonly UnindexedStack[],
): Promise<string | null> {
  const rule = stack.updateRules.first('consumers');
  if (!rule) return null;
  const { id: stackId, stackVersion } = stack;
  const loss = await createOutputLossRepository(tx).findPreviewed({ stackId, stackVersion, ...preview });
  if (loss === null) return null;
  const unknown = describeUnindexed(access, unindexed);
  const refusing = rule.settings.mode === 'refuse' ? ((await describeOwn(tx, stack, access)) ?? unknown) : null;
  const consumers = refusing ?? (await describeAll(tx, stack, access)) ?? unknown;
  if (consumers === null) return null;
  const { isUnknown, names } = loss;
  const ofStack = (by: string): string => `of stack ${formatStackRef(stack)}, which ${by}`;
  const said = (by: string): string =>
    isUnknown
      ? `It is not known whether the preview of this update removes outputs ${ofStack(by)}: its events could not be read, or it is older than the rule`
      : `The preview of this update removes ${names.length === 1 ? 'the output' : 'the outputs'} ${listOutputs(names)} ${ofStack(by)}`;
  if (refusing === null) return `${said(isReadBy(consumers, consumers.named))}.`;
  const advice = isUnknown
    ? 'Run a new preview: a rule does not allow removing outputs while others have a stack reference to it.'
    : 'A rule does not allow this while they have a stack reference to it: keep the outputs, or run a new preview without this change.';
  const note = rule.note === '' ? '' : ` ${rule.note}`;
  throw new ConsumersError(consumers, (by) => `${said(by)}. ${advice}${note}`);
}

/**
 * Outputs removed by an update or a preview. `consumers` says that the stack's current consumers read them, as far as the caller may know;
 * null if there are none.
 */
export async function findRemovedOutputs(
  db: Queryable,
  stack: StackRef,
  access: LockedAccess,
  updateId: string,
): Promise<(RemovedOutputs & { readonly consumers: string | null }) | null> {
  const loss = await createOutputLossRepository(db).find(updateId);
  if (loss === null) return null;
  const consumers = await describeAll(db, stack, access);
  return { ...loss, consumers: consumers && isReadBy(consumers, consumers.named) };
}

/** Null if there are none. */
async function describeOwn(db: Queryable, stack: StackRef, access: LockedAccess): Promise<Consumers | null> {
  const own = await createConsumerRepository(db).listOwn(stack, maxConsumers);
  return describe(access, { own, count: own.length });
}

/** Consumers for warnings. Null if there are none. */
async function describeAll(db: Queryable, stack: StackRef, access: LockedAccess): Promise<Consumers | null> {
  const found = await findAllConsumers(db, stack);
  if (found !== null) return describe(access, found);
  const others = 'other stacks';
  return { named: others, counted: others, doubt: ': looking them up took too long' };
}

/** Null if there are none. */
function describeUnindexed(access: LockedAccess, unindexed: readonly UnindexedStack[]): Consumers | null {
  const described = describe(access, { own: unindexed, count: unindexed.length });
  const reason = unindexed.some(({ isFailing }) => isFailing)
    ? 'cannot be indexed (see the log of the workers)'
    : 'is not indexed yet (try again in a minute)';
  return described && { ...described, doubt: `, of which the newest state ${reason}` };
}

function describe(access: LockedAccess, { count, own }: AllConsumers): Consumers | null {
  if (count === 0) return null;
  const names = own
    .filter(({ tags, ...ref }) => hasPermission(permissionsOn(access, { ...ref, tags: readTags(tags) }), 'read'))
    .map(formatStackRef)
    .slice(0, maxNames);
  return { named: stacksText(count, names), counted: stacksText(count, []), doubt: null };
}

function isReadBy({ doubt }: Consumers, names: string): string {
  return doubt === null ? `is read by ${names}` : `may be read by ${names}${doubt}`;
}

function stacksText(count: number, names: readonly string[]): string {
  const more = count - names.length;
  const others = `${more}${count === maxConsumers ? ' or more' : ''}${names.length > 0 ? ' other' : ''} stack${more === 1 ? '' : 's'}`;
  return [...names, ...(more > 0 ? [others] : [])].join(', ');
}

/** A few times as long as it takes to index a state that was just saved. */
const waitMs = 10_000;
const pollMs = 250;
const maxStacks = 200;

/**
 * Waits until the index shows what the other stacks of the organization had saved before the call, for at most 10 s, and not beyond `until`
 * by `performance.now()`. Returns the stacks that it does not show.
 */
async function awaitIndex(
  db: Queryable,
  stack: { readonly id: string; readonly organization: string },
  until = Number.POSITIVE_INFINITY,
): Promise<readonly UnindexedStack[]> {
  const rows = createDueIndexRepository(db);
  const deadline = Math.min(performance.now() + waitMs, until);
  let left = await rows.listUnindexed(stack, { alsoOf: [], limit: maxStacks, until: null });
  const savedUntil = left[0]?.now ?? null;
  /** By stack that is due twice for the same saved state: the times at which it became due. */
  const again = new Map(left.filter(({ isNotedAgain }) => isNotedAgain).map((each) => [each.stackId, [each.notedAt]]));
  const isLeft = ({ notedAt, stackId }: UnindexedStack): boolean => {
    const times = again.get(stackId);
    return !times || times.includes(notedAt) || times.push(notedAt) <= 2;
  };
  while (left.length > 0 && performance.now() < deadline) {
    await rows.setAwaited(
      left.map(({ stackId }) => stackId),
      true,
    );
    await sleep(pollMs);
    const due = await rows.listUnindexed(stack, { alsoOf: [...again.keys()], limit: maxStacks, until: savedUntil });
    left = due.filter(isLeft);
  }
  // Stacks of other organizations need not wait for an index that no call awaits any longer.
  if (left.length > 0)
    await rows.setAwaited(
      left.map(({ stackId }) => stackId),
      false,
    );
  return left;
}
