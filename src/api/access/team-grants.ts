import { createGrantRepository, type NewGrant } from '../../shared/access/grant-repository.ts';
import { allowedBy, permits } from '../../shared/access/permissions.ts';
import type { LockedAccess } from '../../shared/identity/identity-repository.ts';
import { permissionsOn } from '../../shared/identity/locked-rights.ts';
import { createTeamRepository } from '../../shared/identity/team-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ForbiddenError, InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import type { Tags } from '../../shared/stacks/tags.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import { assertGrantBounds } from './grant-bounds.ts';
import { missingPermission } from './stack-access.ts';

const maxTeams = 20;
const given = ['write', 'decrypt'] as const;

interface TeamStack {
  readonly id: string;
  readonly organizationId: string;
  readonly ref: StackRef;
  readonly tags: Tags;
  readonly teams: readonly string[];
}

/**
 * For `pulumi stack init --teams`: teams may update and decrypt the new stack until it is deleted. Admins may name any team, other users
 * only their own teams. Call with the lock on people and before any lock on a project or stack. `access` is null for the creator of the
 * organization. Throws NotFoundError for unknown teams, ForbiddenError and ConflictError.
 */
export async function grantToTeams(
  tx: Queryable,
  caller: Caller,
  access: LockedAccess | null,
  { id, organizationId, ref, tags, teams: names }: TeamStack,
  audit: AuditTrail,
): Promise<void> {
  if (names.length === 0) return;
  if (names.length > maxTeams)
    throw new InvalidRequestError(`A stack can be given to at most ${maxTeams} teams at once`);
  if (caller.isScoped) throw new ForbiddenError('This needs a token without scopes');
  if (access) assertHolds(access, ref, tags);
  const grants = createGrantRepository(tx);
  const added: NewGrant[] = [];
  for (const name of new Set(names)) {
    const teamId = await findOwnTeam(tx, { name, organizationId, ref, userId: caller.userId }, access);
    const subject = { teamId };
    const grant: NewGrant = {
      organizationId,
      effect: 'allow',
      permissions: allowedBy(given),
      projectPattern: ref.project,
      stackPattern: ref.stack,
      tagName: null,
      tagValue: null,
      subject,
      createdBy: caller.userId,
    };
    if ((await grants.findSame(grant)) !== null) continue;
    added.push({ ...grant, stackId: id });
    await audit.record(tx, {
      action: 'grant.add',
      organization: ref.organization,
      object: formatStackRef(ref),
      details: { effect: 'allow', team: name, permissions: given },
    });
  }
  if (added.length === 0) return;
  await grants.insertAll(added);
  await assertGrantBounds(
    tx,
    organizationId,
    added.map(({ subject }) => subject),
  );
}

/** The caller must have the permissions that the teams get. */
function assertHolds(access: LockedAccess, ref: StackRef, tags: Tags): void {
  const held = permissionsOn(access, { ...ref, tags });
  const missing = given.find((permission) => !permits(held, permission));
  if (missing) throw missingPermission(missing, held, ref);
}

async function findOwnTeam(
  tx: Queryable,
  team: { name: string; organizationId: string; ref: StackRef; userId: string | null },
  access: LockedAccess | null,
): Promise<string> {
  const teams = createTeamRepository(tx);
  const found = await teams.find(team.organizationId, team.name);
  const isOwn = found !== null && team.userId !== null && (await teams.isMember(found.id, team.userId));
  const shown = JSON.stringify(team.name.slice(0, 100));
  if (!isOwn && access !== null && access.role !== 'admin')
    throw new ForbiddenError(`You are not in a team ${shown}: only admins name other teams`);
  if (!found) throw new NotFoundError(`There is no team ${shown} in ${team.ref.organization}`);
  return found.id;
}
