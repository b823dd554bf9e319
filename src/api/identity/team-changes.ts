import { createGrantRepository } from '../../shared/access/grant-repository.ts';
import { namesOf } from '../../shared/access/permissions.ts';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { createPeopleRepository } from '../../shared/identity/people-repository.ts';
import { createTeamRepository, type TeamRow } from '../../shared/identity/team-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ConflictError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { createStackRepository } from '../../shared/stacks/stack-repository.ts';
import { assertGrantBounds, assertUserBounds } from '../access/grant-bounds.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import { fromLevel } from './stack-permissions.ts';
import type { UpdateTeamRequest } from './teams.schemas.ts';

export interface TeamRef {
  readonly organization: string;
  readonly organizationId: string;
  readonly team: TeamRow;
}

type StackName = NonNullable<UpdateTeamRequest['removeStack']>;

/** The common action of all changes; for different ones, the action for a change of the team. */
export function actionOfChanges(request: UpdateTeamRequest): AuditAction {
  const { addStackPermission, editStackPermission, memberAction, memberChanges, removeStack } = request;
  const ofMembers = [memberAction, ...(memberChanges ?? []).map((change) => change.memberAction)];
  const actions = new Set<AuditAction>([
    ...(request.newDisplayName || request.newDescription ? ['team.change' as const] : []),
    ...ofMembers.flatMap((change) => (change ? ([change === 'remove' ? 'team.remove' : 'team.add'] as const) : [])),
    ...(addStackPermission || editStackPermission ? ['grant.add' as const] : []),
    ...(removeStack ? ['grant.remove' as const] : []),
  ]);
  const [action = 'team.change', ...others] = actions;
  return others.length === 0 ? action : 'team.change';
}

const maxTeams = 1000;

/** Call after a team was added, with the lock on people. */
export async function assertTeamLimit(tx: Queryable, organizationId: string): Promise<void> {
  if ((await createTeamRepository(tx).count(organizationId)) > maxTeams)
    throw new ConflictError(`An organization can have at most ${maxTeams} teams`);
}

interface MemberChange {
  readonly action: NonNullable<UpdateTeamRequest['memberAction']>;
  readonly login: string;
}

/** Makes the changes in this order. Throws NotFoundError, ConflictError. */
export async function changeMembers(
  tx: Queryable,
  { organization, organizationId, team }: TeamRef,
  changes: readonly MemberChange[],
  audit: AuditTrail,
): Promise<void> {
  if (changes.length === 0) return;
  const teams = createTeamRepository(tx);
  const logins = new Set(changes.map(({ login }) => login));
  const found = await createPeopleRepository(tx).listMembersAmong(organizationId, [...logins]);
  const userIds = new Map(found.map(({ login, userId }) => [login, userId]));
  const rows = await teams.listMembersAmong(team.id, [...userIds.values()]);
  /** The members of the team among these users, and whether each is an admin of it. */
  const before = new Map(rows.map(({ isAdmin, userId }) => [userId, isAdmin]));
  const after = new Map(before);
  for (const { action, login } of changes) {
    const userId = userIds.get(login);
    const shown = JSON.stringify(login.slice(0, 100));
    if (userId === undefined) throw new NotFoundError(`${shown} is not a member of ${organization}`);
    const isIn = after.has(userId);
    if (action !== 'add' && !isIn) throw new NotFoundError(`${shown} is not in team ${team.name}`);
    if (action === 'remove') after.delete(userId);
    // Adding a member again keeps its role in the team.
    else if (action !== 'add' || !isIn) after.set(userId, action === 'promote');
  }
  const left = [...before.keys()].filter((userId) => !after.has(userId));
  const set = [...after].filter(([userId, isAdmin]) => before.get(userId) !== isAdmin);
  if (left.length > 0) await teams.removeMembers(team.id, left);
  const members = set.map(([userId, isAdmin]) => ({ userId, isAdmin }));
  if (members.length > 0) await teams.setMembers(team.id, members);
  const joined = members.flatMap(({ userId }) => (before.has(userId) ? [] : userId));
  if (joined.length > 0) await assertUserBounds(tx, organizationId, { userIds: joined });
  for (const { action, login } of changes) {
    const event = { organization, object: team.name, details: { login, change: action } };
    await audit.record(tx, { action: action === 'remove' ? 'team.remove' : 'team.add', ...event });
  }
}

/** Grants a permission in place of earlier ones. Throws NotFoundError, ConflictError. */
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
  // Removed afterwards, so that updates that both grants permit continue.
  const removed = await createTeamRepository(tx).removeStack(team.id, ref, given);
  await assertGrantBounds(tx, organizationId, [{ teamId: team.id }]);
  const details = { effect: 'allow', team: team.name, permissions: namesOf(permissions) };
  await audit.record(tx, { action: 'grant.add', organization, object: formatStackRef(ref), details });
  await recordRemoved(tx, audit, { ref, team, removed });
}

async function recordRemoved(
  tx: Queryable,
  audit: AuditTrail,
  {
    ref,
    removed,
    team,
  }: { readonly ref: StackRef; readonly team: TeamRow; readonly removed: readonly { readonly permissions: number }[] },
): Promise<void> {
  for (const { permissions } of removed) {
    const details = { effect: 'allow', team: team.name, permissions: namesOf(permissions) };
    await audit.record(tx, {
      action: 'grant.remove',
      organization: ref.organization,
      object: formatStackRef(ref),
      details,
    });
  }
}

/** Changes nothing without a permission. Throws NotFoundError if the stack does not exist, either. */
export async function takeStack(
  tx: Queryable,
  { organization, team }: TeamRef,
  { projectName: project, stackName: stack }: StackName,
  audit: AuditTrail,
): Promise<void> {
  const ref = { organization, project, stack };
  const removed = await createTeamRepository(tx).removeStack(team.id, ref);
  if (removed.length === 0 && !(await createStackRepository(tx).find(ref))) throw stackNotFound(ref);
  await recordRemoved(tx, audit, { ref, team, removed });
}
