import { Type } from 'typebox';
import { component } from './components.ts';
import { AnyObject, IsoTimestamp, StringMap, UnixSeconds } from './core.ts';

/** Bodies of the written contract (`application/vnd.service+8`) that differ from the CLI's. */

const description = 'With Accept: application/vnd.service+8';

/** Null is not allowed: in the contract, members are absent instead. */
export const ContractCreateUpdateRequest = component(
  'ContractCreateUpdateRequest',
  Type.Object(
    {
      name: Type.Optional(Type.String()),
      runtime: Type.Optional(Type.String()),
      main: Type.Optional(Type.String()),
      description: Type.Optional(Type.String()),
      config: Type.Optional(AnyObject),
      metadata: Type.Optional(
        Type.Object({
          kind: Type.Optional(Type.String()),
          message: Type.Optional(Type.String()),
          environment: Type.Optional(AnyObject),
        }),
      ),
    },
    { description },
  ),
  { name: 'website', runtime: 'nodejs', metadata: { message: 'Deploy the website' } },
);

export const ContractRenewLeaseRequest = component(
  'ContractRenewLeaseRequest',
  Type.Object({ duration: Type.Optional(Type.Integer({ minimum: 1, description: 'In seconds' })) }, { description }),
  { duration: 300 },
);

export const ContractRenameStackRequest = component(
  'ContractRenameStackRequest',
  Type.Object({ newName: Type.String({ description: 'organization/project/stack' }) }, { description }),
);

/** Not a Record of strings: its key pattern `.*` does not match line breaks. */
export const ContractTagsRequest = component(
  'ContractTagsRequest',
  Type.Object({ tags: Type.Object({}, { additionalProperties: Type.String() }) }, { description }),
);

/** The document is assembled from `version` and the bytes of `deployment`. */
export const ContractVerbatimCheckpointRequest = component(
  'ContractVerbatimCheckpointRequest',
  Type.Object(
    {
      version: Type.Integer({ minimum: 1, maximum: 4 }),
      deployment: AnyObject,
      sequenceNumber: Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 }),
    },
    { description },
  ),
);

const stack = {
  orgName: Type.String(),
  projectName: Type.String(),
  stackName: Type.String(),
  tags: StringMap,
  version: Type.Integer(),
};

export const ContractCreateStackResponse = component(
  'ContractCreateStackResponse',
  Type.Object({ id: Type.String(), ...stack }, { description }),
);

export const ContractStackResponse = component(
  'ContractStackResponse',
  Type.Object(
    {
      ...stack,
      activeUpdate: Type.String(),
      /** Our extension, as in the CLI's dialect. */
      journalError: Type.Optional(Type.String()),
    },
    { description },
  ),
);

export const ContractListedStack = component(
  'ContractListedStack',
  Type.Object(
    {
      ...stack,
      activeUpdate: Type.String(),
      lastUpdate: Type.Optional(Type.Object({ kind: Type.String(), status: Type.String(), startTime: UnixSeconds })),
    },
    { description },
  ),
);

export const ContractImportResponse = component(
  'ContractImportResponse',
  Type.Object({ updateID: Type.String() }, { description }),
);

export const ContractCreateUpdateResponse = component(
  'ContractCreateUpdateResponse',
  Type.Object({ updateID: Type.String() }, { description }),
);

export const ContractStartUpdateResponse = component(
  'ContractStartUpdateResponse',
  Type.Object(
    {
      version: Type.Integer({ description: 'The version that the update starts from' }),
      token: Type.String(),
      tokenExpiration: IsoTimestamp,
      journalVersion: Type.Optional(Type.Integer()),
    },
    { description },
  ),
);

export const ContractRenewLeaseResponse = component(
  'ContractRenewLeaseResponse',
  Type.Object({ token: Type.String(), tokenExpiration: IsoTimestamp }, { description }),
);

export const ContractGetUpdateResponse = component(
  'ContractGetUpdateResponse',
  Type.Object(
    {
      status: Type.String(),
      kind: Type.String(),
      result: Type.String(),
      startTime: UnixSeconds,
      endTime: UnixSeconds,
      version: Type.Integer(),
      message: Type.String(),
    },
    { description },
  ),
);

export const ContractEventsResponse = component(
  'ContractEventsResponse',
  Type.Object({ events: Type.Array(AnyObject), continuationToken: Type.String() }, { description }),
);
