import type { AuditAction } from '../../../shared/audit/audit-actions.ts';
import { ForbiddenError } from '../../../shared/platform/errors/errors.ts';

/** Null: the token was not issued for an id token. */
interface Holder {
  readonly policyId: string | null;
}

interface NeededAccess {
  readonly kind: string;
  readonly permission?: string;
}

/** `run`: allowed for tokens of CI runs within their permissions. `person`: only for users and permanent tokens. */
type Decision = 'run' | 'person';

/** A run and its permissions are temporary, so actions that would outlive it, or affect the permissions of other runs, are for users. */
const decisions: Readonly<Record<AuditAction, Decision>> = {
  'organization.create': 'person',
  'organization.delete': 'person',
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
  'sign-in-link.create': 'person',
  'password.set': 'person',
  'password.remove': 'person',
  'passkey.add': 'person',
  'passkey.remove': 'person',
  'token.create': 'person',
  'token.revoke': 'person',
  'token.rotate': 'person',
  'token.limit': 'person',
  // Gives a run its token in the first place.
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
  // Including the grants that `stack init --teams` adds.
  'grant.add': 'person',
  'grant.remove': 'person',
  'grant.change': 'person',
  'grant.defaults': 'person',
  'role.create': 'person',
  'role.change': 'person',
  'role.remove': 'person',
  'role.assign': 'person',
  'role.unassign': 'person',
  'configuration.apply': 'person',
  'bootstrap.apply': 'person',
  'bundle.begin': 'person',
  'database.loss': 'person',
  'installation.repair': 'person',
  'installation.read-only': 'person',
  'installation.take-over': 'person',
  'site.promote': 'person',
  'site.demote': 'person',
  'site.replace': 'person',
  // Pipelines create, update and remove stacks. Rules and grants protect their names and tags: see permissionsOn.
  'stack.create': 'run',
  'stack.delete': 'run',
  'stack.rename': 'run',
  'stack.tags': 'run',
  'stack.import': 'run',
  'stack.restore': 'run',
  'stack.repair': 'run',
  'stack.hold': 'person',
  'stack.release': 'person',
  'version.pin': 'person',
  'version.unpin': 'person',
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
  'update.evict': 'run',
  'update.stop': 'run',
  'update.expire': 'run',
  'update.break-glass': 'person',
  'approval.ask': 'run',
  'approval.give': 'person',
  // A run may only withdraw its own requests: see ApprovalService.
  'approval.withdraw': 'run',
  'approval.use': 'run',
  'secret.decrypt': 'run',
  'secret.show': 'run',
  // A version is not run until a user enables it in a group.
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
  // The addresses would outlive the run.
  'embed.create': 'person',
  'embed.revoke': 'person',
  'view.create': 'person',
  'view.change': 'person',
  'view.remove': 'person',
  'job.retry': 'person',
  'job.discard': 'person',
  'audit.export': 'person',
};

/** Throws ForbiddenError if a CI run makes a call that is for users only: an action, or any other call for admins of the organization. */
export function assertMayRun({ policyId }: Holder, access: NeededAccess, action: AuditAction | null): void {
  if (action !== null) {
    if (policyId !== null) assertActionOfRun(action);
  } else if (access.kind === 'operator' || (access.kind === 'organization' && access.permission === 'manage')) {
    assertNoRun({ policyId });
  }
}

export function assertNoRun({ policyId }: Holder): void {
  if (policyId !== null) throw new ForbiddenError(managesNothing);
}

export function assertActionOfRun(action: AuditAction): void {
  if (decisions[action] === 'run') return;
  throw new ForbiddenError(action === 'approval.give' ? approvesNothing : managesNothing);
}

export const approvesNothing =
  'A CI run cannot approve. Users can, with a dashboard session or a personal token that was not issued for an id token';

const managesNothing =
  'A CI run cannot manage its organization, whatever the role of its token: use the token of an admin that was not issued for an id token, the dashboard, or holdfast admin';
