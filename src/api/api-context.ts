import { StateReader } from '../shared/checkpoints/state-reader.ts';
import type { AppContext } from '../shared/context.ts';
import type { JobDispatcher } from '../shared/platform/queue/dispatcher.ts';
import type { QueueBoard } from '../shared/platform/queue/queue-board.ts';

/** What the API role needs besides the shared context: a way to its workers. */
export interface ApiContext extends AppContext {
  readonly dispatcher: JobDispatcher;
  /** Only where jobs go through Redis. */
  readonly board?: QueueBoard;
}

/** The context of an API whose heavy work goes to `dispatcher`. */
export function createApiContext(
  context: AppContext & { readonly board?: QueueBoard },
  dispatcher: JobDispatcher,
): ApiContext {
  const foldLarge = (updateId: string): Promise<void> => dispatcher.run({ name: 'fold-journal', schema: 1, updateId });
  return { ...context, dispatcher, states: new StateReader({ ...context, foldLarge }) };
}
