import { InvalidRequestError } from '../platform/errors/errors.ts';

const maxReasonChars = 500;

/** Throws InvalidRequestError. */
export function parseHoldReason(text: string): string {
  const reason = text.trim();
  if (reason === '' || reason.length > maxReasonChars || !reason.isWellFormed() || /\p{Cc}/u.test(reason))
    throw new InvalidRequestError(`The reason of a legal hold is one line of at most ${maxReasonChars} characters`);
  return reason;
}
