import { randomUUID } from 'node:crypto';
import compress from '@fastify/compress';
import swagger from '@fastify/swagger';
import Fastify, { type FastifyInstance, type FastifyPluginAsync, LogController } from 'fastify';
import { webFolder } from '../shared/platform/config/config.ts';
import './platform/http/request.ts';
import type { DataOwnership } from '../shared/platform/claim/data-dir-claim.ts';
import { runFirst } from '../shared/platform/db/connection-gate.ts';
import { childOfRequest, type Logger } from '../shared/platform/logger/logger.ts';
import { registerAccessDomain } from './access/access.module.ts';
import { registerAuditDomain } from './audit/audit.module.ts';
import { type ApiServices, createServices } from './create-services.ts';
import { registerTrpc } from './dashboard.routes.ts';
import { registerDriftDomain } from './drift/drift.module.ts';
import { registerEmbedDomain } from './embeds/embeds.module.ts';
import { registerEventDomain } from './events/events.module.ts';
import { registerIdentityDomain, registerSignInPages } from './identity/identity.module.ts';
import { registerAccess } from './identity/plugins/access.ts';
import { registerSession } from './identity/plugins/session.ts';
import { registerQueueRoutes } from './operator/job-queues.routes.ts';
import { registerOperatorDomain } from './operator/operator.module.ts';
import type { ApiContext } from './platform/api-context.ts';
import { registerAudit } from './platform/audit-trail/audit-plugin.ts';
import { registerHealthRoutes } from './platform/health.routes.ts';
import { registerAccessLog } from './platform/http/access-log.ts';
import { registerDialect } from './platform/http/dialect.ts';
import { registerErrors, sendFrameworkError } from './platform/http/errors.ts';
import { openApiOptions } from './platform/http/openapi.ts';
import { registerReadOnly } from './platform/http/read-only.ts';
import { registerBody } from './platform/http/request-body.ts';
import { registerAddressRate, registerCallerRate } from './platform/http/request-rate.ts';
import { registerRequestSpans } from './platform/http/request-span.ts';
import { type RouteScope, toRouteScope } from './platform/http/route-scope.ts';
import {
  compileSerializer,
  compileValidator,
  describeIssues,
  type SchemaIssue,
} from './platform/http/schema-issues.ts';
import { registerSecurityHeaders } from './platform/http/security-headers.ts';
import { registerHeads } from './platform/http/streamed-response.ts';
import { registerWebAssets } from './platform/http/web-assets.ts';
import { createFront } from './platform/server/http-server.ts';
import { registerServiceRoutes } from './platform/service.routes.ts';
import { registerPolicyDomain } from './policies/policies.module.ts';
import { registerPolicyArchiveRoutes } from './policies/policy-archives.routes.ts';
import { registerSearchDomain } from './search/search.module.ts';
import { registerSecretDomain } from './secrets/secrets.module.ts';
import { registerStackDomain } from './stacks/stacks.module.ts';
import { registerStateDomain } from './state/state.module.ts';
import { registerStatisticsDomain } from './statistics/statistics.module.ts';
import { registerUpdateDomain } from './updates/updates.module.ts';
import { registerWebhookDomain } from './webhooks/webhooks.module.ts';

export type App = FastifyInstance;

/** In the order of the API description. */
const domains: readonly ((routes: RouteScope, services: ApiServices) => void)[] = [
  registerServiceRoutes,
  registerStackDomain,
  registerStateDomain,
  registerSecretDomain,
  registerUpdateDomain,
  registerEventDomain,
  registerPolicyDomain,
  registerAccessDomain,
  registerIdentityDomain,
  registerWebhookDomain,
  registerEmbedDomain,
  registerDriftDomain,
  registerSearchDomain,
  registerStatisticsDomain,
  registerAuditDomain,
  registerOperatorDomain,
];

/** The parts are registered in the order in which they handle a request. */
export async function buildApi(context: ApiContext): Promise<App> {
  const app = Fastify({
    loggerInstance: context.logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    childLoggerFactory: (logger, { reqId }) => childOfRequest(logger as Logger, String(reqId)),
    // Every valid name and id is shorter; a longer one gives "not found".
    routerOptions: { maxParamLength: 200 },
    frameworkErrors: sendFrameworkError,
    serverFactory: createFront(context),
    // The server below the app responds to these errors.
    clientErrorHandler: () => {},
    forceCloseConnections: 'idle',
    // Requests that have already arrived get their response.
    return503OnClosing: false,
  }) as unknown as App;
  app.setValidatorCompiler(compileValidator);
  app.setSerializerCompiler(compileSerializer);
  app.setSchemaErrorFormatter((issues, part) => new Error(describeIssues(issues as SchemaIssue[], part)));
  registerRequestSpans(app);
  registerAccessLog(app, context.metrics);
  registerSecurityHeaders(app);
  registerHeads(app);
  registerGoodbye(app, context.lifecycle);
  if (context.dataOwnership) registerOwnershipCheck(app, context.dataOwnership);
  await registerWebAssets(app, webFolder);
  registerErrors(app);
  const services = createServices(context);
  // Before the server stops, which waits for all calls to end.
  app.addHook('preClose', async () => {
    services.updateQueue.drain();
    services.live.drain();
    services.events.drain();
  });
  registerAddressRate(app, services);
  registerReadOnly(app, services);
  registerBody(app, services);
  await app.register(compress, { encodings: ['gzip'], threshold: 1024, globalDecompression: false });
  await app.register(swagger, openApiOptions);
  registerHealthRoutes(app, services);
  registerPolicyArchiveRoutes(toRouteScope(app), services);
  if (services.jobQueueView) registerQueueRoutes(app, services, services.jobQueueView);
  const pages: FastifyPluginAsync = async (scope) => registerPages(scope, services);
  await app.register(pages);
  const dashboard: FastifyPluginAsync = async (scope) => registerTrpc(scope, services);
  await app.register(dashboard);
  await app.register((scope, _options, done) => {
    registerProtocol(scope, services);
    done();
  });
  return app;
}

async function registerPages(scope: FastifyInstance, services: ApiServices): Promise<void> {
  await registerSession(scope, services);
  registerAudit(scope, services);
  registerSignInPages(toRouteScope(scope), services);
}

/**
 * From the beginning of a shutdown, each response ends its connection: a client that kept it would lose its next call when the server
 * closes it.
 */
function registerGoodbye(app: FastifyInstance, lifecycle: ApiContext['lifecycle']): void {
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (lifecycle.isClosing) void reply.header('connection', 'close');
    done();
  });
}

/** Everything under /api and /scim. */
function registerProtocol(scope: FastifyInstance, services: ApiServices): void {
  registerDialect(scope);
  registerPrecedence(scope);
  registerAccess(scope, services);
  registerAudit(scope, services);
  registerCallerRate(scope, services);
  const routes = toRouteScope(scope);
  for (const register of domains) register(routes, services);
}

function registerPrecedence(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.routeOptions.config.goesFirst) runFirst(done);
    else done();
  });
}

/**
 * No write is acknowledged once the data belongs to another server. The check follows the commit: the other server reads writes that were
 * committed before it took over.
 */
function registerOwnershipCheck(app: FastifyInstance, ownership: DataOwnership): void {
  app.addHook('onSend', (request, reply, _payload, done) => {
    const isWrite = request.method !== 'GET' && request.method !== 'HEAD';
    // Without a response, the client correctly treats the outcome as unknown.
    if (isWrite && !ownership.holds()) reply.raw.destroy();
    done();
  });
}
