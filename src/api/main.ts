import { createClusterContext, createClusterDispatcher } from '../shared/cluster-context.ts';
import type { AppContext, ContextOverrides } from '../shared/context.ts';
import { bootstrapAtStart } from '../shared/identity/bootstrap-start.ts';
import type { Config } from '../shared/platform/config/config.ts';
import type { Logger } from '../shared/platform/logger/logger.ts';
import { startHeartbeat } from '../shared/platform/processes/heartbeat.ts';
import { startWatches } from '../shared/start-watches.ts';
import { startWebhooks } from '../shared/webhooks/delivery-loop.ts';
import { buildApi } from './app.ts';
import { createApiContext } from './create-api-context.ts';
import { type Listening, listen } from './platform/http/listen.ts';

/** An API replica validates and commits small writes itself, and sends large ones to the workers. */
export async function startApi(
  config: Config,
  logger: Logger,
  overrides: ContextOverrides = {},
): Promise<Listening & { context: AppContext }> {
  const context = await createClusterContext(config, logger, overrides);
  try {
    await bootstrapAtStart(context);
    await startWatches(context);
    // A failure is ignored: the replica can serve without them.
    await context.db
      .openConnections()
      .catch((error: unknown) => logger.debug({ err: error }, 'connections not opened'));
    startHeartbeat(context, 'api');
    const apiContext = await createApiContext(context, createClusterDispatcher(context));
    const app = await buildApi(apiContext);
    // Workers usually have no master keys.
    startWebhooks(context, 'signed');
    return { context, ...(await listen(app, apiContext)) };
  } catch (error) {
    await context.lifecycle.close();
    throw error;
  }
}
