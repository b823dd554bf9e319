import { InvalidRequestError } from '../platform/errors/errors.ts';

const maxReasonChars = 300;

/** A reason is shown in terminals. Throws InvalidRequestError. */
export function parseReason(text: string): string {
  if (text.length > maxReasonChars || !text.isWellFormed() || /\p{Cc}/u.test(text)) {
    throw new InvalidRequestError(`A reason is one line of at most ${maxReasonChars} characters`);
  }
  return text.trim();
}
