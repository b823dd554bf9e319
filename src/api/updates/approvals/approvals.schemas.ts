import { Type } from 'typebox';
import { component } from '../../platform/protocol/components.ts';
import { IsoTimestamp, Maybe } from '../../platform/protocol/core.ts';

/** The reason for draining an update, shown to the user who runs it. */
export const DrainUpdateRequest = component('DrainUpdateRequest', Type.Object({ reason: Maybe(Type.String()) }), {
  reason: 'The database moves at noon',
});

export const AskApprovalRequest = component(
  'AskApprovalRequest',
  Type.Object({
    commit: Type.String({ description: 'The full hash' }),
    kind: Maybe(Type.String({ description: '`update` (default), `refresh` or `destroy`' })),
    reason: Maybe(Type.String()),
  }),
);

export const GiveApprovalRequest = component(
  'GiveApprovalRequest',
  Type.Object({
    reason: Type.String(),
    minutes: Maybe(
      Type.Integer({ minimum: 1, maximum: 10_080, description: 'Duration of the approval; 60 by default' }),
    ),
  }),
);

export const ApprovalResponse = component(
  'ApprovalResponse',
  Type.Object({
    id: Type.String(),
    kind: Type.String(),
    commit: Type.String(),
    askedAt: IsoTimestamp,
    askedBy: Type.String(),
    request: Type.String({ description: 'The refused change, or the reason for the request' }),
    updateID: Type.Optional(Type.String({ description: 'The update that was stopped' })),
    valid: Type.Boolean({ description: 'Whether runs of the commit are approved now' }),
    approvedAt: Type.Optional(IsoTimestamp),
    approvedBy: Type.Optional(Type.String()),
    reason: Type.Optional(Type.String()),
    expiresAt: Type.Optional(IsoTimestamp),
  }),
);

export const ListApprovalsResponse = component(
  'ListApprovalsResponse',
  Type.Object({ approvals: Type.Array(ApprovalResponse) }),
);
export const ApprovalParams = Type.Object({
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  approvalId: Type.String(),
});
