import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { IsoTimestamp, Maybe } from '../platform/protocol/core.ts';

export const ListDeletedStacksQuery = Type.Object({ continuationToken: Type.Optional(Type.String()) });

export const ListDeletedStacksResponse = component(
  'ListDeletedStacksResponse',
  Type.Object({
    deletedStacks: Type.Array(
      Type.Object({
        id: Type.String(),
        projectName: Type.String(),
        stackName: Type.String(),
        version: Type.Integer(),
        resourceCount: Type.Integer(),
        deletedAt: IsoTimestamp,
        deletedBy: Type.String(),
        restorableUntil: IsoTimestamp,
        nameTaken: Type.Boolean({
          description: 'Another stack now has its name: it can be restored under another name',
        }),
      }),
    ),
    continuationToken: Type.Union([Type.String(), Type.Null()]),
  }),
);

export const DeletedStackParams = Type.Object({ organization: Type.String(), deletedStackId: Type.String() });

/** Omitted names stay unchanged. */
export const RestoreStackRequest = Type.Union([
  component(
    'RestoreStackRequest',
    Type.Object({ projectName: Maybe(Type.String()), stackName: Maybe(Type.String()) }),
    { stackName: 'restored' },
  ),
  Type.Null(),
]);

export const RestoreStackResponse = component(
  'RestoreStackResponse',
  Type.Object({
    orgName: Type.String(),
    projectName: Type.String(),
    stackName: Type.String(),
  }),
);
