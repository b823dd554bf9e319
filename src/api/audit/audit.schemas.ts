import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { AnyObject, UnixSeconds } from '../platform/protocol/core.ts';

export const OrganizationParams = Type.Object({ organization: Type.String() });

const filters = {
  eventType: Type.Optional(Type.String({ description: 'Only this action, e.g. `stack.create`' })),
  user: Type.Optional(Type.String({ description: 'Only events of this login' })),
  startTime: Type.Optional(
    Type.String({ description: 'Only events up to this time: seconds since the epoch, or ISO 8601', maxLength: 40 }),
  ),
  continuationToken: Type.Optional(Type.String({ maxLength: 200 })),
};
export const AuditLogsQuery = Type.Object(filters);
export const AuditExportQuery = Type.Object({
  ...filters,
  format: Type.Optional(Type.String({ description: '`csv` (default), `cef` or `jsonl`' })),
});

/** apitype.ListAuditLogEventsResponse, with more members than the CLI reads. Newest first. */
export const AuditLogsResponse = component(
  'AuditLogsResponse',
  Type.Object({
    auditLogEvents: Type.Array(
      Type.Object({
        timestamp: UnixSeconds,
        event: Type.String(),
        description: Type.String(),
        user: Type.Object({ name: Type.String(), githubLogin: Type.String(), avatarUrl: Type.String() }),
        sourceIP: Type.String(),
        tokenID: Type.Optional(Type.String()),
        tokenName: Type.Optional(Type.String()),
        number: Type.Integer({ description: 'Identifies the event in this installation' }),
        outcome: Type.String(),
        signIn: Type.String(),
        role: Type.String(),
        grantedBy: Type.String(),
        object: Type.String(),
        updateID: Type.Optional(Type.String()),
        requestID: Type.String(),
        userAgent: Type.String(),
        ciRun: AnyObject,
        details: AnyObject,
      }),
    ),
    continuationToken: Type.Optional(Type.String()),
  }),
);
export type AuditLogEvent = Type.Static<typeof AuditLogsResponse>['auditLogEvents'][number];
