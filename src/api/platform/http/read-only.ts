import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ReadOnlyMode } from '../../../shared/platform/read-only/read-only-mode.ts';

export interface Services {
  readonly readOnly: ReadOnlyMode;
}

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Refuses calls that may change something while the installation is read-only, before any byte of their body is read. Exempt are calls of
 * running updates, and routes that give a reason (`config.whileReadOnly`). Once another site has taken over, users can only sign in and
 * out. tRPC procedures decide for themselves.
 */
export function registerReadOnly(app: FastifyInstance, { readOnly }: Services): void {
  // Runs after the hooks for access, which are registered later, so that strangers do not learn the reason.
  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (!readingMethods.has(request.method)) {
      if (!goesOn(request)) readOnly.assertOff();
      else if (isOfProtocol(request)) readOnly.assertNotFenced();
    }
    done(null, payload);
  });
  // A write that was in progress when this process learned of the other site is not acknowledged: the client takes its outcome as unknown.
  app.addHook('onSend', (request, reply, _payload, done) => {
    const isWrite = !readingMethods.has(request.method) && reply.statusCode < 400;
    if (readOnly.isFenced && isWrite && (isOfProtocol(request) || !goesOn(request))) reply.raw.destroy();
    done();
  });
}

function goesOn(request: FastifyRequest): boolean {
  const { access, whileReadOnly } = request.routeOptions.config;
  return access?.kind === 'lease' || access?.kind === 'procedures' || whileReadOnly !== undefined;
}

function isOfProtocol(request: FastifyRequest): boolean {
  return /^\/(api|scim)\//.test(request.routeOptions.url ?? '');
}
