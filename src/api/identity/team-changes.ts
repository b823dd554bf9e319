import { createGrantRepository } from '../../shared/access/grant-repository.ts';
import { namesOf } from '../../shared/access/permissions.ts';
import { createPeopleRepository } from '../../shared/identity/people-repository.ts';
import { createTeamRepository, type TeamRow } from '../../shared/identity/team-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { createStackRepository } from '../../shared/stacks/stack-repository.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import { fromLevel } from './stack-permissions.ts';
import type { UpdateTeamRequest } from './teams.schemas.ts';

/** A team whose admin changes it. */
export interface TeamRef {
  readonly organization: string;
  readonly organizationId: string;
  readonly team: TeamRow;
}

type StackName = NonNullable<UpdateTeamRequest['removeStack']>;

/** Adds, removes or promotes a member. Throws NotFoundError. */
export async function changeMember(
  tx: Queryable,
  { organization, organizationId, team }: TeamRef,
  { action, login }: { readonly action: NonNullable<UpdateTeamRequest['memberAction']>; readonly login: string },
  audit: AuditTrail,
): Promise<void> {
  const people = createPeopleRepository(tx);
  const teams = createTeamRepository(tx);
  const user = await people.find(login);
  const membership = user && (await people.findMembership(organizationId, user.id));
  const shown = JSON.stringify(login.slice(0, 100));
  if (!membership) throw new NotFoundError(`${shown} is not a member of ${organization}`);
  const isIn = await teams.isMember(team.id, user.id);
  if (action !== 'add' && !isIn) throw new NotFoundError(`${shown} is not in team ${team.name}`);
  const event = { organization, object: team.name, details: { login, change: action } };
  if (action === 'remove') {
    await teams.removeMember(team.id, user.id);
    return audit.record(tx, { action: 'team.remove', ...event });
  }
  // Adding a member again keeps its role in the team.
  if (action !== 'add' || !isIn) await teams.setMember(team.id, user.id, action === 'promote');
  return audit.record(tx, { action: 'team.add', ...event });
}

/** Grants the team a permission on a stack, instead of earlier ones. Throws NotFoundError. */
export async function giveStack(
  tx: Queryable,
  { organization, organizationId, team }: TeamRef,
  caller: Caller,
  { permission, projectName: project, stackName: stack }: NonNullable<UpdateTeamRequest['addStackPermission']>,
  audit: AuditTrail,
): Promise<void> {
  const ref = { organization, project, stack };
  if (!(await createStackRepository(tx).find(ref))) throw stackNotFound(ref);
  const permissions = fromLevel(permission);
  const given = await createGrantRepository(tx).insert({
    organizationId,
    effect: 'allow',
    permissions,
    projectPattern: project,
    stackPattern: stack,
    tagName: null,
    tagValue: null,
    subject: { teamId: team.id },
    createdBy: caller.userId,
  });
  // Then the previous grants: updates that both permit go on.
  await createTeamRepository(tx).removeStack(team.id, ref, given);
  const details = { effect: 'allow', team: team.name, permissions: namesOf(permissions) };
  await audit.record(tx, { action: 'grant.add', organization, object: formatStackRef(ref), details });
}

/** Removes the permission of the team on a stack. Throws NotFoundError. */
export async function takeStack(
  tx: Queryable,
  { organization, team }: TeamRef,
  { projectName: project, stackName: stack }: StackName,
  audit: AuditTrail,
): Promise<void> {
  const ref = { organization, project, stack };
  if (!(await createTeamRepository(tx).removeStack(team.id, ref)))
    throw new NotFoundError(`Team ${team.name} has no permission on a stack with that name`);
  const details = { team: team.name };
  await audit.record(tx, { action: 'grant.remove', organization, object: formatStackRef(ref), details });
}
