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

/** The whole installation, for site admins. */
export const operatorRouter = router({
  /** Processes, and the services they need. */
  health: operatorProcedure.query(({ ctx: { services } }) => services.operatorQueries.health()),

  /** Queues with their jobs. */
  queues: operatorProcedure.query(({ ctx: { services } }) => services.operatorQueries.queues()),

  /** Runs a failed job again. */
  retryJob: operatorMutation('job.retry')
    .input(input(FailedJob))
    .mutation(async ({ ctx: { audit, services }, input: { id, queue } }) => {
      await services.operatorQueries.retryJob(queue, id, audit);
    }),

  /** Removes a failed job. */
  discardJob: operatorMutation('job.discard')
    .input(input(FailedJob))
    .mutation(async ({ ctx: { audit, services }, input: { id, queue } }) => {
      await services.operatorQueries.discardJob(queue, id, audit);
    }),

  /** Updates that hold locks, the oldest first. */
  locks: operatorProcedure
    .input(input(Type.Object(page)))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage } }) => {
      const { items, next } = await services.operatorQueries.locks(decodeCursor(cursor, LockPosition), limit);
      return { items, next: next && encodeCursor(next) };
    }),

  /** The slowest updates of the last days. */
  slow: operatorProcedure.query(({ ctx: { services } }) => services.operatorQueries.slow(slowDays, maxSlow)),

  /** The size of the database and of the kept data. */
  storage: operatorProcedure.query(({ ctx: { services } }) => services.operatorQueries.storage()),

  /** Organizations by the size of their data, the largest first. */
  organizations: operatorProcedure
    .input(input(Type.Object(page)))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage } }) => {
      const { items, next } = await services.operatorQueries.organizations(
        decodeCursor(cursor, StoragePosition),
        limit,
      );
      return { items, next: next && encodeCursor(next) };
    }),

  /** The audit log of the server: events outside organizations, and users' actions on their accounts. Pages work as in `audit.list`. */
  audit: operatorProcedure
    .input(input(Type.Object({ ...AuditFilter.properties, ...page })))
    .query(async ({ ctx: { services }, input: { limit = defaultPage, ...filter } }) => {
      const { events, next } = await services.audit.find(null, auditQueryOf(filter), limit);
      return { items: events.map(auditItem), next: auditCursor(next) };
    }),

  /** Scheduled backups, and when one was last verified. */
  backups: operatorProcedure.query(({ ctx: { services } }) => services.operatorQueries.backups()),

  /** Background tasks and their backlogs. */
  maintenance: operatorProcedure.query(({ ctx: { services } }) => services.operatorQueries.maintenance()),
});
