import { actorName, describeEvent } from '../../shared/audit/audit-formats.ts';
import type { ListedEventRow } from '../../shared/audit/audit-list-repository.ts';
import type { AuditLogEvent } from './audit.schemas.ts';

export function auditLogEvent(event: ListedEventRow): AuditLogEvent {
  const name = actorName(event);
  return {
    timestamp: Math.floor(event.occurredAt.getTime() / 1000),
    event: event.action,
    description: describeEvent(event),
    user: { name, githubLogin: name, avatarUrl: '' },
    sourceIP: event.address,
    ...(event.tokenId === null ? {} : { tokenID: event.tokenId, tokenName: event.tokenName }),
    number: event.number,
    outcome: event.outcome,
    signIn: event.signIn,
    role: event.role,
    grantedBy: event.grantedBy,
    object: event.object,
    ...(event.updateId === null ? {} : { updateID: event.updateId }),
    requestID: event.requestId,
    userAgent: event.userAgent,
    ciRun: event.ciRun === '' ? {} : JSON.parse(event.ciRun),
    details: JSON.parse(event.details),
  };
}
