import { isDeepStrictEqual } from 'node:util';
import { maxPolicies } from './trust-definitions.ts';
import type { TrustPolicy } from './trust-policy.ts';

/**
 * Policies with one pattern for each claim that decide the same: one for each combination of patterns. Null if they are more than an issuer
 * may have.
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
 * The policies that a client means who knows neither alternatives nor scopes nor a life of tokens: the present ones where they are written as
 * it reads them, so that it changes nothing of what it does not know.
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
