import { Type } from 'typebox';
import { input, page, text } from './inputs.ts';
import { organizationProcedure, router, stackProcedure } from './trpc.ts';

const { cursor: Cursor } = page;
const maxBodyChars = 2_000;

/** An organization: who is in it, and what its admins have set. */
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

  webhooks: organizationProcedure('manage').query(async ({ ctx: { services }, input: { organization } }) => {
    const webhooks = await services.webhooks.list({ organization });
    const items = webhooks.map(({ displayName, events, format, groups, isActive, name, sealed, url }) => ({
      name,
      displayName,
      url,
      format,
      isActive,
      events,
      groups,
      hasSecret: sealed !== null,
    }));
    return { items, next: null };
  }),

  /** What was sent to a webhook last, the newest first. */
  deliveries: organizationProcedure('manage')
    .input(input(Type.Object({ webhook: text(100) })))
    .query(async ({ ctx: { services }, input: { organization, webhook } }) => {
      const { deliveries } = await services.webhooks.listDeliveries({ organization }, webhook);
      const items = deliveries.map(({ at, durationMs, event, id, responseBody, responseStatus, state }) => ({
        id,
        event,
        state,
        at: iso(at),
        durationMs,
        responseStatus,
        responseBody: responseBody?.slice(0, maxBodyChars) ?? null,
      }));
      return { items, next: null };
    }),

  /** Rules for updates: freezes, limits and others. */
  rules: organizationProcedure('manage').query(async ({ ctx: { services }, input: { organization } }) => {
    const rules = await services.updateRules.list(organization);
    const items = rules.map(({ setAt, settings, tagName, tagValue, ...rule }) => ({
      ...rule,
      tag: tagName === null ? null : { name: tagName, value: tagValue },
      settings: JSON.parse(settings) as Record<string, unknown>,
      setAt: iso(setAt),
    }));
    return { items, next: null };
  }),

  /** Approvals of a stack that were asked for last, and those that nobody has given yet. */
  approvals: stackProcedure('read').query(async ({ ctx: { services }, input: ref }) => {
    const approvals = await services.approvals.list(ref);
    const items = approvals.map(
      ({ approvedAt, askedAt, askedTokenId: _token, askedUserId: _user, expiresAt, ...approval }) => ({
        ...approval,
        askedAt: iso(askedAt),
        approvedAt: iso(approvedAt),
        expiresAt: iso(expiresAt),
      }),
    );
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
