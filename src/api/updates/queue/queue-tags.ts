import type { Tags } from '../../../shared/stacks/tags.ts';
import { assertLockWait } from './lock-wait.ts';
import { assertSupersede } from './superseding.ts';

/** Throws InvalidRequestError if a tag that says how updates wait has no meaning: nobody would learn why they do not. */
export function assertQueueTags(tags: Tags): void {
  assertLockWait(tags);
  assertSupersede(tags);
}
