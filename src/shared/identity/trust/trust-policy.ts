import { type Static, Type } from 'typebox';
import { Nullable } from '../../platform/schema/standard-schema.ts';
import { maxMatchedChars, nameMatches } from '../../stacks/name-pattern.ts';
import { TokenKind } from '../token-kinds.ts';
import { TokenScope } from '../token-scopes.ts';

/** The signature is verified. */
export type Claims = Readonly<Record<string, unknown>>;

/** Patterns by the path of a claim. All paths must match, each by at least one of its patterns. */
export const TrustRules = Type.Record(Type.String(), Type.Array(Type.String()));
export type TrustRules = Static<typeof TrustRules>;

export const TrustDecision = Type.Union([Type.Literal('allow'), Type.Literal('deny')]);

/** Only a policy that denies may name `any`. */
export const TrustKind = Type.Union([TokenKind, Type.Literal('any')]);
export type TrustKind = Static<typeof TrustKind>;

export const TrustPolicy = Type.Object({
  decision: TrustDecision,
  tokenKind: TrustKind,
  /** The name of the team, or the login. Null in a policy that denies matches any owner. */
  owner: Nullable(Type.String()),
  isAdmin: Type.Boolean(),
  rules: TrustRules,
  scopes: Nullable(Type.Array(TokenScope)),
  maxSeconds: Nullable(Type.Integer()),
});
export type TrustPolicy = Static<typeof TrustPolicy>;

/** `organization` stands for a service token if the policy issues one. */
export interface TrustRequest {
  readonly kind: 'organization' | 'team' | 'personal';
  /** The name of the team, or the login; null for the organization. */
  readonly owner: string | null;
  readonly admin: boolean;
}

export type TrustResult<P> =
  | { readonly allowedBy: P }
  /** Null if no policy allows the request. */
  | { readonly deniedBy: P | null };

/** Any policy that denies wins; otherwise, the first that allows the request decides. */
export function decideTrust<P extends TrustPolicy>(
  policies: readonly P[],
  claims: Claims,
  request: TrustRequest,
): TrustResult<P> {
  const matching = policies.filter((policy) => isAbout(policy, request) && isMatching(policy, claims));
  const denial = matching.find(({ decision }) => decision === 'deny');
  if (denial) return { deniedBy: denial };
  const allowance = matching.find(({ isAdmin }) => isAdmin || !request.admin);
  return allowance ? { allowedBy: allowance } : { deniedBy: null };
}

export function isAbout(
  { decision, owner, tokenKind }: Pick<TrustPolicy, 'decision' | 'owner' | 'tokenKind'>,
  asked: Pick<TrustRequest, 'kind' | 'owner'>,
): boolean {
  if (tokenKind === 'any') return decision === 'deny';
  return requestedKind(tokenKind) === asked.kind && (owner === asked.owner || (decision === 'deny' && owner === null));
}

export function requestedKind(kind: TokenKind): TrustRequest['kind'] {
  return kind === 'service' ? 'organization' : kind;
}

/** A claim that cannot be compared never allows; it denies if a denial names it. */
export function isMatching({ decision, rules }: Pick<TrustPolicy, 'decision' | 'rules'>, claims: Claims): boolean {
  return Object.entries(rules).every(([path, patterns]) => {
    const values = valuesAt(claims, path);
    if (values.length > maxValues) return decision === 'deny';
    return values.some((value) =>
      value.length > maxMatchedChars ? decision === 'deny' : patterns.some((pattern) => nameMatches(pattern, value)),
    );
  });
}

/** An id token has room for about 300 groups with a UUID each. */
const maxValues = 500;

/**
 * For a list, returns each of its values. Names may contain periods (`kubernetes.io`): at each level, only the longest existing name
 * counts. The rest of the path begins at position `at`, beyond the end if nothing is left.
 */
function valuesAt(value: unknown, path: string, at = 0): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((each) => (Array.isArray(each) ? [] : valuesAt(each, path, at)));
  if (at > path.length) return isScalar(value) ? [String(value)] : [];
  if (typeof value !== 'object' || value === null) return [];
  const endOf = (name: string) => at + name.length;
  const isNext = (name: string) =>
    path.startsWith(name, at) && (endOf(name) === path.length || path[endOf(name)] === '.');
  // Iterates over the existing names: a path has room for hundreds, whose combinations take long.
  let longest: string | null = null;
  for (const name of Object.keys(value))
    if (isNext(name) && (longest === null || name.length > longest.length)) longest = name;
  return longest === null ? [] : valuesAt((value as Claims)[longest], path, endOf(longest) + 1);
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
