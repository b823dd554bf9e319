import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { createAuthenticator } from './credentials/authenticator.ts';
import { LeaseAccess } from './credentials/lease-access.ts';
import { registerExchangeRoutes } from './exchange/exchange.routes.ts';
import { ExchangeService } from './exchange/exchange-service.ts';
import { InvitationService } from './invitation-service.ts';
import { registerInvitationRoutes } from './invitations.routes.ts';
import { IssuerService } from './issuer-service.ts';
import { registerIssuerRoutes } from './issuers.routes.ts';
import { MemberService } from './member-service.ts';
import { registerMemberRoutes } from './members.routes.ts';
import { PeopleQueries } from './people-queries.ts';
import { registerScimRoutes } from './scim/scim.routes.ts';
import { ScimGroupService } from './scim/scim-group-service.ts';
import { ScimUserService } from './scim/scim-user-service.ts';
import { SetupService } from './setup-service.ts';
import { registerAccountRoutes } from './sign-in/account.routes.ts';
import { registerCliLoginRoutes } from './sign-in/cli-login.routes.ts';
import { CliLoginService } from './sign-in/cli-login-service.ts';
import { registerOidcRoutes } from './sign-in/oidc.routes.ts';
import { OidcService } from './sign-in/oidc-service.ts';
import { PasskeyService } from './sign-in/passkey-service.ts';
import { registerPasskeyRoutes } from './sign-in/passkeys.routes.ts';
import { PasswordService } from './sign-in/password-service.ts';
import { RefusalLog } from './sign-in/refusal-log.ts';
import { SessionService } from './sign-in/session-service.ts';
import { registerSignInRoutes } from './sign-in/sign-in.routes.ts';
import { SignInLimits } from './sign-in/sign-in-limits.ts';
import { registerSignInLinkRoutes } from './sign-in/sign-in-link.routes.ts';
import { SignInLinkService } from './sign-in/sign-in-link-service.ts';
import { TeamService } from './team-service.ts';
import { registerTeamRoutes } from './teams.routes.ts';
import { TokenService } from './token-service.ts';
import { registerTokenRoutes } from './tokens.routes.ts';
import { UserService } from './user-service.ts';

/** Called once per app. */
export function createIdentityServices(context: ApiContext) {
  const credentials = createAuthenticator(context);
  const sessions = new SessionService(context);
  const refusals = new RefusalLog(context);
  return {
    credentials,
    leases: new LeaseAccess(context, credentials),
    users: new UserService(context),
    sessions,
    passwords: new PasswordService(context.db, sessions, new SignInLimits(context.db)),
    signInLinks: new SignInLinkService(context.db, sessions, refusals),
    provider: new OidcService(context, sessions, refusals),
    passkeys: new PasskeyService(context, sessions, refusals),
    cliLogin: new CliLoginService(context.db, sessions),
    members: new MemberService(context),
    peopleQueries: new PeopleQueries(context),
    teams: new TeamService(context),
    tokens: new TokenService(context),
    scimUsers: new ScimUserService(context),
    scimGroups: new ScimGroupService(context),
    invitations: new InvitationService(context),
    issuers: new IssuerService(context),
    exchange: new ExchangeService(context, credentials),
    setup: new SetupService(context),
  };
}

export function registerIdentityDomain(
  routes: RouteScope,
  services: Parameters<typeof registerMemberRoutes>[1] &
    Parameters<typeof registerInvitationRoutes>[1] &
    Parameters<typeof registerTeamRoutes>[1] &
    Parameters<typeof registerTokenRoutes>[1] &
    Parameters<typeof registerIssuerRoutes>[1] &
    Parameters<typeof registerExchangeRoutes>[1] &
    Parameters<typeof registerScimRoutes>[1],
): void {
  registerMemberRoutes(routes, services);
  registerInvitationRoutes(routes, services);
  registerTeamRoutes(routes, services);
  registerTokenRoutes(routes, services);
  registerIssuerRoutes(routes, services);
  registerExchangeRoutes(routes, services);
  registerScimRoutes(routes, services);
}

export function registerSignInPages(
  routes: RouteScope,
  services: Parameters<typeof registerSignInRoutes>[1] &
    Parameters<typeof registerSignInLinkRoutes>[1] &
    Parameters<typeof registerPasskeyRoutes>[1] &
    Parameters<typeof registerOidcRoutes>[1] &
    Parameters<typeof registerAccountRoutes>[1] &
    Parameters<typeof registerCliLoginRoutes>[1],
): void {
  registerSignInRoutes(routes, services);
  registerSignInLinkRoutes(routes, services);
  registerPasskeyRoutes(routes, services);
  registerOidcRoutes(routes, services);
  registerAccountRoutes(routes, services);
  registerCliLoginRoutes(routes, services);
}
