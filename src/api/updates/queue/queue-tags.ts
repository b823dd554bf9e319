import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';
import type { Tags } from '../../../shared/stacks/tags.ts';
import { lockWaitProblem, lockWaitTag } from './lock-wait.ts';
import { supersedeProblem, supersedeTag } from './superseding.ts';

/** Each function finds the problem of a tag's value, which would have no effect. */
const problems = [
  [lockWaitTag, lockWaitProblem],
  [supersedeTag, supersedeProblem],
] as const;

/** Ignores an invalid value that `before` has, too. */
export function assertQueueTags(tags: Tags, before: Tags = {}): void {
  for (const [name, problemOf] of problems) {
    const problem = tags[name] === before[name] ? null : problemOf(tags[name]);
    if (problem !== null) throw new InvalidRequestError(problem);
  }
}

/** The values of `before` take the place of invalid queue tags. */
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
