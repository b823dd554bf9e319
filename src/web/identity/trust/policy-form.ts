import type { IssuerDetails } from '../../platform/app/procedure-types.ts';
import type { Scope } from '../tokens/scopes.ts';

export type Policy = IssuerDetails['policies'][number];

/** The patterns of a rule are lines of text. */
export interface PolicyDraft {
  readonly decision: 'allow' | 'deny';
  readonly tokenType: string;
  readonly owner: string;
  readonly isAdmin: boolean;
  readonly rules: readonly { readonly claim: string; readonly patterns: string }[];
  /** Null: all permissions of the token's owner. */
  readonly scopes: readonly Scope[] | null;
  /** Seconds; empty: the same as the issuer. */
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

/** Fields that change with the decision: by default, a denial covers any token. A policy that allows must name a kind. */
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

export function isReady({ life, rules }: PolicyDraft): boolean {
  return (
    /^\d*$/.test(life) &&
    rules.length > 0 &&
    rules.every(({ claim, patterns }) => claim.trim() !== '' && linesOf(patterns).length > 0)
  );
}

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
