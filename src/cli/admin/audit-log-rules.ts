import type { AuditAction } from '../../shared/audit/audit-actions.ts';

/**
 * The audit log in which an action is recorded. `organization`: of the organization that the action concerns. `server`: operators read it.
 * `person`: of the server and of the organizations whose identity provider manages the account, because an account does not concern all
 * organizations of its user. `members`: of the server and of all organizations of the user, because their members change. `token`: of the
 * token's owner; a personal token concerns its user.
 */
export type AuditLogRule = 'organization' | 'server' | 'person' | 'members' | 'token';

/** Actions that do not concern exactly one organization. */
const exceptions = {
  'user.create': 'person',
  'user.deactivate': 'members',
  'user.reactivate': 'members',
  'user.site-admin': 'person',
  'user.link': 'person',
  'session.begin': 'person',
  'session.end': 'person',
  'sign-in-link.create': 'person',
  'password.set': 'person',
  'password.remove': 'person',
  'passkey.add': 'person',
  'passkey.remove': 'person',
  'token.create': 'token',
  'token.revoke': 'token',
  'token.rotate': 'token',
  // Nobody could read the log of the deleted organization.
  'organization.delete': 'server',
  'bundle.begin': 'server',
  'database.loss': 'server',
  'installation.repair': 'server',
  'installation.read-only': 'server',
  'installation.take-over': 'server',
  'site.promote': 'server',
  'site.demote': 'server',
  'site.replace': 'server',
  'key.rewrap': 'server',
  'job.retry': 'server',
  'job.discard': 'server',
} as const satisfies Partial<Record<AuditAction, AuditLogRule>>;

export function logRuleOf(action: AuditAction): AuditLogRule {
  return (exceptions as Partial<Record<AuditAction, AuditLogRule>>)[action] ?? 'organization';
}
