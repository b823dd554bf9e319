import {
  createGrantRepository,
  type GrantCursor,
  type GrantRole,
  type GrantRow,
  type GrantSubject,
  type NewGrant,
} from '../../shared/access/grant-repository.ts';
import { formatStackPattern, parsePermissions, parseStackPattern } from '../../shared/access/grants.ts';
import { allowedBy, deniedBy, namesOf, type PermissionSet } from '../../shared/access/permissions.ts';
import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import { createPeopleRepository } from '../../shared/identity/people-repository.ts';
import { createTeamRepository } from '../../shared/identity/team-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { parseTags, readTags } from '../../shared/stacks/tags.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { parseContinuation } from '../platform/http/continuation.ts';
import type { Caller } from '../platform/http/request.ts';
import { assertGrantBounds } from './grant-bounds.ts';
import type { ChangeGrantsRequest, CreateGrantRequest, GrantsQuery } from './grants.schemas.ts';
import { lockManagement } from './locked-access.ts';
import { getOrganization } from './organizations.ts';
import { changePeople } from './people-lock.ts';
import { findRole, isId } from './role-references.ts';

export type { GrantRow };

const pageSize = 100;

interface GrantPage {
  readonly grants: readonly GrantRow[];
  /** Null on the last page. */
  readonly continuationToken: string | null;
}

export class GrantService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** The oldest grants come first: all, or those of one user, team or token, or those on one stack. */
  async list(
    organizationName: string,
    { continuationToken, ...subject }: GrantsQuery,
    { limit = pageSize, stack: ref = null }: { readonly limit?: number; readonly stack?: StackRef | null } = {},
  ): Promise<GrantPage> {
    const { db } = this.#context;
    const after = continuationToken ? parseContinuation(continuationToken, readCursor) : null;
    const organization = await getOrganization(db, organizationName);
    const isNamed = [subject.user, subject.team, subject.token].some((each) => each !== undefined);
    const stack = ref && (await this.#context.stacks.find(ref));
    if (ref && !stack) throw stackNotFound(ref);
    const rows = await createGrantRepository(db).listPage(organization.id, {
      subject: isNamed ? await findSubject(db, organization, subject) : null,
      stack: stack && { project: stack.project, stack: stack.stack, tags: readTags(stack.tags) },
      after,
      limit: limit + 1,
    });
    const grants = rows.slice(0, limit);
    const last = grants.at(-1);
    return { grants, continuationToken: last && rows.length > grants.length ? `${last.micros}-${last.id}` : null };
  }

  /** Returns an equivalent grant if there is one. */
  async create(
    caller: Caller,
    organization: string,
    request: CreateGrantRequest,
    audit: AuditTrail,
  ): Promise<GrantRow> {
    const [row] = await this.change(caller, organization, { add: [request] }, audit);
    if (!row) throw grantNotFound('');
    return row;
  }

  async remove(caller: Caller, organization: string, id: string, audit: AuditTrail): Promise<void> {
    await this.change(caller, organization, { remove: [id] }, audit);
  }

  /**
   * Adds grants, and then removes others, all or none. Returns the added grants in the same order; in place of a grant that already exists,
   * the existing one. Throws InvalidRequestError, NotFoundError, ForbiddenError, ConflictError.
   */
  async change(
    caller: Caller,
    organizationName: string,
    { add = [], remove = [] }: ChangeGrantsRequest,
    audit: AuditTrail,
  ): Promise<readonly GrantRow[]> {
    const wanted = add.map((request) => ({
      request,
      selection: readSelection(request),
      named: readPermissions(request),
    }));
    return changePeople(this.#context.db, organizationName, async (tx) => {
      await lockManagement(tx, organizationName, caller);
      const organization = await getOrganization(tx, organizationName);
      const grants = createGrantRepository(tx);
      const removed = remove.filter(isId);
      const subjectOf = remembered((_, request: Subject) => findSubject(tx, organization, request));
      const roleOf = remembered((id) => readRole(tx, organization.id, id));
      /** New grants, by subject and content. */
      const missing = new Map<string, NewGrant>();
      const found: string[] = [];
      // Nothing is recorded if all grants exist already.
      audit.settle();
      for (const { named, request, selection } of wanted) {
        const subject = await subjectOf(JSON.stringify([request.user, request.team, request.token]), request);
        const grant: NewGrant = {
          organizationId: organization.id,
          effect: request.effect,
          ...selection,
          ...(named ?? (await roleOf(request.role ?? '', request))),
          subject,
          createdBy: caller.userId,
        };
        const key = JSON.stringify(grant);
        const same = missing.has(key) ? null : await grants.findSame(grant, removed);
        found.push(same ?? key);
        if (same !== null || missing.has(key)) continue;
        missing.set(key, grant);
      }
      const added = missing.size === 0 ? [] : await grants.insertAll([...missing.values()]);
      const idOf = new Map([...missing.keys()].map((key, at) => [key, added[at] as string]));
      const ids = found.map((each) => idOf.get(each) ?? each);
      const rows = new Map((await grants.listByIds(organization.id, ids)).map((row) => [row.id, row]));
      for (const id of added)
        await audit.record(tx, { action: 'grant.add', ...eventOf(organizationName, rowOf(rows, id)) });
      const gone = new Map((await grants.listByIds(organization.id, removed)).map((row) => [row.id, row]));
      for (const id of remove) {
        const row = rowOf(gone, id);
        gone.delete(id);
        await audit.record(tx, { action: 'grant.remove', ...eventOf(organizationName, row) });
      }
      if (removed.length > 0) await grants.removeAll(organization.id, removed);
      const subjects = new Map([...missing.values()].map(({ subject }) => [JSON.stringify(subject), subject]));
      await assertGrantBounds(tx, organization.id, [...subjects.values()]);
      return ids.map((id) => rowOf(rows, id));
    });
  }
}

