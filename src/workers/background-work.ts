import type { AppContext } from '../shared/context.ts';
import { startWebhooks } from '../shared/webhooks/delivery-loop.ts';
import { startBackgroundTasks } from './background-tasks.ts';
import { startIndexing } from './search/index-states.ts';
import { startScrub } from './state/scrub-loop.ts';

/** `webhooks` selects the deliveries that this process sends. */
export function startBackgroundWork(context: AppContext, webhooks: Parameters<typeof startWebhooks>[1]): void {
  startBackgroundTasks(context);
  startScrub(context);
  startIndexing(context);
  startWebhooks(context, webhooks);
}
