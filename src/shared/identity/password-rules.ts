import { InvalidRequestError } from '../platform/errors/errors.ts';

const minCharacters = 12;
const maxCharacters = 256;

/** Throws InvalidRequestError, which names the broken rule. */
export function assertPasswordAllowed(login: string, password: string): void {
  const characters = [...password].length;
  if (characters < minCharacters || characters > maxCharacters)
    throw new InvalidRequestError(`A password has ${minCharacters} to ${maxCharacters} characters`);
  if (!password.isWellFormed()) throw new InvalidRequestError('The password is not valid text');
  if (password.toLowerCase().includes(login.toLowerCase()) && characters < login.length + minCharacters)
    throw new InvalidRequestError('The password must not be derived from the login');
  if (new Set(password).size < 5)
    throw new InvalidRequestError('The password must have at least 5 different characters');
}
