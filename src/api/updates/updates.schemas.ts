import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { AnyObject, Maybe, StringMap, UnixSeconds } from '../platform/protocol/core.ts';
import { RequiredPolicy } from '../policies/policies.schemas.ts';

/** apitype.UpdateProgramRequest. */
export const CreateUpdateRequest = component(
  'CreateUpdateRequest',
  Type.Object({
    name: Maybe(Type.String()),
    runtime: Maybe(Type.String()),
    main: Maybe(Type.String()),
    description: Maybe(Type.String()),
    options: Maybe(Type.Object({ dryRun: Maybe(Type.Boolean()) }, { additionalProperties: true })),
    config: Maybe(AnyObject),
    metadata: Maybe(
      Type.Object({ message: Maybe(Type.String()), environment: Maybe(AnyObject) }, { additionalProperties: true }),
    ),
  }),
  { name: 'website', runtime: 'nodejs', metadata: { message: 'Deploy the website' } },
);
export type CreateUpdateRequest = Type.Static<typeof CreateUpdateRequest>;

export const CreateUpdateResponse = component(
  'CreateUpdateResponse',
  Type.Object({
    updateID: Type.String(),
    requiredPolicies: Type.Array(RequiredPolicy),
    messages: Type.Array(AnyObject),
  }),
);

/** apitype.StartUpdateRequest. */
export const StartUpdateRequest = component(
  'StartUpdateRequest',
  Type.Object({ tags: Maybe(AnyObject), journalVersion: Maybe(Type.Integer()) }),
  { journalVersion: 1 },
);

export const StartUpdateResponse = component(
  'StartUpdateResponse',
  Type.Object({
    version: Type.Integer({ description: 'The version that the stack will have' }),
    token: Type.String(),
    tokenExpiration: UnixSeconds,
    journalVersion: Type.Optional(Type.Integer()),
  }),
);

/** apitype.BeginUpdateRequest. */
export const BeginUpdateRequest = component(
  'BeginUpdateRequest',
  Type.Object({
    updateKind: Type.Union([
      Type.Literal('update'),
      Type.Literal('preview'),
      Type.Literal('refresh'),
      Type.Literal('destroy'),
      Type.Literal('resource-import', { description: 'Creates an update of kind update' }),
    ]),
    program: CreateUpdateRequest,
    ...StartUpdateRequest.properties,
  }),
  { updateKind: 'update', program: { name: 'website', runtime: 'nodejs' }, journalVersion: 1 },
);

/** apitype.BeginUpdateResponse, without the state, which the CLI then exports. */
export const BeginUpdateResponse = component(
  'BeginUpdateResponse',
  Type.Object({
    ...CreateUpdateResponse.properties,
    ...StartUpdateResponse.properties,
    stack: Type.Object({
      id: Type.String(),
      orgName: Type.String(),
      projectName: Type.String(),
      stackName: Type.String(),
      tags: StringMap,
      version: Type.Integer(),
      activeUpdate: Type.String(),
    }),
  }),
);

/** The position of a waiting call, which its client repeats after a response 307. */
export const QueueQuery = Type.Object({
  entry: Type.Optional(Type.String({ format: 'uuid' })),
  hop: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000 })),
});
export type QueueQuery = Type.Static<typeof QueueQuery>;

/** apitype.RenewUpdateLeaseRequest; `duration` in seconds. */
export const RenewLeaseRequest = component(
  'RenewLeaseRequest',
  Type.Object({ token: Maybe(Type.String()), duration: Maybe(Type.Integer()) }),
  { duration: 300 },
);
export const RenewLeaseResponse = component(
  'RenewLeaseResponse',
  Type.Object({ token: Type.String(), tokenExpiration: UnixSeconds }),
);

export const CompleteUpdateRequest = component(
  'CompleteUpdateRequest',
  Type.Object({
    status: Type.Union([Type.Literal('succeeded'), Type.Literal('failed'), Type.Literal('cancelled')]),
  }),
);

/** apitype.UpdateResults, plus the contract's members of an update. */
export const GetUpdateResponse = component(
  'GetUpdateResponse',
  Type.Object({
    updateID: Type.String(),
    status: Type.String(),
    kind: Type.String(),
    result: Type.String(),
    startTime: UnixSeconds,
    endTime: UnixSeconds,
    version: Type.Integer(),
    message: Type.String(),
    events: Type.Array(AnyObject),
    continuationToken: Type.Union([Type.String(), Type.Null()]),
  }),
);

/** Not a Record of strings: its key pattern `.*` does not match line breaks. */
const IntegerMap = Type.Object({}, { additionalProperties: Type.Integer() });

/** apitype.UpdateInfo. */
const UpdateInfo = component(
  'UpdateInfo',
  Type.Object({
    updateID: Type.String(),
    kind: Type.String(),
    startTime: UnixSeconds,
    endTime: UnixSeconds,
    message: Type.String(),
    // In the contract's dialect, the environment as it was sent, with any values.
    environment: AnyObject,
    config: AnyObject,
    result: Type.String(),
    status: Type.String(),
    version: Type.Integer(),
    resourceChanges: IntegerMap,
    resourceCount: Type.Integer(),
    missingEntries: Type.Optional(
      Type.String({ description: 'Entries that the journal lacked when the update ended, as in `3-4, 7`' }),
    ),
    stateDeletedAt: Type.Optional(Type.String({ description: 'When retention deleted the state of its version' })),
    eventsDeletedAt: Type.Optional(Type.String({ description: 'When retention deleted its events' })),
  }),
);

export const HistoryQuery = Type.Object({
  pageSize: Type.Optional(Type.String()),
  page: Type.Optional(Type.String()),
});
export const PreviewsQuery = Type.Object({
  ...HistoryQuery.properties,
  'output-type': Type.Optional(Type.String()),
});
export const HistoryResponse = component('HistoryResponse', Type.Object({ updates: Type.Array(UpdateInfo) }));
export const LatestUpdateResponse = component('LatestUpdateResponse', Type.Object({ info: UpdateInfo }));
export const PreviewListResponse = component(
  'PreviewListResponse',
  Type.Object({ updates: Type.Array(Type.Object({ updateID: Type.String() })) }),
);
