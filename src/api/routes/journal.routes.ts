import { Type } from 'typebox';
import { appendJournal } from '../../shared/jobs/definitions.ts';
import { ConflictError } from '../../shared/platform/errors/errors.ts';
import { UpdateParams } from '../../shared/protocol/core.ts';
import { JournalEntriesRequest } from '../../shared/protocol/payloads.ts';
import type { ApiServices } from '../api-services.ts';
import type { RouteScope } from '../route-scope.ts';
import { fenceOf } from './checkpoints.routes.ts';
import { leaseToken, updatePath } from './paths.ts';

/** Journal entries: the CLI's default way to send state (pkg/backend/httpstate/journal/snapshot.go). */
export function registerJournalRoutes(app: RouteScope, services: ApiServices): void {
  app.patch(
    `${updatePath}/journalentries`,
    {
      compress: false,
      config: {
        access: { kind: 'lease', fenced: true },
        rate: 'never',
        audit: { none: 'part of its update, whose start and end are recorded' },
        body: 'payload',
        described: { body: JournalEntriesRequest, errorStatuses: [409] },
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
      await services.submitWrite(request, appendJournal, { fence: fenceOf(lease) });
      return reply.code(204).send(null);
    },
  );
}
