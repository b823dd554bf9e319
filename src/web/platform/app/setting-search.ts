/** The URL search of the page of rules. */
export interface RuleSearch {
  /** The rule that a link has led to. */
  readonly rule?: string | undefined;
}

export function parseRuleSearch(search: Readonly<Record<string, unknown>>): RuleSearch {
  const rule = search['rule'];
  return { rule: typeof rule === 'string' && rule !== '' ? rule : undefined };
}

/** The URL search of the page of approvals. */
export interface ApprovalSearch {
  /** Given approvals instead of requested ones. */
  readonly given?: '1' | undefined;
}

export function parseApprovalSearch(search: Readonly<Record<string, unknown>>): ApprovalSearch {
  return { given: search['given'] === '1' ? '1' : undefined };
}

/** The URL search of the page of a webhook. */
export interface WebhookSearch {
  readonly delivery?: string | undefined;
}

export function parseWebhookSearch(search: Readonly<Record<string, unknown>>): WebhookSearch {
  const delivery = search['delivery'];
  return { delivery: typeof delivery === 'string' && delivery !== '' ? delivery : undefined };
}

/** The URL search of the page of policies. */
export interface PolicySearch {
  readonly group?: string | undefined;
}

export function parsePolicySearch(search: Readonly<Record<string, unknown>>): PolicySearch {
  const group = search['group'];
  return { group: typeof group === 'string' && group !== '' ? group : undefined };
}
