import { randomUUID } from 'node:crypto';
import compress from '@fastify/compress';
import swagger from '@fastify/swagger';
import { TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox';
import Fastify, { type FastifyInstance, LogController } from 'fastify';
import './request.ts';
import { registerQueueRoutes } from './admin/queues.routes.ts';
import type { ApiContext } from './api-context.ts';
import type { ApiServices } from './api-services.ts';
import { createServices } from './create-services.ts';
import { registerHealthRoutes } from './health.routes.ts';
import { openApiOptions } from './openapi.ts';
import { registerAccess } from './plugins/access.ts';
import { registerBody } from './plugins/body.ts';
import { registerDialect } from './plugins/dialect.ts';
import { registerErrors, sendError } from './plugins/errors.ts';
import { registerRequestRate } from './plugins/request-rate.ts';
import { registerRequestRecords } from './plugins/request-records.ts';
import { registerBeginUpdateRoute } from './pulumi/begin-update.routes.ts';
import { registerCheckpointRoutes } from './pulumi/checkpoints.routes.ts';
import { registerEventRoutes } from './pulumi/events.routes.ts';
import { registerHistoryRoutes } from './pulumi/history.routes.ts';
import { registerJournalRoutes } from './pulumi/journal.routes.ts';
import { registerSecretRoutes } from './pulumi/secrets.routes.ts';
import { registerServiceRoutes } from './pulumi/service.routes.ts';
import { registerStackRoutes } from './pulumi/stacks.routes.ts';
import { registerStateRoutes } from './pulumi/state.routes.ts';
import { registerUpdateRoutes } from './pulumi/updates.routes.ts';
import { toRouteScope } from './route-scope.ts';
import { createFront } from './server/front.ts';

export type App = FastifyInstance;

/** Builds the HTTP application: parts are registered by hand, in the order in which a request meets them. */
export async function buildApi(context: ApiContext): Promise<App> {
  const app = Fastify({
    loggerInstance: context.logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    // Long enough for every valid name and id; what is longer is not found.
    routerOptions: { maxParamLength: 200 },
    frameworkErrors: (error, request, reply) => void sendError(error, request, reply),
    serverFactory: createFront(context),
    // The server below the app answers them.
    clientErrorHandler: () => {},
    forceCloseConnections: 'idle',
    // What has come in is answered.
    return503OnClosing: false,
  }) as unknown as App;
  app.setValidatorCompiler(TypeBoxValidatorCompiler);
  registerRequestRecords(app, context.metrics);
  registerErrors(app);
  const services = createServices(context);
  registerBody(app, services);
  await app.register(compress, { encodings: ['gzip'], threshold: 1024, globalDecompression: false });
  await app.register(swagger, openApiOptions);
  registerHealthRoutes(app, services);
  if (services.board) registerQueueRoutes(app, services, services.board);
  await app.register((scope, _options, done) => {
    registerProtocol(scope, services);
    done();
  });
  return app;
}

/** Everything under /api. */
function registerProtocol(scope: FastifyInstance, services: ApiServices): void {
  registerDialect(scope);
  registerAccess(scope, services);
  registerRequestRate(scope, services);
  const routes = toRouteScope(scope);
  registerServiceRoutes(routes, services);
  registerStackRoutes(routes, services);
  registerStateRoutes(routes, services);
  registerSecretRoutes(routes, services);
  registerUpdateRoutes(routes, services);
  if (services.config.beginUpdate) registerBeginUpdateRoute(routes, services);
  registerCheckpointRoutes(routes, services);
  registerJournalRoutes(routes, services);
  registerEventRoutes(routes, services);
  registerHistoryRoutes(routes, services);
}
