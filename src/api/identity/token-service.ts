import { isTokenName } from '../../shared/access/grants.ts';
import { createTeamRepository, type TeamRow } from '../../shared/identity/team-repository.ts';
import {
  createTokenRepository,
  type ListedTokenRow,
  type TokenListCursor,
  type TokenOwner,
  type TokenOwnerFilter,
  type TokenRow,
} from '../../shared/identity/token-repository.ts';
import { parseScopes, type WrittenScope } from '../../shared/identity/token-scopes.ts';
import { mintToken } from '../../shared/platform/crypto/secret-token.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import {
  ConflictError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
} from '../../shared/platform/errors/errors.ts';
import { lockManagement, lockOwner, lockTeam } from '../access/locked-access.ts';
import { getOrganization } from '../access/organizations.ts';
import { changePeople } from '../access/people-lock.ts';
import { recordOfPerson } from '../audit/personal-events.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { assertNoRun } from '../platform/audit-trail/ci-runs.ts';
import type { Caller } from '../platform/http/request.ts';
import { assertTokenLimit } from './max-tokens.ts';

export type { ListedTokenRow, TokenRow };

export type TokenOwnerRef =
  | { readonly of: 'caller' }
  | { readonly of: 'organization'; readonly organization: string }
  | { readonly of: 'team'; readonly organization: string; readonly team: string };

export interface TokenRequest {
  readonly name: string | null;
  readonly description: string;
  /** Seconds since 1970; null or 0: never. */
  readonly expires: number | null;
  readonly scopes: readonly WrittenScope[] | null;
  /** For a token of an organization: the role admin instead of member. */
  readonly admin: boolean;
  /** For a token of an organization: no role; its scopes and grants decide. */
  readonly service: boolean;
}

export interface CreatedToken {
  readonly id: string;
  readonly token: string;
  readonly expiresAt: Date | null;
}

export interface RotatedToken extends CreatedToken {
  /** Until when the previous secret is valid; null: it is no longer valid. */
  readonly previousUntil: Date | null;
}

const idPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const maxDescriptionBytes = 1024;

/** Secrets are shown once; only their hashes are stored. */
export class TokenService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  async list(caller: Caller, ownerRef: TokenOwnerRef): Promise<readonly TokenRow[]> {
    const { ownerFilter } = await this.#ownerFilter(caller, ownerRef);
    return createTokenRepository(this.#context.db).list(ownerFilter);
  }

