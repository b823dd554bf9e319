import { permits } from '../../../shared/access/permissions.ts';
import type { AuditSource } from '../../../shared/audit/audit-event.ts';
import type { Access, Caller } from '../http/request.ts';

/** `access`: the access that the call needs. */
export function whoCalls(caller: Caller, access: Access | undefined) {
  return {
    signIn: signInOf(caller),
    userId: caller.userId,
    login: caller.login,
    // Session tokens are internal and not shown.
    tokenId: caller.isSession ? null : caller.tokenId,
    tokenName: caller.tokenName,
    grantedBy: grantedBy(caller, access),
    role: caller.role ?? (caller.siteAdmin ? 'site admin' : null),
  };
}

function signInOf({ isSession, policyId, tokenKind }: Caller): AuditSource['signIn'] {
  if (isSession) return 'session';
  if (policyId !== null) return 'id-token';
  return tokenKind === 'personal' ? 'token' : `${tokenKind}-token`;
}

/** What a call is based on besides the membership of the token's user; null: nothing. */
function grantedBy({ facts, policyId, teamName, tokenKind }: Caller, access: Access | undefined): string | null {
  if (policyId !== null) return `policy:${policyId}`;
  if (tokenKind === 'team') return `team:${teamName}`;
  if (tokenKind !== 'personal') return 'token';
  if (facts === null) return null;
  if (access?.kind === 'organization') return null;
  // Routes that create stacks have no permission of their own.
  const permission = access?.kind === 'stack' ? access.permission : 'write';
  return permits(facts.base, permission) ? null : 'grants';
}
