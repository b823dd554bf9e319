import { NotFoundError } from '../../shared/platform/errors/errors.ts';

export function noSuchVersion(version: number | string): NotFoundError {
  return new NotFoundError(`The stack has no version ${version}`);
}
