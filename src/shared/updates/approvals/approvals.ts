import { InvalidRequestError } from '../../platform/errors/errors.ts';
import { parseReason } from '../reason.ts';
import type { UpdateRules } from '../rules/update-rules.ts';

export const approvableKinds = ['update', 'refresh', 'destroy'] as const;
export type ApprovableKind = (typeof approvableKinds)[number];

const defaultMinutes = 60;
const maxMinutes = 7 * 24 * 60;

/** Throws InvalidRequestError. */
export function parseKind(text: string): ApprovableKind {
  const kind = approvableKinds.find((name) => name === text);
  if (!kind) throw new InvalidRequestError(`The kind of an approval is one of ${approvableKinds.join(', ')}`);
  return kind;
}

/** All rules that limit an update must allow tokens. */
export function mayTokensApprove(rules: UpdateRules): boolean {
  const limiting = [rules.first('change-limit'), ...rules.all('protected-types')].filter((rule) => rule !== null);
  return limiting.length > 0 && limiting.every(({ settings }) => settings.approvers === 'tokens');
}

/** Throws InvalidRequestError. */
export function parseApproval({ minutes = defaultMinutes, reason }: { minutes?: number | undefined; reason: string }) {
  const parsed = parseReason(reason);
  if (parsed === '') throw new InvalidRequestError('An approval needs a reason');
  if (!Number.isInteger(minutes) || minutes < 1 || minutes > maxMinutes)
    throw new InvalidRequestError(`An approval is for 1 to ${maxMinutes} minutes`);
  return { reason: parsed, seconds: minutes * 60 };
}
