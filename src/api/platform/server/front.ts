import type { RequestListener, Server } from 'node:http';
import type { AppContext } from '../../../shared/context.ts';
import { ConnectionLimits } from './connection-limits.ts';
import { createHttpServer } from './http-server.ts';
import { TlsFiles } from './tls-files.ts';

/** Returns a function that creates HTTP servers for the app; they share their connection limits. Throws TlsFilesError. */
export function createFront(context: AppContext): (handler: RequestListener) => Server {
  const { config, lifecycle, logger, metrics } = context;
  const limits = new ConnectionLimits(config, { logger, metrics });
  metrics.gauge('holdfast_connections', 'Open client connections.', () => limits.open);
  const tls = config.front.tls && new TlsFiles(config.front.tls, { logger });
  if (tls) {
    lifecycle.onClose('stores', 'certificate', async () => tls.close());
    metrics.gauge(
      'holdfast_tls_certificate_expiry_seconds',
      'Expiry of the certificate in use, in seconds since 1970.',
      () => tls.expiresAt(),
    );
  }
  return (handler) => createHttpServer(handler, { front: config.front, limits, tls });
}
