import { createGrantRepository, type GrantRow } from '../../shared/access/grant-repository.ts';
import { namesOf } from '../../shared/access/permissions.ts';
import { roles } from '../../shared/access/roles.ts';
import { createTeamRepository, type TeamRow } from '../../shared/identity/team-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { findLastEdit } from '../platform/edits/last-edit.ts';
import { assertSeen, revisionOf, type SeenRevisions } from '../platform/edits/revisions.ts';
import { assertFieldSize } from '../platform/http/field-size.ts';
import type { Caller } from '../platform/http/request.ts';
import { assertGrantBounds } from './grant-bounds.ts';
import { lockManagement } from './locked-access.ts';
import { OrganizationNotVisibleError } from './organizations.ts';
import { changePeople } from './people-lock.ts';
import { isRoleName, parseRoleDetails } from './role-details.ts';
import { builtInRole, findRole, isId, roleNotFound } from './role-references.ts';
import { createRoleRepository, type RoleRow } from './role-repository.ts';
import { builtInView, type Organization, ownView, type RoleView } from './role-view.ts';
import type { CreateRoleRequest, UpdateRoleRequest } from './roles.schemas.ts';

/** The CLI requests all roles at once. */
const maxRoles = 200;

interface TeamName {
  readonly organization: string;
  readonly team: string;
}

/** Roles are named permission sets that grants give to users, teams and tokens. */
export class RoleService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** The built-in roles come first. */
  async list(organizationName: string): Promise<readonly RoleView[]> {
    const { db } = this.#context;
    const organization = await findOrganization(db, organizationName);
    const own = await createRoleRepository(db).list(organization.id);
    return [...roles.map((role) => builtInView(organization, role)), ...own.map((row) => ownView(organization, row))];
  }

  async get(organizationName: string, id: string): Promise<RoleView> {
    const { db } = this.#context;
    return getRole(db, await findOrganization(db, organizationName), id);
  }

  /** Throws ConflictError for a built-in role. */
  async countGrants(organizationName: string, id: string): Promise<number> {
    const { db } = this.#context;
    await getOwnRole(db, await findOrganization(db, organizationName), id);
    return createRoleRepository(db).countGrants(id);
  }

  /** Throws ConflictError if the name is taken. */
  async create(caller: Caller, organization: string, request: CreateRoleRequest, audit: AuditTrail): Promise<RoleView> {
    const { name } = request;
    const description = request.description ?? '';
    this.#assertTexts(name, description);
    assertKind(request);
    const permissions = parseRoleDetails(request.details);
    return this.#change(caller, organization, name, async (tx, owner) => {
      const repository = createRoleRepository(tx);
      if ((await repository.count(owner.id, maxRoles)) >= maxRoles)
        throw new ConflictError(`An organization can have at most ${maxRoles} roles: remove one first`);
      const row = await repository.insert(owner.id, { name, description, permissions });
      await audit.record(tx, {
        organization,
        object: name,
        details: { role: row.id, permissions: namesOf(permissions) },
      });
      return ownView(owner, row);
    });
  }

  /** Grants of the role change with it: running updates that are no longer permitted end. */
  async update(
    caller: Caller,
    organization: string,
    { id, request }: { readonly id: string; readonly request: UpdateRoleRequest },
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<RoleView> {
    const permissions =
      request.details === undefined || request.details === null ? null : parseRoleDetails(request.details);
    return this.#change(caller, organization, request.name ?? '', async (tx, owner) => {
      const role = await getOwnRole(tx, owner, id);
      await assertSeenRole(tx, owner, role, seen);
      const next = {
        name: request.name ?? role.name,
        description: request.description ?? role.description,
        permissions: permissions ?? role.permissions,
      };
      this.#assertTexts(next.name, next.description);
      const isSame =
        next.name === role.name && next.description === role.description && next.permissions === role.permissions;
      if (isSame) {
        audit.settle();
        return ownView(owner, role);
      }
      const row = await createRoleRepository(tx).change(id, next);
      const details = { role: id, name: next.name, from: namesOf(role.permissions), to: namesOf(next.permissions) };
      await audit.record(tx, { organization, object: role.name, details });
      return ownView(owner, row);
    });
  }

  /** Removes a role; with `force`, also the grants that give it. */
  async remove(
    caller: Caller,
    organization: string,
    { force, id }: { readonly id: string; readonly force: boolean },
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<void> {
    await this.#change(caller, organization, '', async (tx, owner) => {
      const role = await getOwnRole(tx, owner, id);
      await assertSeenRole(tx, owner, role, seen);
      const repository = createRoleRepository(tx);
      const grants = await repository.countGrants(id);
      if (grants > 0 && !force)
        throw new ConflictError(
          `Role ${JSON.stringify(role.name)} is given by ${grants} grant${grants === 1 ? '' : 's'}. --force also removes them`,
        );
      await repository.remove(id);
      await audit.record(tx, { organization, object: role.name, details: { role: id, grants } });
    });
  }

  /** The roles that a team has on all stacks. */
  async listOfTeam({ organization: organizationName, team: name }: TeamName): Promise<readonly RoleView[]> {
    const { db } = this.#context;
    const organization = await findOrganization(db, organizationName);
    const team = await findTeam(db, organization.id, name);
    const ids = (await createGrantRepository(db).listAssigned(team.id)).flatMap((grant) => roleIdOf(grant) ?? []);
    return (await this.list(organizationName)).filter(({ id }) => ids.includes(id));
  }

  /** The team gets the role on all stacks, in place of its present roles there. */
  async assign(caller: Caller, { organization, team: name }: TeamName, id: string, audit: AuditTrail): Promise<void> {
    await this.#change(caller, organization, '', async (tx, owner) => {
      const team = await findTeam(tx, owner.id, name);
      const role = await findRole(tx, owner.id, id);
      const grants = createGrantRepository(tx);
      const former = await grants.listAssigned(team.id);
      const kept = former.find((grant) => roleIdOf(grant) === id);
      if (kept && former.length === 1) return audit.settle();
      // The new grant comes first, so that updates that both grants permit continue.
      if (!kept)
        await grants.insert({
          organizationId: owner.id,
          effect: 'allow',
          permissions: role.permissions,
          role: role.given,
          projectPattern: null,
          stackPattern: null,
          tagName: null,
          tagValue: null,
          subject: { teamId: team.id },
          createdBy: caller.userId,
        });
      const others = former.filter((grant) => grant !== kept);
      for (const grant of others) await grants.remove(owner.id, grant.id);
      await assertGrantBounds(tx, owner.id, [{ teamId: team.id }]);
      const details = { role: id, name: role.name, instead: others.map((grant) => roleIdOf(grant)) };
      await audit.record(tx, { organization, object: name, details });
    });
  }

  async unassign(caller: Caller, { organization, team: name }: TeamName, id: string, audit: AuditTrail): Promise<void> {
    await this.#change(caller, organization, '', async (tx, owner) => {
      const team = await findTeam(tx, owner.id, name);
      const grants = createGrantRepository(tx);
      const given = (await grants.listAssigned(team.id)).filter((grant) => roleIdOf(grant) === id);
      if (given.length === 0) throw new NotFoundError(`Team ${name} does not have this role on all stacks`);
      for (const grant of given) await grants.remove(owner.id, grant.id);
      await audit.record(tx, { organization, object: name, details: { role: id } });
    });
  }

  /** `name`: the name of a created or renamed role. */
  #change<Result>(
    caller: Caller,
    organization: string,
    name: string,
    work: (tx: Queryable, organization: Organization) => Promise<Result>,
  ): Promise<Result> {
    return changePeople(this.#context.db, organization, async (tx) => {
      await lockManagement(tx, organization, caller);
      return work(tx, await findOrganization(tx, organization));
    }).catch((error: unknown) => {
      throw violatedConstraint(error) === 'roles_name_key' ? nameTaken(name) : error;
    });
  }

  #assertTexts(name: string, description: string): void {
    if (!isRoleName(name))
      throw new InvalidRequestError(
        'The name of a role has 1 to 100 letters, digits, spaces, and _.:@-, and begins with a letter or digit',
      );
    if (builtInRole(name.toLowerCase()) !== null) throw nameTaken(name);
    assertFieldSize('description', description, this.#context.config.limits.maxFieldBytes);
    if (!description.isWellFormed() || description.includes('\0'))
      throw new InvalidRequestError('description is not valid text');
  }
}

