import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';

export const DriftStatusResponse = component(
  'DriftStatusResponse',
  Type.Object({
    driftDetected: Type.Boolean({ description: 'Whether the last run found drift that no update has repaired since' }),
    latestDriftRun: Type.String({ description: 'Id of the last run; empty if there was none' }),
    runInProgress: Type.Boolean(),
  }),
);

export const ListDriftRunsQuery = Type.Object({
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'From 1 on' })),
  pageSize: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'At most 100 are returned' })),
});

const DriftRunUpdate = Type.Object({
  updateId: Type.String(),
  resourceChanges: Type.Optional(Type.Object({}, { additionalProperties: Type.Integer() })),
  modified: Type.String(),
  status: Type.String(),
});

export const ListDriftRunsResponse = component(
  'ListDriftRunsResponse',
  Type.Object({
    driftRuns: Type.Array(
      Type.Object({
        id: Type.String({ description: 'Id of the update that made the comparison' }),
        driftDetected: Type.Boolean(),
        created: Type.String(),
        status: Type.String(),
        detectUpdate: DriftRunUpdate,
        remediateUpdate: Type.Optional(DriftRunUpdate),
      }),
    ),
    itemsPerPage: Type.Integer(),
    total: Type.Integer(),
  }),
);
