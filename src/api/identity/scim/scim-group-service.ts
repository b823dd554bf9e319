import { createHash } from 'node:crypto';
import { isTeamName } from '../../../shared/access/grants.ts';
import { createTeamRepository } from '../../../shared/identity/team-repository.ts';
import { NotFoundError } from '../../../shared/platform/errors/errors.ts';
import { isUuid } from '../../../shared/platform/schema/uuid.ts';
import { assertUserBounds } from '../../access/grant-bounds.ts';
import { OrganizationNotVisibleError } from '../../access/organizations.ts';
import type { ApiContext } from '../../platform/api-context.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../../platform/http/request.ts';
import { assertTeamLimit } from '../team-changes.ts';
import { type GroupChange, type MemberChange, readGroup, readGroupPatch } from './group-changes.ts';
import type { JsonObject } from './scim-bodies.ts';
import { ScimError } from './scim-error.ts';
import { parseScimFilter } from './scim-filter.ts';
import {
  createScimGroupRepository,
  type ScimGroupRepository,
  type ScimGroupRow,
  type ScimMemberRow,
} from './scim-group-repository.ts';
import { type ListRequest, provision, type ScimList, type ScimWork } from './scim-work.ts';

/** `members`: null unless the request asked for them. */
export interface ScimGroup extends ScimGroupRow {
  readonly members: readonly ScimMemberRow[] | null;
}

interface GroupRef {
  readonly organization: string;
  readonly id: string;
}

/** Members in one page of groups, which then ends early. A single group may have more. */
const maxPageMembers = 20_000;
/** Length of the logins in one event of the audit log, whose details are limited. */
const maxEventChars = 7_000;
const maxNameChars = 100;

/** Teams that an organization's identity provider created, or adopted by name. */
export class ScimGroupService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  async get({ organization, id }: GroupRef, withMembers: boolean): Promise<ScimGroup> {
    const groups = await this.#groups(organization);
    const [group] = await withMembersOf(groups, [await getGroup(groups, id)], withMembers);
    return group as ScimGroup;
  }

  async list(organization: string, request: ListRequest, withMembers: boolean): Promise<ScimList<ScimGroup>> {
    const filter = request.filter === null ? null : parseScimFilter(request.filter);
    const groups = await this.#groups(organization);
    const { limit, offset } = request;
    const rows = limit === 0 ? [] : await groups.list(filter, { limit, offset });
    const fitting = withMembers ? rows.slice(0, countFitting(rows)) : rows;
    return {
      total: await groups.count(filter),
      startIndex: offset + 1,
      rows: await withMembersOf(groups, fitting, withMembers),
    };
  }

  /** Creates the group, or takes over the team of this name with its members. Throws ScimError, ConflictError. */
  create(caller: Caller, organization: string, body: JsonObject, audit: AuditTrail): Promise<ScimGroup> {
    const wanted = readGroup(body);
    return this.#provision(caller, organization, audit, async (work, groups) => {
      const { displayName, externalId } = wanted;
      const name = teamNameOf(displayName);
      const found = await groups.findTeam(name);
      if (found?.isLinked) throw new ScimError('uniqueness', `There is already a group ${displayName}`);
      const teams = createTeamRepository(work.tx);
      const id = found?.id ?? (await teams.insert(work.organizationId, { name, displayName, description: '' }));
      if (id === null) throw new ScimError('uniqueness', `There is already a group ${displayName}`);
      if (!found) await assertTeamLimit(work.tx, work.organizationId);
      await groups.link(id, { displayName, externalId, isAdopted: found !== null });
      if (!found) await work.record(name, { action: 'team.create' });
      await work.record(name, { details: { displayName, externalId, ...(found ? { adopted: true } : {}) } });
      await changeMembers(work, groups, { id, name }, { ...wanted.members, replaces: false });
      const [group] = await withMembersOf(groups, [await getGroup(groups, id)], true);
      return group as ScimGroup;
    });
  }

  async replace(caller: Caller, ref: GroupRef, body: JsonObject, audit: AuditTrail): Promise<ScimGroup> {
    await this.#change(caller, ref, readGroup(body), audit);
    return this.get(ref, true);
  }

  patch(caller: Caller, ref: GroupRef, body: JsonObject, audit: AuditTrail): Promise<void> {
    return this.#change(caller, ref, readGroupPatch(body), audit);
  }

  /** Deletes the team with its grants and tokens; a team that was taken over stays, without members. */
  async remove(caller: Caller, { organization, id }: GroupRef, audit: AuditTrail): Promise<void> {
    await this.#provision(caller, organization, audit, async (work, groups) => {
      const { isAdopted, name } = await getGroup(groups, id);
      if (!isAdopted) {
        await createTeamRepository(work.tx).remove(id);
        return work.record(name, { action: 'team.delete' });
      }
      await changeMembers(work, groups, { id, name }, { replaces: true, added: new Set(), removed: new Set() });
      await groups.unlink(id);
      return work.record(name, { details: { released: true } });
    });
  }

  async #change(caller: Caller, { organization, id }: GroupRef, wanted: GroupChange, audit: AuditTrail): Promise<void> {
    await this.#provision(caller, organization, audit, async (work, groups) => {
      const group = await getGroup(groups, id);
      const { displayName = group.displayName, externalId = group.externalId } = wanted;
      const name = displayName === group.displayName ? group.name : teamNameOf(displayName);
      if (displayName !== group.displayName || externalId !== group.externalId) {
        const other = await groups.findTeam(name);
        if (other && other.id !== id) throw new ScimError('uniqueness', `There is another team ${name}`);
        await groups.update(id, { name, displayName, externalId });
        await work.record(name, {
          details: { displayName, externalId, ...(name === group.name ? {} : { before: group.name }) },
        });
      }
      await changeMembers(work, groups, { id, name }, wanted.members);
    });
  }

  #provision<T>(
    caller: Caller,
    organization: string,
    audit: AuditTrail,
    change: (work: ScimWork, groups: ScimGroupRepository) => Promise<T>,
  ): Promise<T> {
    return provision(this.#context.db, { caller, organization, audit }, (work) =>
      change(work, createScimGroupRepository(work.tx, work.organizationId)),
    );
  }

  async #groups(organization: string): Promise<ScimGroupRepository> {
    const { db, identity } = this.#context;
    const found = await identity.findOrganization(organization);
    if (!found) throw new OrganizationNotVisibleError();
    return createScimGroupRepository(db, found.id);
  }
}

