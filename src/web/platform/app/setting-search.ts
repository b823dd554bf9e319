/** What of the page of rules is in the URL. */
export interface RuleSearch {
  /** The rule that a link has led to. */
  readonly rule?: string | undefined;
}

export function parseRuleSearch(search: Readonly<Record<string, unknown>>): RuleSearch {
  const rule = search['rule'];
  return { rule: typeof rule === 'string' && rule !== '' ? rule : undefined };
}

/** What of the page of approvals is in the URL. */
export interface ApprovalSearch {
  /** Those that were given, not those that are asked for. */
  readonly given?: '1' | undefined;
}

export function parseApprovalSearch(search: Readonly<Record<string, unknown>>): ApprovalSearch {
  return { given: search['given'] === '1' ? '1' : undefined };
}

/** What of the page of a webhook is in the URL. */
export interface WebhookSearch {
  /** The delivery that is open. */
  readonly delivery?: string | undefined;
}

export function parseWebhookSearch(search: Readonly<Record<string, unknown>>): WebhookSearch {
  const delivery = search['delivery'];
  return { delivery: typeof delivery === 'string' && delivery !== '' ? delivery : undefined };
}

/** What of the page of policies is in the URL. */
export interface PolicySearch {
  /** The group that is open. */
  readonly group?: string | undefined;
}

export function parsePolicySearch(search: Readonly<Record<string, unknown>>): PolicySearch {
  const group = search['group'];
  return { group: typeof group === 'string' && group !== '' ? group : undefined };
}
