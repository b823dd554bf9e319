import type { AuditAction } from '../../../shared/audit/audit-actions.ts';
import { ForbiddenError } from '../../../shared/platform/errors/errors.ts';

/** Of a caller: the policy that gave the token for an id token; null for other tokens. */
interface Holder {
  readonly policyId: string | null;
}

/** What a call needs, as far as it matters here. */
interface NeededAccess {
  readonly kind: string;
  readonly permission?: string;
}

/** `run`: tokens of CI runs may do it, as far as their permissions go. `person`: nobody but people and tokens that were made to stay. */
type Decision = 'run' | 'person';

/**
 * What tokens that were given for an id token may do. A run ends, and so does what it may do: whatever would outlive it, or decide what
 * other runs may do, is for people. Everything that can be recorded has its decision here, so a new action needs one.
 */
const decisions: Readonly<Record<AuditAction, Decision>> = {
  'organization.create': 'person',
  'organization.quota': 'person',
  'member.add': 'person',
  'member.invite': 'person',
  'member.withdraw': 'person',
  'member.accept': 'person',
  'member.decline': 'person',
  'member.leave': 'person',
  'member.role': 'person',
  'member.remove': 'person',
  'member.provision': 'person',
  'user.create': 'person',
  'user.deactivate': 'person',
  'user.reactivate': 'person',
  'user.site-admin': 'person',
  'user.link': 'person',
  'session.begin': 'person',
  'session.end': 'person',
  'password.set': 'person',
  'password.remove': 'person',
  'passkey.add': 'person',
  'passkey.remove': 'person',
  'token.create': 'person',
  'token.revoke': 'person',
  'token.rotate': 'person',
  'token.limit': 'person',
  // How a run gets its token. It has none before.
  'token.exchange': 'run',
  'issuer.add': 'person',
  'issuer.change': 'person',
  'issuer.remove': 'person',
  'issuer.policies': 'person',
  'team.create': 'person',
  'team.change': 'person',
  'team.delete': 'person',
  'team.add': 'person',
  'team.remove': 'person',
  'team.provision': 'person',
  // Also those that `stack init --teams` adds.
  'grant.add': 'person',
  'grant.remove': 'person',
  'grant.defaults': 'person',
  'role.create': 'person',
  'role.change': 'person',
  'role.remove': 'person',
  'role.assign': 'person',
  'role.unassign': 'person',
  'bootstrap.apply': 'person',
  'database.loss': 'person',
  // Pipelines create, update and remove stacks. Their names and tags are held by rules and grants: see permissionsOn.
  'stack.create': 'run',
  'stack.delete': 'run',
  'stack.rename': 'run',
  'stack.tags': 'run',
  'stack.import': 'run',
  'stack.restore': 'run',
  'stack.repair': 'run',
  'stack.export': 'run',
  'stack.undelete': 'person',
  'stack.purge': 'person',
  'stack.journal': 'person',
  'stack.accept': 'person',
  'stack.recompact': 'person',
  'update.create': 'run',
  'update.start': 'run',
  'update.end': 'run',
  'update.cancel': 'run',
  'update.drain': 'run',
  'update.send-away': 'run',
  'update.stop': 'run',
  'update.expire': 'run',
  'update.break-glass': 'person',
  'approval.ask': 'run',
  'approval.give': 'person',
  // What it has asked for itself: see ApprovalService.
  'approval.withdraw': 'run',
  'approval.use': 'run',
  'secret.decrypt': 'run',
  'secret.show': 'run',
  // Nothing runs a version before somebody enables it in a group.
  'policy-pack.begin': 'run',
  'policy-pack.publish': 'run',
  'policy-pack.remove': 'person',
  'policy-group.create': 'person',
  'policy-group.change': 'person',
  'policy-group.remove': 'person',
  'update-rule.set': 'person',
  'update-rule.remove': 'person',
  'key.rotate': 'person',
  'key.rewrap': 'person',
  'webhook.create': 'person',
  'webhook.change': 'person',
  'webhook.remove': 'person',
  'webhook.ping': 'person',
  'webhook.redeliver': 'person',
  'job.retry': 'person',
  'job.discard': 'person',
  'audit.export': 'person',
};

/**
 * Throws ForbiddenError if a CI run calls what is for people: an action, or whatever else admins of the organization do and read there.
 * `action` is that of the call in the audit log, if it has one.
 */
export function assertMayRun({ policyId }: Holder, access: NeededAccess, action: AuditAction | null): void {
  if (action !== null) {
    if (policyId !== null) assertActionOfRun(action);
  } else if (access.kind === 'operator' || (access.kind === 'organization' && access.permission === 'manage')) {
    assertNoRun({ policyId });
  }
}

/** Throws ForbiddenError for a CI run. */
export function assertNoRun({ policyId }: Holder): void {
  if (policyId !== null) throw new ForbiddenError(managesNothing);
}

/** Throws ForbiddenError for an action that no CI run takes. */
export function assertActionOfRun(action: AuditAction): void {
  if (decisions[action] === 'run') return;
  throw new ForbiddenError(action === 'approval.give' ? approvesNothing : managesNothing);
}

export const approvesNothing =
  'A CI run approves nothing: people do, with a session of the dashboard or a personal token that was not given for an id token';

const managesNothing =
  'A CI run does not manage its organization, whatever role its token has: use the token of an admin that was not given for an id token, the dashboard, or holdfast admin';
