import type { FastifyInstance } from 'fastify';
import { runFirst } from '../../../shared/platform/db/connection-gate.ts';

/** Lets the calls of routes with `goesFirst` have connections to Postgres before other calls. */
export function registerPrecedence(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.routeOptions.config.goesFirst) runFirst(done);
    else done();
  });
}
