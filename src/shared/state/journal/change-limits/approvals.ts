import { InvalidRequestError } from '../../../platform/errors/errors.ts';
import type { UpdateRules } from '../../../updates/rules/update-rules.ts';
import { parseReason } from './drain-update.ts';

/** Kinds of updates whose runs can be approved. */
export const approvableKinds = ['update', 'refresh', 'destroy'] as const;
export type ApprovableKind = (typeof approvableKinds)[number];

const commitPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const defaultMinutes = 60;
const maxMinutes = 7 * 24 * 60;

/** The commit that the update runs, as reported by its CLI (pkg/backend/updates.go); null if there are local changes. */
export function commitOf(environment: object): string | null {
  const { 'git.dirty': dirty } = environment as Readonly<Record<string, unknown>>;
  return dirty !== 'true' && dirty !== true ? headOf(environment) : null;
}

/** The commit that is checked out where the update runs, as reported by its CLI, regardless of local changes. Null if it is not known. */
export function headOf(environment: object): string | null {
  const { 'git.head': head } = environment as Readonly<Record<string, unknown>>;
  return typeof head === 'string' && commitPattern.test(head) ? head : null;
}

/** Throws InvalidRequestError. */
export function parseCommit(text: string): string {
  if (!commitPattern.test(text))
    throw new InvalidRequestError(
      'A commit is named by its whole hash, in lower case, as `git rev-parse HEAD` prints it',
    );
  return text;
}

/** Throws InvalidRequestError. */
export function parseKind(text: string): ApprovableKind {
  const kind = approvableKinds.find((name) => name === text);
  if (!kind) throw new InvalidRequestError(`The kind of an approval is one of ${approvableKinds.join(', ')}`);
  return kind;
}

/** Whether tokens without a user may approve what these rules stop: all rules that limit an update must allow it. */
export function mayTokensApprove(rules: UpdateRules): boolean {
  const limiting = [rules.first('change-limit'), ...rules.all('protected-types')].filter((rule) => rule !== null);
  return limiting.length > 0 && limiting.every(({ settings }) => settings.approvers === 'tokens');
}

/** How an approval is given. Throws InvalidRequestError. */
export function parseApproval({ minutes = defaultMinutes, reason }: { minutes?: number | undefined; reason: string }) {
  const parsed = parseReason(reason);
  if (parsed === '') throw new InvalidRequestError('An approval needs a reason');
  if (!Number.isInteger(minutes) || minutes < 1 || minutes > maxMinutes)
    throw new InvalidRequestError(`An approval is for 1 to ${maxMinutes} minutes`);
  return { reason: parsed, seconds: minutes * 60 };
}
