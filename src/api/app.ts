import { randomUUID } from 'node:crypto';
import compress from '@fastify/compress';
import swagger from '@fastify/swagger';
import Fastify, { type FastifyInstance, type FastifyPluginAsync, LogController } from 'fastify';
import { webFolder } from '../shared/platform/config/config.ts';
import './platform/http/request.ts';
import type { ApiContext } from './api-context.ts';
import type { ApiServices } from './api-services.ts';
import { createServices } from './create-services.ts';
import { openApiOptions } from './platform/http/openapi.ts';
import { registerAccess } from './identity/plugins/access.ts';
import { registerAccessLog } from './platform/http/access-log.ts';
import { registerAudit } from './audit/audit-plugin.ts';
import { registerBody } from './platform/http/body.ts';
import { registerDialect } from './platform/http/dialect.ts';
import { registerErrors, sendFrameworkError } from './platform/http/errors.ts';
import { registerPrecedence } from './platform/http/precedence.ts';
import { registerAddressRate, registerCallerRate } from './platform/http/request-rate.ts';
import { registerSecurityHeaders } from './platform/http/security-headers.ts';
import { registerSession } from './identity/plugins/session.ts';
import { registerWriteFence } from './platform/http/write-fence.ts';
import { toRouteScope } from './platform/http/route-scope.ts';
import { registerAccessPolicyRoutes } from './access/access-policy.routes.ts';
import { registerAccountRoutes } from './identity/sign-in/account.routes.ts';
import { registerAuditRoutes } from './audit/audit.routes.ts';
import { registerBeginUpdateRoute } from './updates/begin-update.routes.ts';
import { registerCheckpointRoutes } from './state/checkpoints.routes.ts';
import { registerCliLoginRoutes } from './identity/sign-in/cli-login.routes.ts';
import { registerDeletedStackRoutes } from './stacks/deleted-stacks.routes.ts';
import { registerDriftRoutes } from './drift/drift.routes.ts';
import { registerEventRoutes } from './events/events.routes.ts';
import { registerExchangeRoutes } from './identity/exchange/exchange.routes.ts';
import { registerFigureRoutes } from './statistics/figures.routes.ts';
import { registerGrantRoutes } from './access/grants.routes.ts';
import { registerGuardRoutes } from './updates/approvals/guards.routes.ts';
import { registerHealthRoutes } from './platform/health.routes.ts';
import { registerHistoryRoutes } from './updates/history.routes.ts';
import { registerIssuerRoutes } from './identity/issuers.routes.ts';
import { registerJournalRoutes } from './state/journal.routes.ts';
import { registerMemberRoutes } from './identity/members.routes.ts';
import { registerPasskeyRoutes } from './identity/sign-in/passkeys.routes.ts';
import { registerPolicyRoutes } from './policies/policies.routes.ts';
import { registerPolicyArchiveRoutes } from './policies/policy-archives.routes.ts';
import { registerPolicyGroupRoutes } from './policies/policy-groups.routes.ts';
import { registerProviderRoutes } from './identity/sign-in/provider.routes.ts';
import { registerQueueRoutes } from './operator/queues.routes.ts';
import { registerRoleRoutes } from './access/roles.routes.ts';
import { registerScimRoutes } from './identity/scim/scim.routes.ts';
import { registerSearchRoutes } from './search/search.routes.ts';
import { registerSecretRoutes } from './secrets/secrets.routes.ts';
import { registerServiceRoutes } from './platform/service.routes.ts';
import { registerSignInRoutes } from './identity/sign-in/sign-in.routes.ts';
import { registerStackRoutes } from './stacks/stacks.routes.ts';
import { registerStateRoutes } from './state/state.routes.ts';
import { registerTeamRoutes } from './identity/teams.routes.ts';
import { registerTokenRoutes } from './identity/tokens.routes.ts';
import { registerUpdateRuleRoutes } from './updates/rules/update-rules.routes.ts';
import { registerUpdateRoutes } from './updates/updates.routes.ts';
import { registerWebhookRoutes } from './webhooks/webhooks.routes.ts';
import { describeIssues, type SchemaIssue } from './platform/http/schema-issues.ts';
import { createFront } from './platform/server/front.ts';
import { registerTrpc } from './dashboard.routes.ts';
import { compileValidator } from './platform/http/validator-compiler.ts';
import { registerWebAssets } from './platform/http/web-assets.ts';

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
