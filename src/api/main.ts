import { createClusterContext, createClusterDispatcher } from '../shared/cluster-context.ts';
import type { AppContext } from '../shared/context.ts';
import { applyBootstrap, readBootstrapFile } from '../shared/identity/bootstrap.ts';
import type { Config } from '../shared/platform/config/config.ts';
import type { Logger } from '../shared/platform/logger/logger.ts';
import { createApiContext } from './api-context.ts';
import { buildApi } from './app.ts';
import { listen } from './listen.ts';

/** Starts an API replica: it validates and commits small writes, and hands large ones to the workers. */
export async function startApi(config: Config, logger: Logger): Promise<{ context: AppContext; url: string }> {
  const context = await createClusterContext(config, logger);
  try {
    if (config.bootstrapFile) await applyBootstrap(context.db, readBootstrapFile(config.bootstrapFile));
    const app = await buildApi(createApiContext(context, createClusterDispatcher(context)));
    context.lifecycle.onClose('intake', 'http', () => app.close());
    return { context, url: await listen(app, config.listen) };
  } catch (error) {
    await context.lifecycle.close();
    throw error;
  }
}
