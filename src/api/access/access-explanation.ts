import { type Static, Type } from 'typebox';
import {
  decide,
  GrantFacts,
  matchingGrants,
  namesMatch,
  type StackFacts,
  SubjectFacts,
} from '../../shared/access/access-decision.ts';
import { hasPermission, type Permission, type PermissionSet, permissions } from '../../shared/access/permissions.ts';

const IdentifiedGrant = Type.Intersect([GrantFacts, Type.Object({ id: Type.String() })]);

export const HolderFacts = Type.Object({
  ...SubjectFacts.properties,
  grants: Type.Array(IdentifiedGrant),
});
export type HolderFacts = Static<typeof HolderFacts>;

/**
 * A permission is given by `role`, by `grants`, by `scopes` (of a token without a role), or `included` in reading. It is not given because
 * a grant has `denied` it, `nothing` allows it, the `scopes` of the token exclude it, or it `needs` another permission that is missing.
 */
export type AccessReason = 'role' | 'grants' | 'included' | 'scopes' | 'denied' | 'nothing' | 'needs';

export interface ExplainedPermission {
  readonly permission: Permission;
  readonly isAllowed: boolean;
  readonly reason: AccessReason;
  /** Ids of the grants that allow or deny the permission. */
  readonly grantIds: readonly string[];
}

export interface Explanation {
  /** The same set that `decide` returns. */
  readonly held: PermissionSet;
  readonly permissions: readonly ExplainedPermission[];
}

/** `hasRole`: false for tokens of teams and services. */
export function explain(holder: HolderFacts, stack: StackFacts, hasRole: boolean): Explanation {
  const held = decide(holder, stack);
  const matching = matchingGrants(holder.grants, stack);
  // The permissions without the scopes of the token.
  const ofOwner = decide(
    { ...holder, grants: matching.filter(({ deny, token }) => deny || !token), scopes: null },
    stack,
  );
  const scoped = (holder.scopes ?? []).filter((scope) => namesMatch(scope, stack));

  const one = (permission: Permission): Omit<ExplainedPermission, 'permission'> => {
    const giving = matching.filter((grant) => hasPermission(grant.permissions, permission));
    const allowing = giving.filter(({ deny }) => !deny).map(({ id }) => id);
    const denying = giving.filter(({ deny }) => deny).map(({ id }) => id);
    if (hasPermission(held, permission)) {
      const allowed = (reason: AccessReason) => ({ isAllowed: true, reason, grantIds: allowing });
      if (hasRole && hasPermission(holder.base, permission)) return allowed('role');
      if (allowing.length > 0) return allowed('grants');
      return allowed(scoped.some((scope) => hasPermission(scope.permissions, permission)) ? 'scopes' : 'included');
    }
    const refused = (reason: AccessReason, grantIds: readonly string[] = []) => ({
      isAllowed: false,
      reason,
      grantIds,
    });
    if (denying.length > 0) return refused('denied', denying);
    if (hasPermission(ofOwner, permission)) return refused('scopes');
    const isGiven = allowing.length > 0 || (hasRole && hasPermission(holder.base, permission));
    return isGiven ? refused('needs', allowing) : refused('nothing');
  };
  return { held, permissions: permissions.map((permission) => ({ permission, ...one(permission) })) };
}
