import { type Static, Type } from 'typebox';
import { Nullable } from '../../platform/schema/standard-schema.ts';
import { maxMatchedChars, nameMatches } from '../../stacks/name-pattern.ts';
import { TokenKind } from '../token-kinds.ts';
import { TokenScope } from '../token-scopes.ts';

/** Claims of an id token with a verified signature. */
export type Claims = Readonly<Record<string, unknown>>;

/** Patterns by the path of a claim. All paths must match, each by at least one of its patterns. */
export const TrustRules = Type.Record(Type.String(), Type.Array(Type.String()));
export type TrustRules = Static<typeof TrustRules>;

export const TrustDecision = Type.Union([Type.Literal('allow'), Type.Literal('deny')]);

/** The kind of token to which a policy applies. `any` stands for every kind; only a policy that denies may name it. */
export const TrustKind = Type.Union([TokenKind, Type.Literal('any')]);
export type TrustKind = Static<typeof TrustKind>;

/** A permission or prohibition for holders of an issuer's tokens. */
export const TrustPolicy = Type.Object({
  decision: TrustDecision,
  tokenKind: TrustKind,
  /** Name of the team, or login. Null in a policy that denies matches any owner. */
  owner: Nullable(Type.String()),
  isAdmin: Type.Boolean(),
  rules: TrustRules,
  scopes: Nullable(Type.Array(TokenScope)),
  maxSeconds: Nullable(Type.Integer()),
});
export type TrustPolicy = Static<typeof TrustPolicy>;

/** The request of a caller with an id token. `organization` stands for a service token if the policy issues one. */
export interface TrustRequest {
  readonly kind: 'organization' | 'team' | 'personal';
  /** Name of the team, or login; null for the organization. */
  readonly owner: string | null;
  readonly admin: boolean;
}

export type TrustResult<P> =
  | { readonly allowedBy: P }
  /** Null if no policy allows the request. */
  | { readonly deniedBy: P | null };

/** Any policy that denies wins; otherwise, the first policy that allows the request decides. */
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

/** Whether a policy applies to tokens of this kind and owner. A service's token is requested as one of the organization. */
export function isAbout(
  { decision, owner, tokenKind }: Pick<TrustPolicy, 'decision' | 'owner' | 'tokenKind'>,
  asked: Pick<TrustRequest, 'kind' | 'owner'>,
): boolean {
  if (tokenKind === 'any') return decision === 'deny';
  return requestedKind(tokenKind) === asked.kind && (owner === asked.owner || (decision === 'deny' && owner === null));
}

/** The kind that a caller requests to get a token of this kind. */
export function requestedKind(kind: TokenKind): TrustRequest['kind'] {
  return kind === 'service' ? 'organization' : kind;
}

/** Whether the claims match the policy. A claim that cannot be compared never allows; it denies if a denial names it. */
export function isMatching({ decision, rules }: Pick<TrustPolicy, 'decision' | 'rules'>, claims: Claims): boolean {
  return Object.entries(rules).every(([path, patterns]) => {
    const values = valuesAt(claims, path);
    if (values.length > maxValues) return decision === 'deny';
    return values.some((value) =>
      value.length > maxMatchedChars ? decision === 'deny' : patterns.some((pattern) => nameMatches(pattern, value)),
    );
  });
}

/** Maximum number of compared values. An id token has room for about 300 groups with a UUID each. */
const maxValues = 500;

/**
 * Returns the values of a claim as text; for a list, each of its values. Names may contain periods (`kubernetes.io`): at each level, only
 * the longest existing name counts. The rest of the path begins at position `at`, beyond the end if nothing is left.
 */
function valuesAt(value: unknown, path: string, at = 0): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((each) => (Array.isArray(each) ? [] : valuesAt(each, path, at)));
  if (at > path.length) return isScalar(value) ? [String(value)] : [];
  if (typeof value !== 'object' || value === null) return [];
  const endOf = (name: string) => at + name.length;
  const isNext = (name: string) =>
    path.startsWith(name, at) && (endOf(name) === path.length || path[endOf(name)] === '.');
  // Iterates over the existing names: a path has room for hundreds of names, whose combinations take long.
  let longest: string | null = null;
  for (const name of Object.keys(value))
    if (isNext(name) && (longest === null || name.length > longest.length)) longest = name;
  return longest === null ? [] : valuesAt((value as Claims)[longest], path, endOf(longest) + 1);
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
