import { type TSchema, Type } from 'typebox';
import { checkpointWrite } from '../../../shared/jobs/job-list.ts';
import { ConflictError } from '../../../shared/platform/errors/errors.ts';
import type { CheckpointKind } from '../../../shared/state/checkpoints/checkpoint-writer.ts';
import { updatePath } from '../../platform/http/paths.ts';
import type { Lease } from '../../platform/http/request.ts';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import { ContractVerbatimCheckpointRequest } from '../../platform/protocol/contract.ts';
import type { UpdateService } from '../../updates/update-service.ts';
import { fencedWrite, fenceOf, type SubmitWrite } from './submit-write.ts';
import { CheckpointDeltaRequest, CheckpointRequest, VerbatimCheckpointRequest } from './writes.schemas.ts';

export interface Services {
  readonly submitWrite: SubmitWrite;
  readonly updates: UpdateService;
}

const paths: Record<CheckpointKind, string> = {
  full: 'checkpoint',
  verbatim: 'checkpointverbatim',
  delta: 'checkpointdelta',
};

const bodies: Record<CheckpointKind, TSchema> = {
  full: CheckpointRequest,
  verbatim: Type.Union([VerbatimCheckpointRequest, ContractVerbatimCheckpointRequest]),
  delta: CheckpointDeltaRequest,
};

/** The ways of a CLI without journaling. Bodies are not parsed here, because their exact bytes matter. */
export function registerCheckpointRoutes(app: RouteScope, services: Services): void {
  for (const kind of ['full', 'verbatim', 'delta'] as const) saveCheckpoint(app, services, kind);
}

function saveCheckpoint(app: RouteScope, { submitWrite, updates }: Services, kind: CheckpointKind): void {
  app.patch(
    `${updatePath}/${paths[kind]}`,
    fencedWrite(bodies[kind], { summary: `Save a ${kind} checkpoint`, tag: 'checkpoints', errorStatuses: [409] }),
    async (request, reply) => {
      const { dialect, lease } = request;
      assertWritesState(lease, kind);
      const fence = fenceOf(lease);
      // Assigned before the body is read, which may take long: checkpoints are ordered by arrival.
      const arrivalSequence = kind === 'full' ? await updates.assignArrivalSequence(lease.updateId) : null;
      await submitWrite(request, checkpointWrite, { kind, dialect, fence, arrivalSequence });
      return reply.code(204).send(null);
    },
  );
}

function assertWritesState(lease: Lease, kind: CheckpointKind): void {
  // Checked before the document is stored. A preview's delta is not stored: there is no checkpoint to apply it to.
  if (!lease.exclusive || (lease.dryRun && kind !== 'delta')) throw new ConflictError('A preview writes no state');
  // Journal positions refer to the base state at the start; a complete state in between would shift them.
  if (lease.journalVersion > 0) throw new ConflictError('This update sends its state as a journal');
}
