import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';

/** Opaque to clients. `position`: where the next page begins. */
export function encodeContinuation(position: string): string {
  return Buffer.from(position).toString('base64url');
}

/** `read` returns null for an invalid position. */
export function decodeContinuation<T>(token: string, read: (position: string) => T | null): T {
  return parseContinuation(Buffer.from(token, 'base64url').toString('utf8'), read);
}

/** Like `decodeContinuation`, for a token that is the position itself. */
export function parseContinuation<T>(token: string, read: (position: string) => T | null): T {
  const position = read(token);
  if (position === null) throw new InvalidRequestError('The continuationToken is not valid');
  return position;
}
