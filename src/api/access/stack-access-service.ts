import { createGrantRepository, type GrantRow } from '../../shared/access/grant-repository.ts';
import { noPermissions } from '../../shared/access/permissions.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { isLogin, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import type { ApiContext } from '../platform/api-context.ts';
import { decodeContinuation, encodeContinuation } from '../platform/http/continuation.ts';
import type { Caller } from '../platform/http/request.ts';
import { type Explanation, explain, type HolderFacts } from './access-explanation.ts';
import { createAccessHolderRepository, type TokenHolderRow, type UserHolderRow } from './access-holder-repository.ts';
import type { AccessQuery } from './grants.schemas.ts';
import { assertSeesPeople, manages, seesPeople } from './people-access.ts';
import { isId } from './role-references.ts';

const pageSize = 100;
/** Pages to read for one page of tokens that the caller may see. */
const maxReads = 10;

export interface AccessHolder {
  readonly user: Pick<UserHolderRow, 'login' | 'displayName'> | null;
  readonly token: Pick<TokenHolderRow, 'id' | 'kind' | 'name' | 'login' | 'team'> | null;
  readonly role: string | null;
  readonly explanation: Explanation;
}

interface AccessPage {
  readonly holders: readonly AccessHolder[];
  readonly grants: readonly GrantRow[];
  /** Null on the last page. */
  readonly continuationToken: string | null;
}

type Keyed = AccessHolder & { readonly key: string };

export class StackAccessService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /**
   * Lists active members or tokens. A caller who does not administer the organization sees only tokens with a permission on the stack, and
   * sees members only if they may list people.
   */
  async list(caller: Caller, ref: StackRef, query: AccessQuery, limit = pageSize): Promise<AccessPage> {
    const { kind, only } = readHolders(query);
    const isOwn = only !== null && only === (kind === 'tokens' ? caller.tokenId : caller.userId && caller.login);
    if (kind === 'users' && !isOwn) assertSeesPeople(caller);
    const after = query.continuationToken ? readAfter(query.continuationToken, kind) : null;
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    const { organizationId } = stack;
    const facts = { ...ref, tags: readTags(stack.tags) };
    const { db } = this.#context;
    const repository = createAccessHolderRepository(db, facts);
    const explained = (of: { readonly facts: HolderFacts }, hasRole: boolean) => explain(of.facts, facts, hasRole);
    const read = async (from: string | null): Promise<readonly Keyed[]> => {
      const page = { only, after: from, limit: limit + 1 };
      return kind === 'users'
        ? (await repository.listUsers(organizationId, page)).map((row) => {
            const { displayName, login, role } = row;
            return { key: login, user: { login, displayName }, token: null, role, explanation: explained(row, true) };
          })
        : (await repository.listTokens(organizationId, page)).map((row) => {
            const { id, kind: of, login, name, role, team } = row;
            const token = { id, kind: of, name, login, team };
            return { key: id, user: null, token, role, explanation: explained(row, role !== null) };
          });
    };
    const isShown = ({ explanation, token }: Keyed): boolean =>
      token === null ||
      isOwn ||
      manages(caller) ||
      (explanation.held !== noPermissions && (token.login === null || seesPeople(caller)));
    const { holders, next } = await readShown(read, { after, limit, isShown });
    const ids = new Set(holders.flatMap((each) => each.explanation.permissions.flatMap(({ grantIds }) => grantIds)));
    return {
      holders,
      grants: ids.size === 0 ? [] : await createGrantRepository(db).listByIds(organizationId, [...ids]),
      continuationToken: next === null ? null : encodeContinuation(next),
    };
  }

  /** Null if the caller has just lost the membership or the token. */
  async explainOwn(caller: Caller, ref: StackRef) {
    // Users in a browser have the token of their session.
    const { grants, holders } = await this.list(caller, ref, { token: caller.tokenId });
    const [holder] = holders;
    return holder === undefined ? null : { holder, grants };
  }
}

/** The page may be empty although there are more rows. */
async function readShown(
  read: (after: string | null) => Promise<readonly Keyed[]>,
  { after, isShown, limit }: { after: string | null; limit: number; isShown: (row: Keyed) => boolean },
): Promise<{ readonly holders: readonly Keyed[]; readonly next: string | null }> {
  let next = after;
  for (let reads = 0; reads < maxReads; reads++) {
    const rows = await read(next);
    const page = rows.slice(0, limit);
    const holders = page.filter(isShown);
    next = rows.length > limit ? (page.at(-1)?.key ?? null) : null;
    if (holders.length > 0 || next === null) return { holders, next };
  }
  return { holders: [], next };
}

type Kind = 'users' | 'tokens';

function readHolders({ holders, token, user }: AccessQuery): { readonly kind: Kind; readonly only: string | null } {
  if (user !== undefined && token !== undefined) throw new InvalidRequestError('Name a user or a token, not both');
  const kind = holders ?? (token === undefined ? 'users' : 'tokens');
  if ((user !== undefined && kind !== 'users') || (token !== undefined && kind !== 'tokens'))
    throw new InvalidRequestError('holders does not match the given user or token');
  if (user !== undefined && !isLogin(user)) throw new InvalidRequestError('user is not a login');
  if (token !== undefined && !isId(token)) throw new InvalidRequestError('token is not the id of a token');
  return { kind, only: user ?? token ?? null };
}

function readAfter(continuationToken: string, kind: Kind): string {
  const isKey = kind === 'users' ? isLogin : isId;
  return decodeContinuation(continuationToken, (after) => (isKey(after) ? after : null));
}
