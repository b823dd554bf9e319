import { createGrantRepository } from '../../shared/access/grant-repository.ts';
import { allowedBy } from '../../shared/access/permissions.ts';
import { createTeamRepository } from '../../shared/identity/team-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ForbiddenError, InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';

const maxTeams = 20;

/**
 * Lets teams update and decrypt a new stack, for `pulumi stack init --teams`. Admins may name any team, other users only their
 * own teams. Throws NotFoundError for unknown teams, ForbiddenError.
 */
export async function grantToTeams(
  tx: Queryable,
  caller: Caller,
  organizationId: string,
  { ref, teams: names }: { readonly ref: StackRef; readonly teams: readonly string[] },
  audit: AuditTrail,
): Promise<void> {
  if (names.length > maxTeams)
    throw new InvalidRequestError(`A stack can be given to at most ${maxTeams} teams at once`);
  const teams = createTeamRepository(tx);
  const mayNameAll = caller.role === 'admin' && !caller.isScoped;
  for (const name of new Set(names)) {
    const team = await teams.find(organizationId, name);
    const isOwn = team !== null && caller.userId !== null && (await teams.isMember(team.id, caller.userId));
    if (!isOwn && !mayNameAll)
      throw new ForbiddenError(
        `You are not in a team ${JSON.stringify(name.slice(0, 100))}: only admins name other teams`,
      );
    if (!team) throw new NotFoundError(`There is no team ${JSON.stringify(name.slice(0, 100))} in ${ref.organization}`);
    const permissions = ['write', 'decrypt'] as const;
    await createGrantRepository(tx).insert({
      organizationId,
      effect: 'allow',
      permissions: allowedBy(permissions),
      projectPattern: ref.project,
      stackPattern: ref.stack,
      tagName: null,
      tagValue: null,
      subject: { teamId: team.id },
      createdBy: caller.userId,
    });
    const details = { effect: 'allow', team: name, permissions };
    await audit.record(tx, {
      action: 'grant.add',
      organization: ref.organization,
      object: formatStackRef(ref),
      details,
    });
  }
}