/** The revision covers the fields that `update` sets. */
export function revisionOfRole({ description, details, name }: RoleView): string {
  return revisionOf({ description, details, name });
}

function assertSeenRole(tx: Queryable, owner: Organization, role: RoleRow, seen: SeenRevisions): Promise<void> {
  return assertSeen(seen, revisionOfRole(ownView(owner, role)), 'this role', () =>
    findLastEdit(tx, owner.id, 'role.change', ({ details }) => isOfRole(details, role.id)),
  );
}

function isOfRole(details: string, id: string): boolean {
  return (JSON.parse(details) as { role?: unknown }).role === id;
}

function assertKind({ resourceType, uxPurpose }: CreateRoleRequest): void {
  if ((uxPurpose || 'role') !== 'role')
    throw new InvalidRequestError(
      'Roles have no other purpose here: users, teams and tokens can have any role. Omit --purpose',
    );
  if ((resourceType || 'global') !== 'global')
    throw new InvalidRequestError('Roles apply to stacks here, and grants define which. Omit resourceType');
}

function nameTaken(name: string): ConflictError {
  return new ConflictError(`There is already a role named ${JSON.stringify(name)}`);
}

function roleIdOf({ builtInRole: builtIn, roleId }: GrantRow): string | null {
  return roleId ?? builtIn;
}

async function getRole(db: Queryable, organization: Organization, id: string): Promise<RoleView> {
  const builtIn = builtInRole(id);
  if (builtIn !== null) return builtInView(organization, builtIn);
  return ownView(organization, await getOwnRole(db, organization, id));
}

async function getOwnRole(db: Queryable, organization: Organization, id: string): Promise<RoleRow> {
  if (builtInRole(id) !== null) throw new ConflictError(`Role ${id} is built in: it cannot be changed or removed`);
  const role = isId(id) ? await createRoleRepository(db).find(organization.id, id) : null;
  if (!role) throw roleNotFound(id);
  return role;
}

async function findOrganization(db: Queryable, name: string): Promise<Organization> {
  const organization = await createRoleRepository(db).findOrganization(name);
  if (!organization) throw new OrganizationNotVisibleError();
  return organization;
}

async function findTeam(db: Queryable, organizationId: string, name: string): Promise<TeamRow> {
  const team = await createTeamRepository(db).find(organizationId, name);
  if (!team) throw new NotFoundError(`There is no team ${JSON.stringify(name.slice(0, 100))}`);
  return team;
}
