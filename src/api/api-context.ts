import type { AppContext } from '../shared/context.ts';
import type { JobDispatcher } from '../shared/platform/queue/dispatcher.ts';

/** What the API role needs besides the shared context: a way to its workers. */
export interface ApiContext extends AppContext {
  readonly dispatcher: JobDispatcher;
}
