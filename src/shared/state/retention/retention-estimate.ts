import type { Queryable } from '../../platform/db/sql.ts';
import type { RetentionKind, RuleSettings } from '../../updates/rules/rule-kinds.ts';
import { retentionKinds } from '../../updates/rules/rule-kinds.ts';
import { createUpdateRuleRepository } from '../../updates/rules/update-rule-repository.ts';
import type { NewRule } from '../../updates/rules/update-rules.ts';
import { createEstimateRepository, type MatchedStack } from './estimate-repository.ts';
import { listDoomedStates, listOldPreviews, listOldUpdates } from './retention-plan.ts';
import { createRetentionRepository } from './retention-repository.ts';

const stacksAtOnce = 100;
const idsAtOnce = 1_000;
const maxShown = 20;

interface StackEstimate {
  readonly project: string;
  readonly stack: string;
  /** Versions, updates whose events would be deleted, or previews. */
  readonly count: number;
  readonly bytes: number;
}

export interface RetentionEstimate {
  readonly kind: RetentionKind;
  readonly count: number;
  readonly bytes: number;
  /** Stacks that the rule would decide about; among them, stacks under a legal hold; stacks for which a more specific rule decides. */
  readonly stackCount: number;
  readonly heldCount: number;
  readonly otherCount: number;
  /** At most 20, in which the rule would free the most. Only stacks that the caller may read. */
  readonly stacks: readonly StackEstimate[];
  /** False if time ran out: the numbers cover only the first stacks. */
  readonly isComplete: boolean;
}

export function isRetentionRule(rule: NewRule): rule is NewRule & { readonly kind: RetentionKind } {
  return (retentionKinds as readonly string[]).includes(rule.kind);
}

/** Whether `other` decides instead of the rule. Rules with the same scope are the same rule. */
function isMoreSpecific(
  other: Pick<NewRule, 'project' | 'stack' | 'tag'>,
  rule: Pick<NewRule, 'project' | 'stack' | 'tag'>,
): boolean {
  const rank = ({ project, stack, tag }: typeof other): number =>
    (stack === null ? 4 : 0) + (tag === null ? 2 : 0) + (project === null ? 1 : 0);
  if (rank(other) !== rank(rule)) return rank(other) < rank(rule);
  // Of two tags, the first by name and value decides, in the order in which rules are read.
  if (other.tag === null || rule.tag === null) return false;
  return `${other.tag.name}\0${other.tag.value}` < `${rule.tag.name}\0${rule.tag.value}`;
}

interface EstimateOptions {
  /** Selects the stacks that the caller may read; null for all. */
  readonly facts?: object | null;
  /** The rule that the new one replaces. */
  readonly replacedId?: string | null;
  /** Ends the estimate after the stack in hand. */
  readonly isOver?: () => boolean;
}

/** Changes nothing. */
export async function estimateRetention(
  db: Queryable,
  organizationId: string,
  rule: NewRule & { readonly kind: RetentionKind },
  { facts = null, isOver = () => false, replacedId = null }: EstimateOptions = {},
): Promise<RetentionEstimate> {
  const sizes = createEstimateRepository(db);
  const rules = createUpdateRuleRepository(db);
  const total = { count: 0, bytes: 0, stackCount: 0, heldCount: 0, otherCount: 0 };
  let stacks: StackEstimate[] = [];
  let isComplete = false;
  for (let after: MatchedStack | null = null; !isComplete && !isOver(); ) {
    const page: readonly MatchedStack[] = await sizes.listStacks(organizationId, rule, after, {
      facts,
      limit: stacksAtOnce,
    });
    let looked = 0;
    for (const matched of page) {
      if (isOver()) break;
      looked++;
      const present = (await rules.listOfStack(matched.id)).all(rule.kind).find(({ id }) => id !== replacedId);
      if (present && isMoreSpecific(present, rule)) {
        total.otherCount++;
        continue;
      }
      total.stackCount++;
      if (matched.isHeld) {
        total.heldCount++;
        continue;
      }
      const { bytes, count } = await estimateStack(db, matched.id, rule);
      total.count += count;
      total.bytes += bytes;
      if (count === 0 || !matched.isReadable) continue;
      stacks.push({ project: matched.project, stack: matched.stack, count, bytes });
      if (stacks.length >= 2 * maxShown) stacks = largest(stacks);
    }
    isComplete = looked === page.length && page.length < stacksAtOnce;
    after = page[looked - 1] ?? after;
  }
  return { kind: rule.kind, ...total, stacks: largest(stacks), isComplete };
}

function largest(stacks: readonly StackEstimate[]): StackEstimate[] {
  return [...stacks].sort((one, other) => other.bytes - one.bytes || other.count - one.count).slice(0, maxShown);
}

async function estimateStack(
  db: Queryable,
  stackId: string,
  { kind, settings }: Pick<NewRule, 'settings'> & { readonly kind: RetentionKind },
): Promise<{ count: number; bytes: number }> {
  const rows = createRetentionRepository(db);
  const sizes = createEstimateRepository(db);
  const progress = await rows.findProgress(stackId);
  const result = { count: 0, bytes: 0 };
  if (!progress) return result;
  const { eventsUntil, now } = progress;
  if (kind === 'keep-versions') {
    const doomed: string[] = [];
    for await (const state of listDoomedStates(rows, stackId, settings as RuleSettings<'keep-versions'>, now)) {
      doomed.push(state.checkpointId);
      result.count += state.updateIds.length;
    }
    if (doomed.length > 0) result.bytes = await sizes.measureStates(stackId, doomed);
    return result;
  }
  const { days } = settings as RuleSettings<'keep-events'>;
  const pages =
    kind === 'keep-events'
      ? listOldUpdates(rows, stackId, eventsUntil, days, now)
      : listOldPreviews(rows, stackId, days, now);
  for await (const { due } of pages) {
    result.count += due.length;
    for (let at = 0; at < due.length; at += idsAtOnce)
      result.bytes += await sizes.measureEvents(due.slice(at, at + idsAtOnce).map(({ id }) => id));
  }
  return result;
}
