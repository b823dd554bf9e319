import { journalWrite } from '../../../shared/jobs/job-list.ts';
import { ConflictError } from '../../../shared/platform/errors/errors.ts';
import { updatePath } from '../../platform/http/paths.ts';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import { fencedWrite, fenceOf, type SubmitWrite } from './submit-write.ts';
import { JournalEntriesRequest } from './writes.schemas.ts';

export interface Services {
  readonly submitWrite: SubmitWrite;
}

/** The CLI's default way to send state (pkg/backend/httpstate/journal/snapshot.go). */
export function registerJournalRoutes(app: RouteScope, services: Services): void {
  app.patch(
    `${updatePath}/journalentries`,
    fencedWrite(JournalEntriesRequest, { summary: 'Append journal entries', tag: 'checkpoints', errorStatuses: [409] }),
    async (request, reply) => {
      const { lease } = request;
      if (lease.journalVersion === 0) throw new ConflictError('This update was not started with a journal');
      await services.submitWrite(request, journalWrite, { fence: fenceOf(lease) });
      return reply.code(204).send(null);
    },
  );
}
