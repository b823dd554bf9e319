import { NotFoundError } from '../../shared/platform/errors/errors.ts';

export function updateNotFound(updateId: string): NotFoundError {
  return new NotFoundError(`There is no update ${JSON.stringify(updateId.slice(0, 60))} in this stack`);
}
