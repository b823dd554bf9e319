import { Type } from 'typebox';
import { ConflictError } from '../../shared/platform/errors/errors.ts';
import { UpdateParams } from '../../shared/protocol/core.ts';
import { JournalEntriesRequest } from '../../shared/protocol/payloads.ts';
import type { ApiContext } from '../api-context.ts';
import { commitPayload } from '../checkpoints/payload.ts';
import type { RouteScope } from '../route-scope.ts';
import { fenceOf } from './checkpoints.routes.ts';
import { leaseToken, updatePath } from './paths.ts';

/** Journal entries: the CLI's default way to send state (pkg/backend/httpstate/journal/snapshot.go). */
export function registerJournalRoutes(app: RouteScope, context: ApiContext): void {
  app.patch(
    `${updatePath}/journalentries`,
    {
      config: {
        access: { kind: 'lease', fenced: true },
        body: 'payload',
        described: { body: JournalEntriesRequest, refusals: [409] },
      },
      schema: {
        tags: ['checkpoints'],
        summary: 'Append journal entries',
        security: leaseToken,
        params: UpdateParams,
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const { lease } = request;
      if (lease.journalVersion === 0) throw new ConflictError('This update was not started with a journal');
      await commitPayload(context, request, {
        kind: 'journal',
        direct: async (payload) => {
          const { foldPointDue } = await context.journalWriter.append(fenceOf(lease), await payload.inflated());
          if (!foldPointDue) return;
          // Only saves time later; the entries are committed whether or not the queue takes this.
          const job = { name: 'advance-fold', schema: 1, updateId: lease.updateId } as const;
          await context.dispatcher
            .enqueue(job)
            .catch((error: unknown) => request.log.warn({ err: error }, 'snapshot not taken'));
        },
        job: (handover) => ({ name: 'append-journal', schema: 1, fence: fenceOf(lease), ...handover }),
      });
      return reply.code(204).send(null);
    },
  );
}
