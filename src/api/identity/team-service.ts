import { decideOfGrants } from '../../shared/access/access-decision.ts';
import type { AllGrants } from '../../shared/access/grant-repository.ts';
import { isTeamName } from '../../shared/access/grants.ts';
import { createPeopleRepository } from '../../shared/identity/people-repository.ts';
import {
  createTeamRepository,
  type TeamMemberRow,
  type TeamRow,
  type TeamStackRow,
} from '../../shared/identity/team-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import {
  ConflictError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
} from '../../shared/platform/errors/errors.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { lockManagement, lockTeam } from '../access/locked-access.ts';
import { getOrganization } from '../access/organizations.ts';
import { changePeople } from '../access/people-lock.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { findLastEdit } from '../platform/edits/last-edit.ts';
import { assertSeen, revisionOf, type SeenRevisions } from '../platform/edits/revisions.ts';
import { assertFieldSize } from '../platform/http/field-size.ts';
import type { Caller } from '../platform/http/request.ts';
import { toLevel } from './stack-permissions.ts';
import { actionOfChanges, assertTeamLimit, changeMembers, giveStack, type TeamRef, takeStack } from './team-changes.ts';
import type { CreateTeamRequest, UpdateTeamRequest } from './teams.schemas.ts';

/** The team as the caller may see it. */
export interface TeamView {
  readonly team: TeamRow;
  readonly members: readonly TeamMemberRow[];
  /** Given by name; null in lists. */
  readonly stacks: readonly TeamStackRow[] | null;
}

/** The permission of a team or a user, as a number of Pulumi's REST API. */
interface Level<Of> {
  readonly of: Of;
  readonly level: number;
}

interface TeamName {
  readonly organization: string;
  readonly name: string;
}

