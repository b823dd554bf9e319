/** Changed fields keep their values, the others take what another user has saved. `first` has the values when the form was opened. */
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