  /** Newest first; with `withCiTokens`, also tokens of CI runs. */
  async listPage(
    caller: Caller,
    ownerRef: TokenOwnerRef,
    {
      limit,
      ...query
    }: { readonly after: TokenListCursor | null; readonly limit: number; readonly withCiTokens: boolean },
  ): Promise<{ readonly tokens: readonly ListedTokenRow[]; readonly next: TokenListCursor | null }> {
    const { ownerFilter } = await this.#ownerFilter(caller, ownerRef);
    const rows = await createTokenRepository(this.#context.db).listPage(ownerFilter, { ...query, limit: limit + 1 });
    const tokens = rows.slice(0, limit);
    return { tokens, next: rows.length > limit ? (tokens.at(-1) ?? null) : null };
  }

  /** Throws ConflictError if the name was used before or there are too many. */
  async make(caller: Caller, ownerRef: TokenOwnerRef, request: TokenRequest, audit: AuditTrail): Promise<CreatedToken> {
    const { owner, ownerFilter } = await this.#ownerFilter(caller, ownerRef, request);
    const { description, name } = request;
    if (name === null && ownerRef.of !== 'caller')
      throw new InvalidRequestError('A token of a team or an organization needs a name');
    if (name !== null && !isTokenName(name))
      throw new InvalidRequestError(
        'The name of a token has 1 to 100 letters, digits, spaces, and _.:@-, and begins with a letter or digit',
      );
    if (
      Buffer.byteLength(description) > maxDescriptionBytes ||
      !description.isWellFormed() ||
      description.includes('\0')
    )
      throw new InvalidRequestError(`description is not valid text of at most ${maxDescriptionBytes} bytes`);
    const expiresAt = request.expires === null || request.expires === 0 ? null : new Date(request.expires * 1000);
    if (expiresAt !== null && !(expiresAt.getTime() > Date.now()))
      throw new InvalidRequestError('expires is in the past');
    const scopes = request.scopes === null ? (owner.kind === 'service' ? [] : null) : parseScopes(request.scopes);
    const { token: secret, hash } = mintToken('hf-');
    try {
      return await this.#context.db.inTransaction(async (tx) => {
        await lockScope(tx, caller, ownerRef, owner);
        const tokens = createTokenRepository(tx);
        await assertTokenLimit(tx, owner.kind, ownerFilter);
        // A token's holder also owns the tokens created with it.
        const createdBy = caller.userId ?? (await tokens.findCreator(caller.tokenId));
        const made = await tokens.insert({ owner, hash, name, description, scopes, expiresAt, createdBy });
        const role = owner.kind === 'organization' ? { role: owner.role } : {};
        await record(tx, audit, { caller, ownerRef, tokenId: made.id }, { ...role, kind: owner.kind, name, scopes });
        return { ...made, token: secret };
      });
    } catch (error) {
      if (!violatedConstraint(error)?.endsWith('_name')) throw error;
      throw new ConflictError(`There is, or was, a token named ${JSON.stringify(name)}; token names cannot be reused`);
    }
  }

  async revoke(caller: Caller, ownerRef: TokenOwnerRef, id: string, audit: AuditTrail): Promise<void> {
    const { owner, ownerFilter } = await this.#ownerFilter(caller, ownerRef);
    if (!idPattern.test(id)) throw tokenNotFound(id);
    await changePeople(this.#context.db, placeOf(caller, ownerRef), async (tx) => {
      await lockScope(tx, caller, ownerRef, owner);
      if (!(await createTokenRepository(tx).revoke(id, ownerFilter))) throw tokenNotFound(id);
      await record(tx, audit, { caller, ownerRef, tokenId: id }, {});
    });
  }

  /** Refuses a CI run's token. The previous secret stays valid for `overlapSeconds`. */
  async rotate(
    caller: Caller,
    ownerRef: TokenOwnerRef,
    { id, overlapSeconds }: { readonly id: string; readonly overlapSeconds: number },
    audit: AuditTrail,
  ): Promise<RotatedToken> {
    const { owner, ownerFilter } = await this.#ownerFilter(caller, ownerRef);
    if (!idPattern.test(id)) throw tokenNotFound(id);
    const { token, hash } = mintToken('hf-');
    return changePeople(this.#context.db, placeOf(caller, ownerRef), async (tx) => {
      await lockScope(tx, caller, ownerRef, owner);
      const tokens = createTokenRepository(tx);
      const by = caller.userId ?? (await tokens.findCreator(caller.tokenId));
      const rotated = await tokens.rotate(id, hash, { ownerFilter, overlapSeconds, by });
      const holder = rotated ? null : await tokens.findHolder(id, ownerFilter);
      if (holder === 'run')
        throw new ForbiddenError('This token was issued to a CI run and cannot be rotated: it ends as its policy says');
      if (holder === 'provider')
        throw new ForbiddenError(
          'This token belongs to the identity provider; an operator can rotate it: holdfast admin token rotate',
        );
      if (!rotated) throw tokenNotFound(id);
      await record(tx, audit, { caller, ownerRef, tokenId: id }, { overlapSeconds });
      return { ...rotated, token };
    });
  }

  /** The maximum lifetime of a new token; null: no limit. */
  async findMaxSeconds(caller: Caller, ownerRef: TokenOwnerRef): Promise<number | null> {
    const { owner } = await this.#ownerFilter(caller, ownerRef);
    const tokens = createTokenRepository(this.#context.db);
    return owner.kind === 'personal'
      ? tokens.findMaxSecondsOfUser(owner.userId)
      : tokens.findMaxSeconds(owner.organizationId);
  }

  async #ownerFilter(
    caller: Caller,
    ownerRef: TokenOwnerRef,
    { admin, service }: Pick<TokenRequest, 'admin' | 'service'> = { admin: false, service: false },
  ): Promise<{ readonly ownerFilter: TokenOwnerFilter; readonly owner: TokenOwner }> {
    // The new token would outlive the policy that issued this one.
    assertNoRun(caller);
    if (caller.isScoped) throw new ForbiddenError('A token with scopes cannot manage tokens');
    if (ownerRef.of === 'caller') {
      if (caller.userId === null) throw new ForbiddenError('This token belongs to no user: it has no personal tokens');
      return { ownerFilter: { userId: caller.userId }, owner: { kind: 'personal', userId: caller.userId } };
    }
    const organization = await getOrganization(this.#context.db, ownerRef.organization);
    if (ownerRef.of === 'team') {
      const team = await this.#findTeam(caller, organization.id, ownerRef.team);
      return {
        ownerFilter: { teamId: team.id },
        owner: { kind: 'team', organizationId: organization.id, teamId: team.id },
      };
    }
    const owner: TokenOwner = service
      ? { kind: 'service', organizationId: organization.id }
      : { kind: 'organization', organizationId: organization.id, role: admin ? 'admin' : 'member' };
    return { ownerFilter: { organizationId: organization.id }, owner };
  }

  /** Refuses everybody but admins of the organization and of the team. */
  async #findTeam(caller: Caller, organizationId: string, name: string): Promise<TeamRow> {
    const teams = createTeamRepository(this.#context.db);
    const team = await teams.find(organizationId, name);
    const isAdmin = caller.role === 'admin';
    if (team && (isAdmin || (caller.userId !== null && (await teams.isAdmin(team.id, caller.userId))))) return team;
    if (isAdmin) throw new NotFoundError(`There is no team ${JSON.stringify(name.slice(0, 100))}`);
    throw new ForbiddenError('This needs the role admin in the organization or in the team');
  }
}

async function lockScope(tx: Queryable, caller: Caller, ownerRef: TokenOwnerRef, owner: TokenOwner): Promise<void> {
  if (ownerRef.of === 'caller') await lockOwner(tx, caller);
  else if (owner.kind === 'team') await lockTeam(tx, ownerRef.organization, caller, owner.teamId);
  else await lockManagement(tx, ownerRef.organization, caller);
}

function placeOf({ login }: Caller, ownerRef: TokenOwnerRef): string {
  return ownerRef.of === 'caller' ? `user ${login}` : ownerRef.organization;
}

async function record(
  tx: Queryable,
  audit: AuditTrail,
  {
    caller,
    ownerRef,
    tokenId,
  }: { readonly caller: Caller; readonly ownerRef: TokenOwnerRef; readonly tokenId: string },
  facts: Readonly<Record<string, unknown>>,
): Promise<void> {
  if (ownerRef.of === 'caller')
    return recordOfPerson(tx, audit, { login: caller.login, object: tokenId, details: facts });
  const details = { ...(ownerRef.of === 'team' ? { team: ownerRef.team } : {}), ...facts };
  await audit.record(tx, { organization: ownerRef.organization, object: tokenId, details });
}

function tokenNotFound(id: string): NotFoundError {
  return new NotFoundError(`There is no valid token ${JSON.stringify(id.slice(0, 60))} that can be changed here`);
}
