import { type TSchema, Type } from 'typebox';
import type { CheckpointKind } from '../../shared/checkpoints/checkpoint-writer.ts';
import { ConflictError } from '../../shared/platform/errors/errors.ts';
import { ContractVerbatimCheckpointRequest } from '../../shared/protocol/contract.ts';
import { UpdateParams } from '../../shared/protocol/core.ts';
import {
  CheckpointDeltaRequest,
  CheckpointRequest,
  VerbatimCheckpointRequest,
} from '../../shared/protocol/payloads.ts';
import type { ApiContext } from '../api-context.ts';
import { commitPayload } from '../checkpoints/payload.ts';
import type { Lease } from '../request.ts';
import type { RouteScope } from '../route-scope.ts';
import { leaseToken, updatePath } from './paths.ts';

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

/** The three forms in which a CLI without journaling sends state. Bodies are not parsed here: their exact bytes count. */
export function registerCheckpointRoutes(app: RouteScope, context: ApiContext): void {
  for (const kind of ['full', 'verbatim', 'delta'] as const) {
    app.patch(
      `${updatePath}/${paths[kind]}`,
      {
        config: {
          access: { kind: 'lease', fenced: true },
          body: 'payload',
          described: { body: bodies[kind], refusals: [409] },
        },
        schema: {
          tags: ['checkpoints'],
          summary: `Save a ${kind} checkpoint`,
          security: leaseToken,
          params: UpdateParams,
          response: { 204: Type.Null() },
        },
      },
      async (request, reply) => {
        const { lease } = request;
        assertWritesState(lease);
        const fence = fenceOf(lease);
        const envelope = request.dialect === 'contract' ? 'contract' : 'cli';
        // Before the body, which may be long on its way: the order is that of the coming.
        const fullOrder = kind === 'full' ? await context.updates.assignFullOrder(lease.updateId) : null;
        await commitPayload(context, request, {
          kind,
          direct: async ({ opened }) => context.writer.write({ kind, envelope, fence, fullOrder, ...(await opened()) }),
          job: (handover) => ({ name: 'apply-checkpoint', schema: 1, kind, envelope, fence, fullOrder, ...handover }),
          // A process that was frozen gives an old call a new place, after the repeat of that call.
          onlyWhileAwaited: kind === 'full',
        });
        return reply.code(204).send(null);
      },
    );
  }
}

/** The part of a lease that a write carries into its commit. */
export function fenceOf({ updateId, stackId, epoch }: Lease) {
  return { updateId, stackId, epoch };
}

function assertWritesState(lease: Lease): void {
  if (!lease.exclusive) throw new ConflictError('A preview writes no state');
  // Its positions refer to the base at the start; a whole state in between would shift them.
  if (lease.journalVersion > 0) throw new ConflictError('This update sends its state as a journal');
}
