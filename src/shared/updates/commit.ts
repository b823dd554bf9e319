import { InvalidRequestError } from '../platform/errors/errors.ts';

const commitPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** The commit that the CLI reports (pkg/backend/updates.go). Null if there are local changes. */
export function commitOf(environment: object): string | null {
  const { 'git.dirty': dirty } = environment as Readonly<Record<string, unknown>>;
  return dirty !== 'true' && dirty !== true ? headOf(environment) : null;
}

/** The checked-out commit that the CLI reports, regardless of local changes. */
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