export class TeamService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** All teams with their members, without their stacks. */
  async list(organizationName: string): Promise<readonly TeamView[]> {
    const { id } = await getOrganization(this.#context.db, organizationName);
    const teams = createTeamRepository(this.#context.db);
    const members = Map.groupBy(await teams.listMembers(id), ({ team }) => team);
    return (await teams.list(id)).map((team) => ({ team, members: members.get(team.name) ?? [], stacks: null }));
  }

  /** Includes the stacks that the caller may read. */
  async get(caller: Caller, { name, organization }: TeamName): Promise<TeamView> {
    const { db } = this.#context;
    const { id } = await getOrganization(db, organization);
    const teams = createTeamRepository(db);
    const team = await findTeam(db, id, name);
    const facts = caller.role === 'admin' && !caller.isScoped ? null : caller.facts;
    return { team, members: await teams.listMembers(id, team.id), stacks: await teams.listStacks(team.id, facts) };
  }

  /** Throws ConflictError if the name is taken or there are too many. */
  async create(caller: Caller, organization: string, request: CreateTeamRequest, audit: AuditTrail): Promise<TeamView> {
    const { name } = request;
    if (!isTeamName(name))
      throw new InvalidRequestError(
        'The name of a team has 1 to 100 letters, digits, and _.-, and begins with a letter or digit',
      );
    const displayName = request.displayName || name;
    const description = request.description ?? '';
    this.#assertTexts(displayName, description);
    return changePeople(this.#context.db, organization, async (tx) => {
      await lockManagement(tx, organization, caller);
      const { id: organizationId } = await getOrganization(tx, organization);
      const id = await createTeamRepository(tx).insert(organizationId, { name, displayName, description });
      if (id === null) throw new ConflictError(`There is already a team named ${name}`);
      await assertTeamLimit(tx, organizationId);
      await audit.record(tx, { organization, object: name });
      return { team: { id, name, displayName, description }, members: [], stacks: [] };
    });
  }

  /** Deletes the team with its grants and tokens. */
  async delete(
    caller: Caller,
    { name, organization }: TeamName,
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<void> {
    await changePeople(this.#context.db, organization, async (tx) => {
      await lockManagement(tx, organization, caller);
      const organizationId = (await getOrganization(tx, organization)).id;
      const team = await findTeam(tx, organizationId, name);
      await assertSeenTeam(tx, organizationId, team, seen);
      await createTeamRepository(tx).remove(team.id);
      await audit.record(tx, { organization, object: name });
    });
  }

  /**
   * Makes all changes of a request, or none. Admins of the team can also change names and members; only admins of the organization can
   * grant stacks. `seen`: revisions of its names.
   */
  async update(
    caller: Caller,
    { name, organization }: TeamName,
    request: UpdateTeamRequest,
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<void> {
    if (request.addEnvironmentPermission || request.editEnvironmentPermission || request.removeEnvironment)
      throw new InvalidRequestError(
        'Pulumi ESC (environments) is another product of Pulumi, which this server does not provide',
      );
    if (Boolean(request.member) !== Boolean(request.memberAction))
      throw new InvalidRequestError('member and memberAction must be given together');
    audit.attempt(actionOfChanges(request));
    await changePeople(this.#context.db, organization, async (tx) => {
      const organizationId = (await getOrganization(tx, organization)).id;
      // Non-admins are refused before the lookup of stacks or users; members see all teams anyway.
      const team = await findTeam(tx, organizationId, name);
      const managesAll = await lockTeam(tx, organization, caller, team.id);
      const givesStacks = request.addStackPermission || request.editStackPermission || request.removeStack;
      if (givesStacks && !managesAll)
        throw new ForbiddenError(`Granting stacks to a team needs the role admin in organization ${organization}`);
      await assertSeenTeam(tx, organizationId, team, seen);
      // Settled before the events of the individual changes, each of which has its own action.
      audit.settle();
      const teamRef = { organization, organizationId, team };
      await this.#rename(tx, teamRef, request, audit);
      const { member, memberAction, memberChanges } = request;
      const ofMembers = [...(member && memberAction ? [{ member, memberAction }] : []), ...(memberChanges ?? [])];
      const changes = ofMembers.map((change) => ({ login: change.member, action: change.memberAction }));
      await changeMembers(tx, teamRef, changes, audit);
      for (const given of [request.addStackPermission, request.editStackPermission])
        if (given) await giveStack(tx, teamRef, caller, given, audit);
      if (request.removeStack) await takeStack(tx, teamRef, request.removeStack, audit);
    });
  }

  /** Teams that have permissions on the stack by grants. */
  async listOfStack(caller: Caller, ref: StackRef): Promise<readonly (Level<TeamRow> & { isMember: boolean })[]> {
    const { db } = this.#context;
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    const teams = createTeamRepository(db);
    const levels = levelsOf(await teams.listOn(stack.organizationId, { ...ref, tags: readTags(stack.tags) }));
    const own = new Set(caller.userId === null ? [] : await teams.listIdsOf(caller.userId));
    return levels.map(({ level, of }) => ({ of, level, isMember: own.has(of.id) }));
  }

  /** Users who have permissions on the stack by grants. Roles are not grants. */
  async listCollaborators(ref: StackRef) {
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    const people = createPeopleRepository(this.#context.db);
    return levelsOf(await people.listOn(stack.organizationId, { ...ref, tags: readTags(stack.tags) }));
  }

  async #rename(
    tx: Queryable,
    { organization, team }: TeamRef,
    { newDescription, newDisplayName }: UpdateTeamRequest,
    audit: AuditTrail,
  ): Promise<void> {
    if (typeof newDisplayName !== 'string' && typeof newDescription !== 'string') return;
    const displayName = newDisplayName || team.displayName;
    const description = newDescription ?? team.description;
    this.#assertTexts(displayName, description);
    await createTeamRepository(tx).describe(team.id, { displayName, description });
    await audit.record(tx, { organization, object: team.name, details: { displayName } });
  }

  #assertTexts(displayName: string, description: string): void {
    const { maxFieldBytes } = this.#context.config.limits;
    assertFieldSize('displayName', displayName, maxFieldBytes);
    assertFieldSize('description', description, maxFieldBytes);
    if (![displayName, description].every((text) => text.isWellFormed() && !text.includes('\0')))
      throw new InvalidRequestError('displayName or description is not valid text');
  }
}

/** The revision covers the display fields only: members and stacks are added and removed one by one. */
export function revisionOfTeam({ description, displayName }: Pick<TeamRow, 'displayName' | 'description'>): string {
  return revisionOf({ description, displayName });
}

function assertSeenTeam(tx: Queryable, organizationId: string, team: TeamRow, seen: SeenRevisions): Promise<void> {
  return assertSeen(seen, revisionOfTeam(team), 'this team', () =>
    findLastEdit(tx, organizationId, 'team.change', ({ object }) => object === team.name),
  );
}

/** Permissions by grants alone, without holders that may not read the stack. */
function levelsOf<Holder extends AllGrants>(holders: readonly Holder[]): Level<Holder>[] {
  return holders.map((of) => ({ of, level: toLevel(decideOfGrants(of)) })).filter(({ level }) => level > 0);
}

async function findTeam(db: Queryable, organizationId: string, name: string): Promise<TeamRow> {
  const team = await createTeamRepository(db).find(organizationId, name);
  if (!team) throw new NotFoundError(`There is no team ${JSON.stringify(name.slice(0, 100))}`);
  return team;
}
