import type { Tags } from '../../../shared/stacks/tags.ts';
import { assertLockWait } from './lock-wait.ts';
import { assertSupersede } from './superseding.ts';

/** Throws InvalidRequestError if a tag about waiting is invalid: otherwise it would silently have no effect. */
export function assertQueueTags(tags: Tags): void {
  assertLockWait(tags);
  assertSupersede(tags);
}
