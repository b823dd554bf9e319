import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';
import type { Tags } from '../../../shared/stacks/tags.ts';
import { lockWaitProblem, lockWaitTag } from './lock-wait.ts';
import { supersedeProblem, supersedeTag } from './superseding.ts';

/** What is wrong with the value of a tag about waiting, which would have no effect; null: nothing. */
const problems = [
  [lockWaitTag, lockWaitProblem],
  [supersedeTag, supersedeProblem],
] as const;

/** Throws InvalidRequestError if a tag about waiting is invalid that `before` does not have like that. */
export function assertQueueTags(tags: Tags, before: Tags = {}): void {
  for (const [name, problemOf] of problems) {
    const problem = tags[name] === before[name] ? null : problemOf(tags[name]);
    if (problem !== null) throw new InvalidRequestError(problem);
  }
}

/** The tags, with those of `before` in place of invalid ones about waiting, and what is wrong with these. */
export function withoutInvalidQueueTags(tags: Tags, before: Tags): { tags: Tags; problems: readonly string[] } {
  const kept = Object.assign(Object.create(null), tags) as Tags;
  const found: string[] = [];
  for (const [name, problemOf] of problems) {
    const problem = problemOf(tags[name]);
    if (problem === null) continue;
    found.push(`${problem}: the stack keeps the tag that it had`);
    if (before[name] === undefined) delete kept[name];
    else kept[name] = before[name];
  }
  return { tags: kept, problems: found };
}
