import type { FastifyInstance } from 'fastify';
import type { Config } from '../../../shared/platform/config/config.ts';
import { listExposures, managementSetting } from '../../../shared/platform/config/exposure.ts';
import { pathWarnings } from '../../../shared/platform/config/url-problems.ts';
import { ListenError, startStatusServer } from '../../../shared/platform/telemetry/status-server.ts';
import type { ApiContext } from '../api-context.ts';

/** Connections that may wait to be accepted. The kernel's limit (`net.core.somaxconn`) applies, too. */
const backlog = 4096;

/** URLs with the actual ports (port 0 selects any free one). */
export interface Listening {
  readonly url: string;
  /** Null if the management endpoints are on the port of the service. */
  readonly management: string | null;
}

/** Registers both listeners to be closed at shutdown. Throws ListenError. */
export async function listen(app: FastifyInstance, context: ApiContext): Promise<Listening> {
  const { config, health, lifecycle, logger, metrics } = context;
  for (const warning of [...listExposures(config), ...pathWarnings(config)]) logger.warn(warning);
  lifecycle.onClose('intake', 'http', () => app.close());
  let management: string | null = null;
  if (config.managementListen) {
    const parts = { health, registry: metrics.registry, setting: managementSetting };
    const server = await startStatusServer(config.managementListen, parts);
    // Stays open while current requests and jobs finish, so that operators can still query it.
    lifecycle.onClose('queues', 'management', async () => server.close());
    management = server.url;
  }
  return { url: await listenForClients(app, config), management };
}

async function listenForClients(app: FastifyInstance, { front, listen: address }: Config): Promise<string> {
  try {
    await app.listen({ ...address, backlog });
  } catch (error) {
    throw new ListenError('HOLDFAST_LISTEN', address, error);
  }
  const bound = app.server.address();
  const port = typeof bound === 'object' && bound ? bound.port : address.port;
  const host = ['0.0.0.0', '::'].includes(address.host) ? 'localhost' : address.host;
  return `${front.tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
