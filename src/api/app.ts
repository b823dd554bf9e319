import { randomUUID } from 'node:crypto';
import compress from '@fastify/compress';
import swagger from '@fastify/swagger';
import Fastify, { type FastifyInstance, type FastifyPluginAsync, LogController } from 'fastify';
import { webFolder } from '../shared/platform/config/config.ts';
import './request.ts';
import type { ApiContext } from './api-context.ts';
import type { ApiServices } from './api-services.ts';
import { createServices } from './create-services.ts';
import { openApiOptions } from './openapi.ts';
import { registerAccess } from './plugins/access.ts';
import { registerAccessLog } from './plugins/access-log.ts';
import { registerAudit } from './plugins/audit.ts';
import { registerBody } from './plugins/body.ts';
import { registerDialect } from './plugins/dialect.ts';
import { registerErrors, sendFrameworkError } from './plugins/errors.ts';
import { registerPrecedence } from './plugins/precedence.ts';
import { registerAddressRate, registerCallerRate } from './plugins/request-rate.ts';
import { registerSecurityHeaders } from './plugins/security-headers.ts';
import { registerSession } from './plugins/session.ts';
import { registerWriteFence } from './plugins/write-fence.ts';
import { toRouteScope } from './route-scope.ts';
import { registerAccessPolicyRoutes } from './routes/access-policy.routes.ts';
import { registerAccountRoutes } from './routes/account.routes.ts';
import { registerAuditRoutes } from './routes/audit.routes.ts';
import { registerBeginUpdateRoute } from './routes/begin-update.routes.ts';
import { registerCheckpointRoutes } from './routes/checkpoints.routes.ts';
import { registerCliLoginRoutes } from './routes/cli-login.routes.ts';
import { registerDeletedStackRoutes } from './routes/deleted-stacks.routes.ts';
import { registerDriftRoutes } from './routes/drift.routes.ts';
import { registerEventRoutes } from './routes/events.routes.ts';
import { registerExchangeRoutes } from './routes/exchange.routes.ts';
import { registerFigureRoutes } from './routes/figures.routes.ts';
import { registerGrantRoutes } from './routes/grants.routes.ts';
import { registerGuardRoutes } from './routes/guards.routes.ts';
import { registerHealthRoutes } from './routes/health.routes.ts';
import { registerHistoryRoutes } from './routes/history.routes.ts';
import { registerInvitationRoutes } from './routes/invitations.routes.ts';
import { registerIssuerRoutes } from './routes/issuers.routes.ts';
import { registerJournalRoutes } from './routes/journal.routes.ts';
import { registerMemberRoutes } from './routes/members.routes.ts';
import { registerPasskeyRoutes } from './routes/passkeys.routes.ts';
import { registerPolicyRoutes } from './routes/policies.routes.ts';
import { registerPolicyArchiveRoutes } from './routes/policy-archives.routes.ts';
import { registerPolicyGroupRoutes } from './routes/policy-groups.routes.ts';
import { registerProviderRoutes } from './routes/provider.routes.ts';
import { registerQueueRoutes } from './routes/queues.routes.ts';
import { registerRoleRoutes } from './routes/roles.routes.ts';
import { registerScimRoutes } from './routes/scim.routes.ts';
import { registerSearchRoutes } from './routes/search.routes.ts';
import { registerSecretRoutes } from './routes/secrets.routes.ts';
import { registerServiceRoutes } from './routes/service.routes.ts';
import { registerSignInRoutes } from './routes/sign-in.routes.ts';
import { registerStackRoutes } from './routes/stacks.routes.ts';
import { registerStateRoutes } from './routes/state.routes.ts';
import { registerTeamRoutes } from './routes/teams.routes.ts';
import { registerTokenRoutes } from './routes/tokens.routes.ts';
import { registerUpdateRuleRoutes } from './routes/update-rules.routes.ts';
import { registerUpdateRoutes } from './routes/updates.routes.ts';
import { registerWebhookRoutes } from './routes/webhooks.routes.ts';
import { describeIssues, type SchemaIssue } from './schema-issues.ts';
import { createFront } from './server/front.ts';
import { registerTrpc } from './trpc/trpc.routes.ts';
import { compileValidator } from './validator-compiler.ts';
import { registerWebAssets } from './web-assets.ts';

