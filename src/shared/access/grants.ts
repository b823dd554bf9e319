import { InvalidRequestError } from '../platform/errors/errors.ts';
import { allowedBy, type Grantable, grantable, type PermissionSet } from './permissions.ts';

const patternPattern = /^[A-Za-z0-9_.*-]{1,100}$/;
const teamPattern = /^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,99}$/;
const tokenNamePattern = /^[a-zA-Z0-9][a-zA-Z0-9_.:@ -]{0,99}$/;

/** Null for all. */
export interface StackPattern {
  readonly project: string | null;
  readonly stack: string | null;
}

/** `*` matches any characters. Throws InvalidRequestError. */
export function parseStackPattern(text: string): StackPattern {
  const [project, stack, ...rest] = text.split('/');
  if (project === undefined || stack === undefined || rest.length > 0)
    throw new InvalidRequestError(
      `${JSON.stringify(text.slice(0, 300))} is not of the form project/stack, such as web/prod-* or */*`,
    );
  return { project: toPattern(project), stack: toPattern(stack) };
}

export function formatStackPattern({ project, stack }: StackPattern): string {
  return `${project ?? '*'}/${stack ?? '*'}`;
}

function toPattern(text: string): string | null {
  if (!patternPattern.test(text))
    throw new InvalidRequestError(
      `${JSON.stringify(text.slice(0, 120))} is not a pattern of names: 1 to 100 letters, digits, hyphens, underscores, periods and *`,
    );
  return /^\*+$/.test(text) ? null : text;
}

/** Throws InvalidRequestError. */
export function parsePermissions(names: readonly string[]): Grantable[] {
  const unknown = names.find((name) => !grantable.some((each) => each === name));
  if (unknown !== undefined || names.length === 0)
    throw new InvalidRequestError(
      `There is no permission ${JSON.stringify((unknown ?? '').slice(0, 60))} that can be granted: ${grantable.join(', ')}`,
    );
  return grantable.filter((each) => names.includes(each));
}

/** Parses the limit of roles below admin. Throws InvalidRequestError, also for `outputs`, which no role gives alone. */
export function parseDefaults(names: readonly string[]): PermissionSet {
  if (names.includes('outputs')) throw new InvalidRequestError('No role gives outputs alone. Allow outputs by grants');
  return allowedBy(parsePermissions(names));
}

export function isTeamName(name: string): boolean {
  return teamPattern.test(name);
}

export function isTokenName(name: string): boolean {
  return tokenNamePattern.test(name);
}
