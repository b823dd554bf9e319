import type { StackRow } from '../../../shared/stacks/stack-repository.ts';
import { cancelHint, DeferredError } from '../../../shared/updates/deferred.ts';
import { type ApplicableRule, describeScope, type UpdateRules } from '../../../shared/updates/rules/update-rules.ts';

export interface Limit {
  /** The key is unique among the limits of all organizations. */
  readonly key: string;
  readonly rule: ApplicableRule<'concurrency'>;
  readonly organizationId: string;
  readonly organization: string;
  readonly projectId: string | null;
  readonly stackId: string | null;
  readonly tag: ApplicableRule['tag'];
  /** The requester: a user, or a token without one. */
  readonly userId: string | null;
  readonly tokenId: string | null;
}

/** The limit is reached, or waiting updates go first. */
export class LimitError extends DeferredError {
  override readonly name = 'LimitError';
  override readonly code = 'limit';
  override readonly mayWait = true;
  override readonly reason = 'limit';
  override readonly state: string;
  readonly limit: Limit;

  constructor(limit: Limit, running: number) {
    const { organization, rule } = limit;
    const { most, per = 'all' } = rule.settings;
    const of = `${describeScope(rule, organization)}${per === 'all' ? '' : `, for each ${per}`}`;
    const note = rule.note === '' ? '' : `: ${rule.note}`;
    super(
      `Too many updates at once: ${running} of the ${most} allowed in ${of} are running${note}. Run it again later, or let updates wait (lock-wait); ${cancelHint}`,
    );
    this.state = `a limit of ${most} updates at once delayed`;
    this.limit = limit;
  }
}

/** All of them must allow the update. */
export function concurrencyLimitsOf(
  rules: UpdateRules,
  stack: StackRow,
  caller: { readonly userId: string | null; readonly tokenId: string },
): readonly Limit[] {
  return rules.all('concurrency').map((rule) => {
    const { per = 'all' } = rule.settings;
    const ofUser = per === 'user';
    const { userId } = caller;
    const tokenId = ofUser && userId === null ? caller.tokenId : null;
    const projectId = per === 'project' || rule.project !== null ? stack.projectId : null;
    const part = ofUser ? (userId ?? tokenId) : per === 'project' ? stack.projectId : '';
    return {
      key: `${rule.id}:${part}`,
      rule,
      organizationId: stack.organizationId,
      organization: stack.organization,
      projectId,
      stackId: rule.stack === null ? null : stack.id,
      tag: rule.tag,
      userId: ofUser ? userId : null,
      tokenId,
    };
  });
}