export type App = FastifyInstance;

/** Builds the HTTP application. Its parts are registered explicitly, in the order in which they handle a request. */
export async function buildApi(context: ApiContext): Promise<App> {
  const app = Fastify({
    loggerInstance: context.logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    // Long enough for every valid name and id; longer ones are not found.
    routerOptions: { maxParamLength: 200 },
    frameworkErrors: sendFrameworkError,
    serverFactory: createFront(context),
    // The server below the app responds to these errors.
    clientErrorHandler: () => {},
    forceCloseConnections: 'idle',
    // Requests that have arrived still get their response.
    return503OnClosing: false,
  }) as unknown as App;
  app.setValidatorCompiler(compileValidator);
  app.setSchemaErrorFormatter((issues, part) => new Error(describeIssues(issues as SchemaIssue[], part)));
  registerAccessLog(app, context.metrics);
  registerSecurityHeaders(app);
  if (context.fence) registerWriteFence(app, context.fence);
  await registerWebAssets(app, webFolder);
  registerErrors(app);
  const services = createServices(context);
  // Before the server stops: it waits for all calls to end.
  app.addHook('preClose', async () => {
    services.lockQueue.drain();
    services.live.drain();
  });
  registerAddressRate(app, services);
  registerBody(app, services);
  await app.register(compress, { encodings: ['gzip'], threshold: 1024, globalDecompression: false });
  await app.register(swagger, openApiOptions);
  registerHealthRoutes(app, services);
  registerPolicyArchiveRoutes(toRouteScope(app), services);
  if (services.board) registerQueueRoutes(app, services, services.board);
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

/** The pages for people. */
async function registerPages(scope: FastifyInstance, services: ApiServices): Promise<void> {
  await registerSession(scope, services);
  registerAudit(scope, services);
  const routes = toRouteScope(scope);
  registerSignInRoutes(routes, services);
  registerPasskeyRoutes(routes, services);
  registerProviderRoutes(routes, services);
  registerAccountRoutes(routes, services);
  registerCliLoginRoutes(routes, services);
}

/** Everything under /api and /scim. */
function registerProtocol(scope: FastifyInstance, services: ApiServices): void {
  registerDialect(scope);
  registerPrecedence(scope);
  registerAccess(scope, services);
  registerAudit(scope, services);
  registerCallerRate(scope, services);
  const routes = toRouteScope(scope);
  registerServiceRoutes(routes, services);
  registerStackRoutes(routes, services);
  registerStateRoutes(routes, services);
  registerSecretRoutes(routes, services);
  registerUpdateRoutes(routes, services);
  registerGuardRoutes(routes, services);
  if (services.config.beginUpdate) registerBeginUpdateRoute(routes, services);
  registerCheckpointRoutes(routes, services);
  registerJournalRoutes(routes, services);
  registerEventRoutes(routes, services);
  registerHistoryRoutes(routes, services);
  registerPolicyRoutes(routes, services);
  registerPolicyGroupRoutes(routes, services);
  registerMemberRoutes(routes, services);
  registerInvitationRoutes(routes, services);
  registerAccessPolicyRoutes(routes, services);
  registerUpdateRuleRoutes(routes, services);
  registerDeletedStackRoutes(routes, services);
  registerTeamRoutes(routes, services);
  registerRoleRoutes(routes, services);
  registerGrantRoutes(routes, services);
  registerTokenRoutes(routes, services);
  registerIssuerRoutes(routes, services);
  registerWebhookRoutes(routes, services);
  registerDriftRoutes(routes, services);
  registerSearchRoutes(routes, services);
  registerFigureRoutes(routes, services);
  registerExchangeRoutes(routes, services);
  registerAuditRoutes(routes, services);
  registerScimRoutes(routes, services);
}
