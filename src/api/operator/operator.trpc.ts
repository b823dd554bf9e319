import { Type } from 'typebox';
import { decodeCursor, defaultPage, encodeCursor, Id, input, Name, page, text } from '../access/procedures/inputs.ts';
import { operatorMutation, operatorProcedure, router } from '../access/procedures/trpc.ts';
import { AuditFilter, auditCursor, auditItem, auditQueryOf } from '../audit/audit.trpc.ts';
import type { AuditService } from '../audit/audit-service.ts';
import type { OperatorQueries } from './operator-queries.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly audit: AuditService;
    readonly operatorQueries: OperatorQueries;
  }
}

const LockPosition = Type.Tuple([Type.String({ pattern: '^\\d{1,17}$' }), Id]);
const StoragePosition = Type.Tuple([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Name]);
const FailedJob = Type.Object({
  queue: Type.Union([Type.Literal('small'), Type.Literal('large')]),
  id: text(100),
});
const slowDays = 7;
const maxSlow = 20;

/** For site admins. */
export const operatorRouter = router({
  health: operatorProcedure.query(({ ctx: { services } }) => services.operatorQueries.health()),

  queues: operatorProcedure.query(({ ctx: { services } }) => services.operatorQueries.queues()),

  retryJob: operatorMutation('job.retry')
    .input(input(FailedJob))
    .mutation(async ({ ctx: { audit, services }, input: { id, queue } }) => {
      await services.operatorQueries.retryJob(queue, id, audit);
    }),

  discardJob: operatorMutation('job.discard')
    .input(input(FailedJob))
    .mutation(async ({ ctx: { audit, services }, input: { id, queue } }) => {
      await services.operatorQueries.discardJob(queue, id, audit);
    }),

  /** The oldest first. */
  locks: operatorProcedure
    .input(input(Type.Object(page)))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage } }) => {
      const { items, next } = await services.operatorQueries.locks(decodeCursor(cursor, LockPosition), limit);
      return { items, next: next && encodeCursor(next) };
    }),

  slow: operatorProcedure.query(({ ctx: { services } }) => services.operatorQueries.slow(slowDays, maxSlow)),

  storage: operatorProcedure.query(({ ctx: { services } }) => services.operatorQueries.storage()),

  /** The largest first. */
  organizations: operatorProcedure
    .input(input(Type.Object(page)))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage } }) => {
      const { items, next } = await services.operatorQueries.organizations(
        decodeCursor(cursor, StoragePosition),
        limit,
      );
      return { items, next: next && encodeCursor(next) };
    }),

  /** Events outside organizations, and users' actions on their accounts. Pages work as in `audit.list`. */
  audit: operatorProcedure
    .input(input(Type.Object({ ...AuditFilter.properties, ...page })))
    .query(async ({ ctx: { services }, input: { limit = defaultPage, ...filter } }) => {
      const { events, next } = await services.audit.find(null, auditQueryOf(filter), limit);
      return { items: events.map(auditItem), next: auditCursor(next) };
    }),

  backups: operatorProcedure.query(({ ctx: { services } }) => services.operatorQueries.backups()),

  maintenance: operatorProcedure.query(({ ctx: { services } }) => services.operatorQueries.maintenance()),
});
