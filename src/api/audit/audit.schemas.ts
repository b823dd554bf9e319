import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { AnyObject, UnixSeconds } from '../platform/protocol/core.ts';

export const OrganizationParams = Type.Object({ organization: Type.String() });

const Action = Type.Optional(Type.String({ description: 'Only this action, e.g. `stack.create`' }));
const Login = Type.Optional(Type.String({ description: 'Only events of this login' }));
const time = (range: string) =>
  Type.Optional(
    Type.String({ description: `Only events ${range} this time: seconds since the epoch, or ISO 8601`, maxLength: 40 }),
  );
const continuationToken = Type.Optional(Type.String({ maxLength: 200 }));
const Format = Type.Optional(Type.String({ description: '`csv` (default), `cef` or `jsonl`' }));

const filters = { eventType: Action, user: Login, startTime: time('up to'), continuationToken };
export const AuditLogsQuery = Type.Object(filters);
export type AuditLogsQuery = Type.Static<typeof AuditLogsQuery>;
export const AuditExportQuery = Type.Object({ ...filters, format: Format });

const filtersV2 = {
  ...{ eventFilter: Action, userFilter: Login },
  ...{ startTime: time('from'), endTime: time('up to'), continuationToken },
};
export const AuditLogsQueryV2 = Type.Object(filtersV2);
export type AuditLogsQueryV2 = Type.Static<typeof AuditLogsQueryV2>;
export const AuditExportQueryV2 = Type.Object({ ...filtersV2, format: Format });

/** apitype.ListAuditLogEventsResponse, with more members than the CLI reads. The newest events come first. */
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
export type AuditLogsResponse = Type.Static<typeof AuditLogsResponse>;
export type AuditLogEvent = Type.Static<typeof AuditLogsResponse>['auditLogEvents'][number];
