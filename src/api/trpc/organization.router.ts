import { Type } from 'typebox';
import { input, page, text } from './inputs.ts';
import { organizationProcedure, router } from './trpc.ts';

const { cursor: Cursor } = page;

/** An organization: who is in it, and what was done there. */
export const organizationRouter = router({
  /** In the order of their logins. */
  members: organizationProcedure('read')
    .input(input(Type.Object({ cursor: Cursor })))
    .query(async ({ ctx: { services }, input: { cursor = null, organization } }) => {
      const { continuationToken, members } = await services.members.list(organization, cursor);
      return {
        items: members.map(({ createdAt, ...member }) => ({ ...member, since: iso(createdAt) })),
        next: continuationToken,
      };
    }),

  /** With their members. */
  teams: organizationProcedure('read').query(async ({ ctx: { services }, input: { organization } }) => {
    const teams = await services.teams.list(organization);
    const items = teams.map(({ members, team: { description, displayName, name } }) => ({
      name,
      displayName,
      description,
      members: members.map(({ isAdmin, login }) => ({ login, isAdmin })),
    }));
    return { items, next: null };
  }),

  /** Those of the organization itself and of its services; never a secret. */
  tokens: organizationProcedure('manage').query(async ({ ctx: { caller, services }, input: { organization } }) => {
    const tokens = await services.tokens.list(caller, { of: 'organization', organization });
    const items = tokens.map((token) => ({
      id: token.id,
      kind: token.kind,
      name: token.name,
      description: token.description,
      role: token.role,
      scopes: token.scopes,
      isProvisioning: token.isProvisioning,
      createdAt: iso(token.createdAt),
      createdBy: token.createdBy,
      expiresAt: iso(token.expiresAt),
      lastUsedAt: iso(token.lastUsedAt),
    }));
    return { items, next: null };
  }),

  /** The audit log, newest first. */
  audit: organizationProcedure('manage')
    .input(
      input(
        Type.Object({
          action: Type.Optional(text(100)),
          user: Type.Optional(text(200)),
          /** Only events up to this time. */
          until: Type.Optional(text(40)),
          cursor: Cursor,
        }),
      ),
    )
    .query(async ({ ctx: { services }, input: { action, cursor, organization, until, user } }) => {
      const { events, next } = await services.audit.listPage(organization, {
        ...(action ? { eventType: action } : {}),
        ...(user ? { user } : {}),
        ...(until ? { startTime: until } : {}),
        ...(cursor ? { continuationToken: cursor } : {}),
      });
      const items = events.map((event) => ({
        number: event.number,
        at: iso(event.occurredAt),
        action: event.action,
        outcome: event.outcome,
        actor: event.actor,
        login: event.login,
        tokenName: event.tokenName,
        signIn: event.signIn,
        role: event.role,
        grantedBy: event.grantedBy,
        address: event.address,
        object: event.object,
        updateId: event.updateId,
        requestId: event.requestId,
        details: event.details,
      }));
      return { items, next };
    }),
});

function iso(time: Date): string;
function iso(time: Date | null): string | null;
function iso(time: Date | null): string | null {
  return time?.toISOString() ?? null;
}
