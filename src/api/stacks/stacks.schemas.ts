import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { ContractListedStack } from '../platform/protocol/contract.ts';
import { AnyObject, Maybe, StringMap, UnixSeconds } from '../platform/protocol/core.ts';

/** apitype.CreateStackRequest. */
export const CreateStackRequest = component(
  'CreateStackRequest',
  Type.Object({
    stackName: Type.String(),
    tags: Maybe(AnyObject),
    teams: Maybe(Type.Array(Type.String(), { maxItems: 100 })),
    state: Maybe(AnyObject),
    /** Configuration to be stored by the service; rejected. */
    config: Maybe(AnyObject),
    /** An environment of Pulumi ESC; rejected. */
    createManagedEnvironment: Maybe(Type.Boolean()),
  }),
);

export const CreateStackResponse = component(
  'CreateStackResponse',
  Type.Object({
    id: Type.String(),
    orgName: Type.String(),
    projectName: Type.String(),
    stackName: Type.String(),
    tags: StringMap,
    version: Type.Integer(),
    messages: Type.Array(Type.Object({ severity: Type.String(), message: Type.String() })),
  }),
);

/** apitype.Stack. */
export const StackResponse = component(
  'StackResponse',
  Type.Object({
    id: Type.String(),
    orgName: Type.String(),
    projectName: Type.String(),
    stackName: Type.String(),
    tags: StringMap,
    version: Type.Integer(),
    activeUpdate: Type.String(),
    currentOperation: Type.Optional(Type.Object({ kind: Type.String(), author: Type.String(), started: UnixSeconds })),
    /** Our extension: why journal entries are missing from the newest state. The stack rejects changes while it is set. */
    journalError: Type.Optional(Type.String()),
  }),
);

/** apitype.StackSummary. */
export const ListedStack = component(
  'ListedStack',
  Type.Object({
    id: Type.String(),
    orgName: Type.String(),
    projectName: Type.String(),
    stackName: Type.String(),
    tags: Type.Optional(StringMap),
    version: Type.Optional(Type.Integer()),
    activeUpdate: Type.Optional(Type.String()),
    lastUpdate: Type.Optional(UnixSeconds),
    resourceCount: Type.Optional(Type.Integer()),
  }),
);

/** apitype.ListStacksResponse, with stacks in either dialect. */
export const ListStacksResponse = component(
  'ListStacksResponse',
  Type.Object({
    stacks: Type.Array(Type.Union([ListedStack, ContractListedStack])),
    continuationToken: Type.Optional(Type.String()),
  }),
);

export const ListStacksQuery = Type.Object({
  organization: Type.Optional(Type.String()),
  project: Type.Optional(Type.String()),
  tagName: Type.Optional(Type.String()),
  tagValue: Type.Optional(Type.String()),
  continuationToken: Type.Optional(Type.String()),
});

/** `newName` may also be `org/project/stack`, the contract's form. */
export const RenameStackRequest = component(
  'RenameStackRequest',
  Type.Object({ newName: Maybe(Type.String()), newProject: Maybe(Type.String()) }),
  { newName: 'staging', newProject: 'website' },
);

/** Tags by their names. */
export const TagsRequest = component('TagsRequest', AnyObject, { environment: 'production' });

/** Either name is accepted: the CLI sends `force`, the provider `pulumiservice` sends `forceDestroy`. */
export const DeleteStackQuery = Type.Object({
  force: Type.Optional(Type.String()),
  forceDestroy: Type.Optional(Type.String()),
});

export const SetTagRequest = component('SetTagRequest', Type.Object({ name: Type.String(), value: Type.String() }), {
  name: 'environment',
  value: 'production',
});
export const ChangeTagRequest = component(
  'ChangeTagRequest',
  Type.Object({
    name: Type.Optional(Type.String({ description: 'As in the path' })),
    value: Type.String(),
  }),
  { value: 'production' },
);
export const TagParams = Type.Object({
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  tag: Type.String(),
});
