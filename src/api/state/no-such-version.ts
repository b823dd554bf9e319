import { NotFoundError } from '../../shared/platform/errors/errors.ts';

export function noSuchVersion(version: number): NotFoundError {
  return new NotFoundError(`The stack has no version ${version}`);
}
