import type { AuditAction } from '../../shared/audit/audit-actions.ts';

/**
 * In whose audit log an action shows. `organization`: that of the organization whose matter it is. `server`: that of the server, which
 * operators read. `person`: that of the server and of the organizations that manage the account by their identity provider, because what
 * somebody does with an account is no matter of every organization that they are a member of. `members`: that of the server and of all
 * organizations of the user, whose members change by it. `token`: as its owner; a personal token is a matter of its person.
 */
export type AuditPlaceRule = 'organization' | 'server' | 'person' | 'members' | 'token';

/** Actions that are not matters of one organization. */
const exceptions = {
  'user.create': 'person',
  'user.deactivate': 'members',
  'user.reactivate': 'members',
  'user.site-admin': 'person',
  'user.link': 'person',
  'session.begin': 'person',
  'session.end': 'person',
  'password.set': 'person',
  'password.remove': 'person',
  'passkey.add': 'person',
  'passkey.remove': 'person',
  'token.create': 'token',
  'token.revoke': 'token',
  'token.rotate': 'token',
  'database.loss': 'server',
  'key.rewrap': 'server',
  'job.retry': 'server',
  'job.discard': 'server',
} as const satisfies Partial<Record<AuditAction, AuditPlaceRule>>;

export function placeRuleOf(action: AuditAction): AuditPlaceRule {
  return (exceptions as Partial<Record<AuditAction, AuditPlaceRule>>)[action] ?? 'organization';
}