function rowOf(rows: ReadonlyMap<string, GrantRow>, id: string): GrantRow {
  const row = rows.get(id);
  if (!row) throw grantNotFound(id);
  return row;
}

function remembered<Value>(
  find: (key: string, request: CreateGrantRequest) => Promise<Value>,
): (key: string, request: CreateGrantRequest) => Promise<Value> {
  const found = new Map<string, Promise<Value>>();
  return (key, request) => {
    const value = found.get(key) ?? find(key, request);
    found.set(key, value);
    return value;
  };
}

interface Organization {
  readonly id: string;
  readonly name: string;
}

type Subject = { readonly [Kind in 'user' | 'team' | 'token']?: string | null | undefined };

/** The request must name exactly one subject. */
async function findSubject(db: Queryable, organization: Organization, subject: Subject): Promise<GrantSubject> {
  const { team: teamName, token: tokenId, user: login } = subject;
  if ([login, teamName, tokenId].filter((each) => typeof each === 'string').length !== 1)
    throw new InvalidRequestError('A grant must name exactly one user, team or token');
  if (typeof login === 'string') {
    const people = createPeopleRepository(db);
    const user = isText(login) ? await people.find(login) : null;
    if (!user || !(await people.findMembership(organization.id, user.id)))
      throw new NotFoundError(`${quoted(login)} is not a member of ${organization.name}`);
    return { userId: user.id };
  }
  if (typeof teamName === 'string') {
    const team = isText(teamName) ? await createTeamRepository(db).find(organization.id, teamName) : null;
    if (!team) throw new NotFoundError(`There is no team ${quoted(teamName)}`);
    return { teamId: team.id };
  }
  const id = tokenId ?? '';
  if (!isId(id) || !(await createIdentityRepository(db).isTokenOf(id, organization.id)))
    throw new NotFoundError(`There is no valid token with the id ${quoted(id)} in ${organization.name}`);
  return { tokenId: id };
}

/** Null if the request names a role. */
function readPermissions({ effect, permissions, role }: CreateGrantRequest): { permissions: PermissionSet } | null {
  const isOfRole = typeof role === 'string';
  if (isOfRole === (permissions !== undefined && permissions !== null))
    throw new InvalidRequestError('A grant must name either permissions or a role');
  if (isOfRole && effect === 'deny')
    throw new InvalidRequestError('A role cannot be denied. Specify the denied permissions');
  if (isOfRole) return null;
  const names = parsePermissions(permissions ?? []);
  return { permissions: effect === 'allow' ? allowedBy(names) : deniedBy(names) };
}

async function readRole(
  tx: Queryable,
  organizationId: string,
  id: string,
): Promise<{ permissions: PermissionSet; role: GrantRole }> {
  const { given, permissions } = await findRole(tx, organizationId, id);
  return { permissions, role: given };
}

function readSelection({ stacks, tag }: CreateGrantRequest) {
  const { project, stack } = parseStackPattern(stacks ?? '*/*');
  if (tag) parseTags({ [tag.name]: tag.value ?? '' });
  return {
    projectPattern: project,
    stackPattern: stack,
    tagName: tag?.name ?? null,
    tagValue: tag?.value ?? null,
  };
}

function eventOf(organization: string, grant: GrantRow) {
  const { effect, id, projectPattern, stackPattern, tagName, tagValue, team, tokenId, user } = grant;
  const role = grant.roleName ?? grant.builtInRole;
  return {
    organization,
    object: `${organization}/${formatStackPattern({ project: projectPattern, stack: stackPattern })}`,
    details: {
      grant: id,
      effect,
      permissions: namesOf(grant.permissions),
      ...(role === null ? {} : { role }),
      ...(tagName === null ? {} : { tag: tagValue === null ? tagName : `${tagName}=${tagValue}` }),
      ...(user === null ? {} : { user }),
      ...(team === null ? {} : { team }),
      ...(tokenId === null ? {} : { token: tokenId }),
    },
  };
}

function readCursor(token: string): GrantCursor | null {
  const [, micros, id] = /^(\d{1,16})-([0-9a-f-]{36})$/.exec(token) ?? [];
  if (micros === undefined || id === undefined || !isId(id) || !Number.isSafeInteger(Number(micros))) return null;
  return { micros: Number(micros), id };
}

function isText(name: string): boolean {
  return name.isWellFormed() && !name.includes('\0');
}

function grantNotFound(id: string): NotFoundError {
  return new NotFoundError(`There is no grant with the id ${quoted(id)}`);
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