/** The display name, reduced to valid characters. */
function teamNameOf(displayName: string): string {
  const name = displayName
    .replace(/[^a-zA-Z0-9_.-]+/g, '-')
    .replace(/^[^a-zA-Z0-9]+|-+$/g, '')
    .slice(0, maxNameChars);
  return isTeamName(name) ? name : `group-${createHash('sha256').update(displayName).digest('hex').slice(0, 12)}`;
}

async function getGroup(groups: ScimGroupRepository, id: string): Promise<ScimGroupRow> {
  const group = isUuid(id) ? await groups.find(id) : null;
  if (!group) throw new NotFoundError(`There is no group ${JSON.stringify(id.slice(0, 60))}`);
  return group;
}

/** The number of leading groups whose members fit on a page: at least one. */
function countFitting(rows: readonly ScimGroupRow[]): number {
  let members = 0;
  const at = rows.findIndex((row, index) => {
    members += row.memberCount;
    return index > 0 && members > maxPageMembers;
  });
  return at < 0 ? rows.length : at;
}

async function withMembersOf(
  groups: ScimGroupRepository,
  rows: readonly ScimGroupRow[],
  withMembers: boolean,
): Promise<ScimGroup[]> {
  if (!withMembers) return rows.map((row) => ({ ...row, members: null }));
  const members = Map.groupBy(await groups.listMembers(rows.map(({ id }) => id)), ({ teamId }) => teamId);
  return rows.map((row) => ({ ...row, members: members.get(row.id) ?? [] }));
}

async function changeMembers(
  work: ScimWork,
  groups: ScimGroupRepository,
  { id, name }: { readonly id: string; readonly name: string },
  { added, removed, replaces }: MemberChange,
): Promise<void> {
  const wanted = [...added];
  const known = await groups.listKnown(wanted.filter(isUuid));
  const unknown = wanted.filter((each) => !known.has(each));
  if (unknown.length > 0)
    throw new ScimError(
      'invalidValue',
      `members has ${unknown.length} that are not users of ${work.organization}, such as ${JSON.stringify(unknown[0]?.slice(0, 60))}`,
    );
  const leaving = replaces ? wanted : [...removed].filter(isUuid);
  const left = replaces || leaving.length > 0 ? await groups.removeMembers(id, leaving, { butThese: replaces }) : [];
  const joined = wanted.length > 0 ? await groups.addMembers(id, wanted) : [];
  if (joined.length > 0) await assertUserBounds(work.tx, work.organizationId, { userIds: wanted });
  for (const logins of chunks(left)) await work.record(name, { action: 'team.remove', details: { logins } });
  for (const logins of chunks(joined)) await work.record(name, { action: 'team.add', details: { logins } });
  if (left.length + joined.length > 0) await groups.touch(id);
}

function* chunks(logins: readonly string[]): Generator<readonly string[]> {
  let chunk: string[] = [];
  let chars = 0;
  for (const login of logins) {
    // The login, with quotes and comma.
    const more = login.length + 3;
    if (chars + more > maxEventChars) {
      yield chunk;
      chunk = [];
      chars = 0;
    }
    chunk.push(login);
    chars += more;
  }
  if (chunk.length > 0) yield chunk;
}
