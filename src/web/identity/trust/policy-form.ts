import type { IssuerDetails } from '../../platform/app/contract.ts';
import type { Scope } from '../tokens/scopes-field.tsx';

export type Policy = IssuerDetails['policies'][number];

/** A policy while it is edited: patterns of a rule as lines. */
export interface PolicyDraft {
  readonly decision: 'allow' | 'deny';
  readonly tokenType: string;
  readonly owner: string;
  readonly isAdmin: boolean;
  readonly rules: readonly { readonly claim: string; readonly patterns: string }[];
  /** Null: all that the token's owner may do. */
  readonly scopes: readonly Scope[] | null;
  /** Seconds; empty: as the issuer. */
  readonly life: string;
}

export function draftOf(policy: Policy | null): PolicyDraft {
  if (policy === null)
    return {
      decision: 'allow',
      tokenType: 'organization',
      owner: '',
      isAdmin: false,
      rules: [{ claim: 'sub', patterns: '' }],
      scopes: null,
      life: '',
    };
  const { isAdmin, maxSeconds, owner, scopes, tokenType } = policy;
  return {
    decision: policy.decision === 'deny' ? 'deny' : 'allow',
    tokenType,
    owner: owner ?? '',
    isAdmin,
    rules: policy.rules.map(({ claim, patterns }) => ({ claim, patterns: patterns.join('\n') })),
    scopes,
    life: maxSeconds === null ? '' : String(maxSeconds),
  };
}

/** What changes with the decision: what is denied is any token by default, and no policy gives any. */
export function decided({ tokenType }: PolicyDraft, decision: PolicyDraft['decision']): Partial<PolicyDraft> {
  if (decision === 'deny') return { decision, tokenType: 'any' };
  return { decision, tokenType: tokenType === 'any' ? 'organization' : tokenType };
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** Whether a draft says all that the server needs to judge it. */
export function isReady({ life, rules }: PolicyDraft): boolean {
  return (
    /^\d*$/.test(life) &&
    rules.length > 0 &&
    rules.every(({ claim, patterns }) => claim.trim() !== '' && linesOf(patterns).length > 0)
  );
}

/** A policy as it is sent. */
export function toSent(policy: Policy) {
  const { decision, isAdmin, maxSeconds, owner, rules, scopes, tokenType } = policy;
  return {
    decision: decision === 'deny' ? ('deny' as const) : ('allow' as const),
    tokenType,
    ...(owner === null ? {} : { owner }),
    isAdmin,
    rules: rules.map(({ claim, patterns }) => ({ claim, patterns: [...patterns] })),
    ...(scopes === null
      ? {}
      : { scopes: scopes.map(({ permissions, stacks }) => ({ stacks, permissions: [...permissions] })) }),
    maxSeconds,
  };
}

/** A draft as it is sent. */
export function draftToSent({ decision, isAdmin, life, owner, rules, scopes, tokenType }: PolicyDraft) {
  const isAllowed = decision === 'allow';
  const hasOwner = (tokenType === 'team' || tokenType === 'personal') && owner.trim() !== '';
  return {
    decision,
    tokenType,
    ...(hasOwner ? { owner: owner.trim() } : {}),
    isAdmin: isAllowed && tokenType === 'organization' && isAdmin,
    rules: rules.map(({ claim, patterns }) => ({ claim: claim.trim(), patterns: linesOf(patterns) })),
    ...(isAllowed && scopes !== null
      ? { scopes: scopes.map(({ permissions, stacks }) => ({ stacks: stacks.trim(), permissions: [...permissions] })) }
      : {}),
    maxSeconds: life === '' ? null : Number(life),
  };
}
