import type { FastifyInstance } from 'fastify';
import type { ReadOnlyMode } from '../../../shared/platform/read-only/read-only-mode.ts';

/** What the routes call. */
export interface Services {
  readonly readOnly: ReadOnlyMode;
}

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Refuses calls that may change something while the installation is read-only, before any byte of their body is read. Calls of
 * running updates go on, and routes that say why they do (`config.whileReadOnly`). Procedures decide by themselves.
 */
export function registerReadOnly(app: FastifyInstance, { readOnly }: Services): void {
  // After the hooks for access, which are registered later: strangers do not learn the reason.
  app.addHook('preParsing', (request, _reply, payload, done) => {
    const { access, whileReadOnly } = request.routeOptions.config;
    const goesOn = access?.kind === 'lease' || access?.kind === 'procedures' || whileReadOnly !== undefined;
    if (!goesOn && !readingMethods.has(request.method)) readOnly.assertOff();
    done(null, payload);
  });
}
