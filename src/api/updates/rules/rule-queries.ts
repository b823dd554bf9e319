import {
  estimateRetention,
  isRetentionRule,
  type RetentionEstimate,
} from '../../../shared/state/retention/retention-estimate.ts';
import { type FreezeTimes, freezeTimes } from '../../../shared/updates/rules/freeze.ts';
import type { RuleSettings } from '../../../shared/updates/rules/rule-kinds.ts';
import {
  createUpdateRuleRepository,
  type PagedRuleRow,
  type RulePosition,
  type RuleRow,
} from '../../../shared/updates/rules/update-rule-repository.ts';
import { describeScope, type NewRule, scopeOf } from '../../../shared/updates/rules/update-rules.ts';
import { getListedOrganization, getOrganization } from '../../access/organizations.ts';
import type { ApiContext } from '../../platform/api-context.ts';
import type { Caller } from '../../platform/http/request.ts';
import { revisionOfRule } from './update-rule-service.ts';

const maxWindows = 3;
/** Time for an estimate. */
const estimateMs = 2_000;
const maxCounted = 1_000;
const maxNamed = 5;

export type RuleView = ReturnType<typeof ruleView>;

export class RuleQueries {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  /** All kinds if `kinds` is null; by kind and scope. */
  async list(
    organization: string,
    page: { readonly kinds: readonly string[] | null; readonly after: RulePosition | null; readonly limit: number },
  ): Promise<{
    readonly items: readonly (RuleView & FreezeState & { readonly isManaged: boolean })[];
    readonly next: RulePosition | null;
  }> {
    const { id: organizationId } = await getOrganization(this.#db, organization);
    const rules = createUpdateRuleRepository(this.#db);
    const rows = await rules.listPage(organizationId, { ...page, limit: page.limit + 1 });
    const shown = rows.slice(0, page.limit);
    const last = shown.at(-1);
    return {
      items: shown.map((row) => ({ ...ruleView(row, organization), freeze: freezeOf(row), isManaged: row.isManaged })),
      next: last && rows.length > page.limit ? positionOf(last) : null,
    };
  }

  /** What a rule about retention would delete now, estimated from the stacks that can be examined within 2 s. Null for other kinds. */
  async estimate(
    { tokenId }: Caller,
    organization: string,
    rule: NewRule,
    replacedId: string | null,
  ): Promise<RetentionEstimate | null> {
    if (!isRetentionRule(rule)) return null;
    const { facts, id } = await getListedOrganization(this.#db, tokenId, organization);
    const readable = facts === null ? null : (JSON.parse(facts) as object);
    const begun = performance.now();
    const isOver = () => performance.now() - begun > estimateMs;
    return estimateRetention(this.#db, id, rule, { facts: readable, replacedId, isOver });
  }

  /** The stacks that a rule would apply to, as far as the caller may read them, and when it would be in force. */
  async preview({ tokenId }: Caller, organization: string, rule: NewRule) {
    const { facts, id } = await getListedOrganization(this.#db, tokenId, organization);
    const readable = facts === null ? null : (JSON.parse(facts) as object);
    const rules = createUpdateRuleRepository(this.#db);
    const stacks = await rules.listMatched(id, rule, readable, maxCounted + 1);
    return {
      replaces: await rules.findReplaced(id, rule),
      scope: describeScope(rule, organization),
      /** At most 1,000. */
      stackCount: Math.min(stacks.length, maxCounted),
      hasMoreStacks: stacks.length > maxCounted,
      stacks: stacks.slice(0, maxNamed),
      freeze:
        rule.kind === 'freeze'
          ? timesView(freezeTimes(rule.settings as RuleSettings<'freeze'>, new Date(), maxWindows))
          : null,
    };
  }
}

interface FreezeState {
  readonly freeze: ReturnType<typeof timesView> | null;
}

/** Times are ISO strings. */
export function ruleView(row: RuleRow, organization: string) {
  const { id, kind, note, setAt, setBy, settings } = row;
  const scope = scopeOf(row);
  return {
    ...{ id, kind, note, setBy, ...scope },
    revision: revisionOfRule(row),
    scope: describeScope(scope, organization),
    settings: JSON.parse(settings) as Record<string, unknown>,
    setAt: setAt.toISOString(),
  };
}

function freezeOf({ kind, now, settings }: PagedRuleRow) {
  if (kind !== 'freeze') return null;
  return timesView(freezeTimes(JSON.parse(settings) as RuleSettings<'freeze'>, now, maxWindows));
}

function timesView({ inForce, next }: FreezeTimes) {
  return {
    inForce: inForce && { until: inForce.until?.toISOString() ?? null },
    next: next.map(({ from, until }) => ({ from: from.toISOString(), until: until.toISOString() })),
  };
}

function positionOf({ id, kind, project, setMicros, stack, tagName, tagValue }: PagedRuleRow): RulePosition {
  return [kind, project ?? '', stack ?? '', tagName ?? '', tagValue ?? '', setMicros, id];
}
