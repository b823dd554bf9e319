import type { Static } from 'typebox';
import type { GrantRow } from '../../shared/access/grant-repository.ts';
import { formatStackPattern } from '../../shared/access/grants.ts';
import { namesOf } from '../../shared/access/permissions.ts';
import type { AccessResponse, GrantResponse } from './grants.schemas.ts';
import type { AccessHolder } from './stack-access-service.ts';

export function grantResponse(grant: GrantRow): Static<typeof GrantResponse> {
  const { projectPattern, roleId, roleName, stackPattern, tagName, tagValue, team, token, tokenId, user } = grant;
  const role = roleId === null ? grant.builtInRole : roleName;
  return {
    id: grant.id,
    effect: grant.effect,
    permissions: namesOf(grant.permissions),
    ...(role === null ? {} : { role: { id: roleId ?? role, name: role } }),
    stacks: formatStackPattern({ project: projectPattern, stack: stackPattern }),
    ...(tagName === null ? {} : { tag: { name: tagName, ...(tagValue === null ? {} : { value: tagValue }) } }),
    ...(user === null ? {} : { user }),
    ...(team === null ? {} : { team }),
    ...(tokenId === null ? {} : { token: { id: tokenId, name: token ?? tokenId } }),
    created: grant.createdAt.toISOString(),
  };
}

export function accessHolder(holder: AccessHolder): Static<typeof AccessResponse>['holders'][number] {
  const { explanation, role, token, user } = holder;
  return {
    ...(user === null ? {} : { user: { githubLogin: user.login, name: user.displayName || user.login } }),
    ...(token === null
      ? {}
      : {
          token: {
            id: token.id,
            name: token.name ?? token.id,
            kind: token.kind,
            ...(token.login === null ? {} : { user: token.login }),
            ...(token.team === null ? {} : { team: token.team }),
          },
        }),
    ...(role === null ? {} : { role }),
    permissions: namesOf(explanation.held),
    decisions: explanation.permissions.map(({ grantIds, isAllowed, permission, reason }) => ({
      permission,
      allowed: isAllowed,
      reason,
      grants: [...grantIds],
    })),
  };
}
