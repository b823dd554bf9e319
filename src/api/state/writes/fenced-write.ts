import { type TSchema, Type } from 'typebox';
import type { LeaseFence } from '../../../shared/updates/lease.ts';
import { leaseToken } from '../../platform/http/paths.ts';
import type { Lease } from '../../platform/http/request.ts';
import { UpdateParams } from '../../platform/protocol/core.ts';

/**
 * Options of the routes by which a running update sends checkpoints, journal entries and engine events. Their bodies are not parsed
 * here, because exact bytes matter. `body`: for the OpenAPI document.
 */
export function fencedWrite(
  body: TSchema,
  { summary, tag, errorStatuses = [] }: { summary: string; tag: string; errorStatuses?: readonly number[] },
) {
  return {
    compress: false,
    config: {
      access: { kind: 'lease', fenced: true },
      rate: 'never',
      audit: { none: 'part of its update, whose start and end are recorded' },
      body: 'payload',
      described: { body, errorStatuses },
    },
    schema: {
      tags: [tag],
      summary,
      security: leaseToken,
      params: UpdateParams,
      response: { 204: Type.Null() },
    },
  } as const;
}

/** The part of a lease that a write checks again when it commits. */
export function fenceOf({ updateId, stackId, epoch }: Lease): LeaseFence {
  return { updateId, stackId, epoch };
}
