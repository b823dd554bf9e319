/**
 * What a form says after somebody else has saved: the fields that were changed in it keep what they say, the others say what is there now.
 * `first`: what it said when it was opened.
 */
export function mergedDraft<Draft extends object>(first: Draft, draft: Draft, latest: Draft): Draft {
  const names = Object.keys(latest) as (keyof Draft)[];
  return Object.fromEntries(
    names.map((name) => [name, isSame(first[name], draft[name]) ? latest[name] : draft[name]]),
  ) as Draft;
}

/** Values of fields are texts, lists and plain objects. */
function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
