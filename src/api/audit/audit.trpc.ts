import { type Static, Type } from 'typebox';
import { auditActions } from '../../shared/audit/audit-actions.ts';
import { actorName, describeEvent } from '../../shared/audit/audit-formats.ts';
import { decodeCursor, defaultPage, encodeCursor, input, page, text } from '../access/procedures/inputs.ts';
import { organizationMutation, organizationProcedure, router } from '../access/procedures/trpc.ts';
import type { AuditPosition, AuditService, ListedEventRow } from './audit-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly audit: AuditService;
  }
}

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const CursorFields = Type.Tuple([Count, Count]);
const Time = text(40);

const { cursor: Cursor } = page;
export const AuditFilter = Type.Object({
  action: Type.Optional(text(100)),
  /** A login, or `operator:` and a system user, or `server:`. */
  actor: Type.Optional(text(200)),
  /** Part of the object, in any case. */
  object: Type.Optional(text(300)),
  outcome: Type.Optional(Type.Union([Type.Literal('done'), Type.Literal('refused')])),
  /** ISO 8601. */
  from: Type.Optional(Time),
  until: Type.Optional(Time),
  cursor: Cursor,
});

export const auditRouter = router({
  /** The newest events come first. A page may be short or empty and still have a next page: the number of scanned events is limited. */
  list: organizationProcedure('manage')
    .input(input(Type.Object({ ...AuditFilter.properties, ...page })))
    .query(async ({ ctx: { services }, input: { limit = defaultPage, organization, ...filter } }) => {
      const { events, next } = await services.audit.find(organization, auditQueryOf(filter), limit);
      return { items: events.map(auditItem), next: auditCursor(next) };
    }),

  actions: organizationProcedure('manage').query(() => ({
    items: Object.entries(auditActions).map(([name, description]) => ({ name, description })),
    next: null,
  })),

  /** The newest events come first. The log records each part of an export as an event. */
  export: organizationMutation('manage', 'audit.export')
    .meta({ whileReadOnly: 'it reads' })
    .input(
      input(
        Type.Object({ ...AuditFilter.properties, format: Type.Union([Type.Literal('csv'), Type.Literal('jsonl')]) }),
      ),
    )
    .mutation(async ({ ctx: { audit, services }, input: { format, organization, ...filter } }) => {
      const { next, text: lines } = await services.audit.exportPage(organization, auditQueryOf(filter), format, audit);
      return { text: lines, next: auditCursor(next) };
    }),
});

export function auditQueryOf({ action, actor, cursor, from, object, outcome, until }: Static<typeof AuditFilter>) {
  const position = decodeCursor(cursor, CursorFields);
  return {
    ...(action ? { action } : {}),
    ...(actor ? { user: actor } : {}),
    ...(object ? { object } : {}),
    ...(outcome ? { outcome } : {}),
    ...(from ? { from } : {}),
    ...(until ? { until } : {}),
    after: position && { micros: position[0], number: position[1] },
  };
}

export function auditCursor(position: AuditPosition | null): string | null {
  return position && encodeCursor([position.micros, position.number]);
}

export function auditItem(event: ListedEventRow) {
  return {
    number: event.number,
    at: event.occurredAt.toISOString(),
    action: event.action,
    description: describeEvent({ ...event, object: '', outcome: 'done' }),
    outcome: event.outcome,
    actor: actorName(event),
    isPerson: event.actor === 'user',
    tokenName: event.tokenName,
    signIn: event.signIn,
    role: event.role,
    grantedBy: event.grantedBy,
    address: event.address,
    userAgent: event.userAgent,
    object: event.object,
    updateId: event.updateId,
    requestId: event.requestId,
    ciRun: event.ciRun === '' ? null : (JSON.parse(event.ciRun) as Record<string, unknown>),
    details: JSON.parse(event.details) as Record<string, unknown>,
  };
}
