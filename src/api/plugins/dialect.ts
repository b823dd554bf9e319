import type { FastifyInstance } from 'fastify';
import { UnsupportedMediaTypeError } from '../../shared/platform/errors/errors.ts';
import type { Dialect } from '../request.ts';

const mediaTypePattern = /application\/vnd\.(pulumi|service)\+(\d{1,6})/g;
const oldestPulumiVersion = 8;

/** Reads the protocol version in Accept. The CLI adds its own to what a call asks for, so there may be several values. */
export function dialectOf(accept: string | undefined): Dialect | null {
  for (const [, family, version] of (accept ?? '').matchAll(mediaTypePattern)) {
    if (family === 'pulumi' && Number(version) >= oldestPulumiVersion) return 'pulumi';
    if (family === 'service' && version === '8') return 'contract';
  }
  return null;
}

/** Sets `request.dialect`; 415 for calls under /api/ that ask for no version we speak. */
export function registerDialect(app: FastifyInstance): void {
  app.decorateRequest('dialect', 'pulumi');
  app.addHook('onRequest', async (request) => {
    const dialect = dialectOf(request.headers.accept);
    if (dialect) request.dialect = dialect;
    else if (request.is404 !== true && request.routeOptions.config.anyAccept !== true) {
      throw new UnsupportedMediaTypeError(
        'The Accept header must name application/vnd.pulumi+8 (or later) or application/vnd.service+8',
      );
    }
  });
}
