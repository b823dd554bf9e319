import { NotFoundError } from '../../platform/errors/errors.ts';

/** The update of the version is still in the history. */
export class StateDeletedError extends NotFoundError {
  override readonly name = 'StateDeletedError';
  override readonly code = 'state-deleted';
  constructor(stackVersion: number) {
    super(
      `The state of version ${stackVersion} was deleted by a rule keep-versions of the organization; its update is still in the history`,
    );
  }
}

export class EventsDeletedError extends NotFoundError {
  override readonly name = 'EventsDeletedError';
  override readonly code = 'events-deleted';
  constructor() {
    super('The events of this update were deleted by a rule keep-events of the organization');
  }
}
