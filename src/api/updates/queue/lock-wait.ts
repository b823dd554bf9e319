import type { Tags } from '../../../shared/stacks/tags.ts';
import type { UpdateRules } from '../../../shared/updates/rules/update-rules.ts';
import type { Dialect } from '../../platform/http/request.ts';

/** The stack tag that sets how long updates wait for the stack. */
export const lockWaitTag = 'lock-wait';
const maxWaitSeconds = 86_400;
const unitSeconds = { s: 1, m: 60, h: 3600 };
const durationPattern = /^(\d{1,6})(s|m|h)?$/;

/**
 * The wait in seconds: from the stack's tag (seconds, or a duration like `10m`), otherwise from the organization's rules, otherwise the
 * server's default. Clients of the contract expect an immediate refusal, so only the tag counts for them.
 */
export function lockWaitSeconds(tags: Tags, rules: UpdateRules, dialect: Dialect, defaultSeconds: number): number {
  const seconds = parseLockWait(tags[lockWaitTag]);
  if (seconds !== null) return seconds;
  return dialect === 'contract' ? 0 : (rules.first('lock-wait')?.settings.seconds ?? defaultSeconds);
}

export function lockWaitProblem(text: string | undefined): string | null {
  if (text === undefined || parseLockWait(text) !== null) return null;
  return `The tag ${lockWaitTag} must be a time up to 24 hours, such as 90, 90s, 10m or 1h, not ${JSON.stringify(text)}`;
}

function parseLockWait(text: string | undefined): number | null {
  const [, count, unit] = durationPattern.exec(text ?? '') ?? [];
  if (count === undefined) return null;
  const seconds = Number(count) * unitSeconds[(unit ?? 's') as keyof typeof unitSeconds];
  return seconds <= maxWaitSeconds ? seconds : null;
}
