import { permissionsOn } from '../../shared/identity/held-rights.ts';
import type { HeldAccess } from '../../shared/identity/identity-repository.ts';
import { hasPermission } from '../../shared/identity/permissions.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ConflictError } from '../../shared/platform/errors/errors.ts';
import { listOutputs } from '../../shared/resources/output-loss.ts';
import { createOutputLossRepository } from '../../shared/resources/output-loss-repository.ts';
import { createResourceRepository } from '../../shared/resources/resource-repository.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { createUpdateRuleRepository, type StackWithRules } from '../../shared/updates/rules/update-rule-repository.ts';

/** Consumers that are looked up, and those that are named. */
const maxConsumers = 200;
const maxNames = 10;

/** What would take the outputs of a stack away. */
export type OutputLoss = 'delete' | 'destroy' | 'rename';

const losses: Record<OutputLoss, string> = {
  delete: 'its outputs would be gone',
  destroy: 'its outputs will be gone',
  rename: 'they would no longer find it under its name',
};

/** A rule does not allow to take away outputs that other stacks read. */
export class ConsumersError extends ConflictError {
  override readonly name = 'ConsumersError';
  override readonly code = 'has-consumers';
}

/**
 * Asserts that no stack reads the outputs of this one, if a rule of kind `consumers` refuses that they are taken away. Throws
 * ConsumersError. The index of states says who reads them, so a consumer may count for a moment after its reference is gone.
 */
export async function assertNotConsumed(
  tx: Queryable,
  stack: StackWithRules,
  access: HeldAccess,
  loss: OutputLoss,
): Promise<void> {
  const rule = stack.updateRules.first('consumers');
  if (rule?.settings.mode !== 'refuse') return;
  const consumers = await describeConsumers(tx, stack, access);
  if (consumers === null) return;
  const note = rule.note === '' ? '' : ` ${rule.note}`;
  throw new ConsumersError(
    `Stack ${formatStackRef(stack)} is read by ${consumers}: ${losses[loss]}. A rule does not allow that as long as they have a stack reference to it.${note}`,
  );
}

/** What to tell the caller before outputs are taken away; null without a rule of kind `consumers`, or without consumers. */
export async function warnOfConsumers(
  db: Queryable,
  ref: StackRef,
  access: HeldAccess,
  loss: OutputLoss,
): Promise<string | null> {
  const stack = await createUpdateRuleRepository(db).findStack(ref);
  if (!stack?.updateRules.first('consumers')) return null;
  const consumers = await describeConsumers(db, stack, access);
  return consumers && `Stack ${formatStackRef(ref)} is read by ${consumers}: ${losses[loss]}.`;
}

/**
 * What to tell whoever begins an update whose preview would remove outputs that other stacks read; null if nothing. Throws
 * ConsumersError if the rule refuses such an update.
 */
export async function checkOutputLoss(
  tx: Queryable,
  stack: StackWithRules,
  access: HeldAccess,
  preview: { readonly commit: string | null; readonly userId: string | null; readonly tokenId: string },
): Promise<string | null> {
  const rule = stack.updateRules.first('consumers');
  if (!rule) return null;
  const { id: stackId, stackVersion } = stack;
  const names = await createOutputLossRepository(tx).findPreviewed({ stackId, stackVersion, ...preview });
  const consumers = names.length === 0 ? null : await describeConsumers(tx, stack, access);
  if (consumers === null) return null;
  const said = `The preview of this update removes ${names.length === 1 ? 'the output' : 'the outputs'} ${listOutputs(names)} of stack ${formatStackRef(stack)}, which is read by ${consumers}`;
  if (rule.settings.mode === 'warn') return `${said}.`;
  const note = rule.note === '' ? '' : ` ${rule.note}`;
  throw new ConsumersError(
    `${said}. A rule does not allow that as long as they have a stack reference to it: keep the outputs, or run a new preview without that change.${note}`,
  );
}

/** What an update or a preview has removed, and who reads the stack now, as far as the caller may know; null if it has removed nothing. */
export async function findRemovedOutputs(
  db: Queryable,
  stack: StackRef,
  access: HeldAccess,
  updateId: string,
): Promise<{ readonly names: readonly string[]; readonly consumers: string | null } | null> {
  const names = await createOutputLossRepository(db).find(updateId);
  return names.length === 0 ? null : { names, consumers: await describeConsumers(db, stack, access) };
}

/** Names consumers that the caller may read, and counts the others; null if there are none. */
async function describeConsumers(db: Queryable, stack: StackRef, access: HeldAccess): Promise<string | null> {
  const consumers = await createResourceRepository(db).listConsumers(stack, maxConsumers);
  if (consumers.length === 0) return null;
  const names = consumers
    .filter(
      ({ tags, ...ref }) =>
        ref.organization === stack.organization &&
        hasPermission(permissionsOn(access, { ...ref, tags: readTags(tags) }), 'read'),
    )
    .map(formatStackRef)
    .slice(0, maxNames);
  const more = consumers.length - names.length;
  const others = `${more}${consumers.length === maxConsumers ? ' or more' : ''}${names.length > 0 ? ' other' : ''} stack${more === 1 ? '' : 's'}`;
  return [...names, ...(more > 0 ? [others] : [])].join(', ');
}
