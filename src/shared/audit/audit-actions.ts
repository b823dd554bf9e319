/**
 * Every action of the audit log, with its description. Names are stable: they are stored, filtered by, and used by the alerts of
 * operators.
 */
export const auditActions = {
  'organization.create': 'Created the organization',
  'organization.quota': 'Set the limits of the organization',
  'member.add': 'Added a member',
  'member.role': 'Changed the role of a member',
  'member.remove': 'Removed a member',
  'user.create': 'Created a user',
  'user.deactivate': 'Deactivated a user',
  'user.reactivate': 'Reactivated a user',
  'user.site-admin': 'Made a user a site admin, or an ordinary user again',
  'token.create': 'Created a token',
  'token.revoke': 'Revoked tokens',
  'bootstrap.apply': 'Applied the bootstrap file',
  'stack.create': 'Created a stack',
  'stack.delete': 'Deleted a stack',
  'stack.rename': 'Renamed a stack',
  'stack.tags': 'Replaced the tags of a stack',
  'stack.import': 'Imported a state',
  'stack.restore': 'Restored an earlier state',
  'stack.export': 'Read a state',
  'stack.journal': 'Read a journal',
  'stack.accept': 'Accepted a state without its invalid journal entries',
  'stack.recompact': 'Replayed a journal again',
  'update.create': 'Created an update',
  'update.start': 'Started an update',
  'update.end': 'An update ended',
  'update.cancel': 'Cancelled an update',
  'update.expire': 'The lease of an update ended',
  'secret.decrypt': 'Decrypted secrets',
  'secret.show': 'Showed secrets to a user',
  'key.rotate': 'Rotated data keys',
  'key.rewrap': 'Wrapped data keys by another master key',
  'audit.export': 'Exported the audit log',
} as const;

export type AuditAction = keyof typeof auditActions;
