import { Type } from 'typebox';
import { input, text } from './inputs.ts';
import { organizationProcedure, router, stackProcedure } from './trpc.ts';

const maxBodyChars = 2_000;

/** What the admins of an organization have set. */
export const organizationRouter = router({
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
});

function iso(time: Date): string;
function iso(time: Date | null): string | null;
function iso(time: Date | null): string | null {
  return time?.toISOString() ?? null;
}
