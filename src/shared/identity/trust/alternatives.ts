import { isDeepStrictEqual } from 'node:util';
import { maxPolicies } from './trust-definitions.ts';
import type { TrustPolicy } from './trust-policy.ts';

/**
 * Returns one equivalent policy for each combination of patterns, so that each claim has one pattern; null if they exceed the limit of an
 * issuer.
 */
export function splitAlternatives<P extends Pick<TrustPolicy, 'rules'>>(policies: readonly P[]): readonly P[] | null {
  const split: P[] = [];
  for (const policy of policies) {
    const rules = Object.entries(policy.rules);
    const count = rules.reduce((product, [, patterns]) => product * patterns.length, 1);
    if (split.length + count > maxPolicies) return null;
    let combined: [string, string[]][][] = [[]];
    for (const [path, patterns] of rules)
      combined = combined.flatMap((before) =>
        patterns.map((pattern): [string, string[]][] => [...before, [path, [pattern]]]),
      );
    for (const each of combined) split.push({ ...policy, rules: Object.fromEntries(each) });
  }
  return split;
}

/**
 * The client knows no alternatives, scopes or token lifetimes. Where `written` equals a present policy as this client reads it, returns the
 * present one, so that fields that the client does not know stay.
 */
export function joinAlternatives(written: readonly TrustPolicy[], present: readonly TrustPolicy[]): TrustPolicy[] {
  const left = present.flatMap((policy) => {
    const parts = splitAlternatives([policy]);
    return parts === null ? [] : [{ policy, parts: parts.map(known) }];
  });
  const joined: TrustPolicy[] = [];
  for (let at = 0; at < written.length; ) {
    const next = written.slice(at).map(known);
    const index = left.findIndex(({ parts }) => isDeepStrictEqual(next.slice(0, parts.length), parts));
    const [found] = index < 0 ? [] : left.splice(index, 1);
    joined.push(found?.policy ?? (written[at] as TrustPolicy));
    at += found?.parts.length ?? 1;
  }
  return joined;
}

function known({ decision, isAdmin, owner, rules, tokenKind }: TrustPolicy) {
  return { decision, isAdmin, owner, rules, tokenKind };
}
