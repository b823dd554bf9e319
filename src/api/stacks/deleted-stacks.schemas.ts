import { Type } from 'typebox';
import { IsoTimestamp, Maybe } from '../platform/protocol/core.ts';

export const ListDeletedStacksQuery = Type.Object({ continuationToken: Type.Optional(Type.String()) });

export const ListDeletedStacksResponse = Type.Object({
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
      nameTaken: Type.Boolean({ description: 'Another stack has its name now: it can be restored under another one' }),
    }),
  ),
  continuationToken: Type.Union([Type.String(), Type.Null()]),
});

export const DeletedStackParams = Type.Object({ organization: Type.String(), deletedStackId: Type.String() });

/** Names that are left out stay as they were. */
export const RestoreStackRequest = Type.Union([
  Type.Object({ projectName: Maybe(Type.String()), stackName: Maybe(Type.String()) }),
  Type.Null(),
]);

export const RestoreStackResponse = Type.Object({
  orgName: Type.String(),
  projectName: Type.String(),
  stackName: Type.String(),
});
