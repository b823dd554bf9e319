import { isDeepStrictEqual } from 'node:util';
import type { Queryable } from '../../platform/db/sql.ts';
import { InvalidRequestError } from '../../platform/errors/errors.ts';
import { TimeSlices } from '../../platform/slices/slices.ts';
import { createIdentityRepository } from '../identity-repository.ts';
import { createPeopleRepository } from '../people-repository.ts';
import { createTeamRepository } from '../team-repository.ts';
import { createIssuerRepository, type IssuerRow, type PolicyRow } from './issuer-repository.ts';
import { checkTotals } from './trust-definitions.ts';
import { isAbout, isMatching, requestedKind, type TrustPolicy } from './trust-policy.ts';

export interface PolicyAuthor {
  /** Null for an operator, or a token without a user. */
  readonly userId: string | null;
  /** The author may let the issuer obtain personal tokens for this user; `anyone` for an operator. */
  readonly actsFor: string | null | 'anyone';
}

/**
 * The issuer must be locked. Unchanged policies stay, with the tokens issued under them. Other tokens are revoked, and so are all that a
 * policy now denies. Throws InvalidRequestError.
 */
export async function replacePolicies(
  tx: Queryable,
  issuer: IssuerRow,
  wanted: readonly TrustPolicy[],
  maker: PolicyAuthor,
  compareMs = maxCompareMs,
): Promise<readonly PolicyRow[]> {
  checkTotals(wanted);
  const issuers = createIssuerRepository(tx);
  const left = [...(await issuers.listPolicies(issuer.id))];
  const kept: (string | null)[] = wanted.map((policy) => {
    const at = left.findIndex((row) => isSame(row, policy));
    return at < 0 ? null : (left.splice(at, 1)[0] as PolicyRow).id;
  });
  const removed = left.map(({ id }) => id);
  for (const [position, policy] of wanted.entries()) {
    const id = kept[position];
    if (id) await issuers.movePolicy(id, position);
    else await issuers.insertPolicy(issuer.id, position, await withOwner(tx, issuer, policy, maker), maker.userId);
  }
  await issuers.countPolicyChange(issuer.id);
  const rows = (await issuers.listPolicies(issuer.id)).filter(({ id }) => !removed.includes(id));
  const denied = await findDenied(tx, rows, compareMs);
  // In one step, as late as possible: other transactions wait for the locks.
  await issuers.revokeTokens({ policyIds: [...removed, ...denied.policyIds], ids: denied.ids });
  await issuers.removePolicies(removed);
  return rows;
}

function isSame(row: PolicyRow, policy: TrustPolicy): boolean {
  const { id: _id, teamId: _teamId, userId: _userId, ...written } = row;
  return isDeepStrictEqual(written, policy);
}

async function withOwner(
  tx: Queryable,
  { organizationId }: IssuerRow,
  policy: TrustPolicy,
  { actsFor }: PolicyAuthor,
): Promise<TrustPolicy & { teamId: string | null; userId: string | null }> {
  const { decision, owner, tokenKind } = policy;
  const nobody = { teamId: null, userId: null };
  if (owner === null) return { ...policy, ...nobody };
  const quoted = JSON.stringify(owner.slice(0, 100));
  if (tokenKind === 'team') {
    const team = await createTeamRepository(tx).find(organizationId, owner);
    if (!team) throw new InvalidRequestError(`There is no team ${quoted}`);
    return { ...policy, ...nobody, teamId: team.id };
  }
  const user = await createIdentityRepository(tx).findUser(owner);
  const membership = user && (await createPeopleRepository(tx).findMembership(organizationId, user.id));
  if (!user || !membership) throw new InvalidRequestError(`${quoted} is not a member of the organization`);
  // An admin cannot create tokens for other users in other ways either.
  if (decision === 'allow' && actsFor !== 'anyone' && actsFor !== user.id)
    throw new InvalidRequestError(
      `Only ${quoted} or an operator (holdfast admin issuer allow) can let CI act as ${quoted}`,
    );
  return { ...policy, ...nobody, userId: user.id };
}

/** If the comparison takes too long, returns the policies to which a denial applies instead. */
async function findDenied(
  tx: Queryable,
  policies: readonly PolicyRow[],
  compareMs: number,
): Promise<{ readonly policyIds: readonly string[]; readonly ids: readonly string[] }> {
  const issuers = createIssuerRepository(tx);
  const denialsOf = findDenials(policies);
  const policyIds = [...denialsOf.keys()];
  const ids: string[] = [];
  if (policyIds.length === 0) return { policyIds: [], ids };
  const slices = new TimeSlices();
  let comparedMs = 0;
  await issuers.openTokens(policyIds);
  for (let tokens = await issuers.listTokens(); tokens.length > 0; tokens = await issuers.listTokens()) {
    for (const { claims, id, policyId } of tokens) {
      await slices.pause();
      if (comparedMs > compareMs) {
        await issuers.closeTokens();
        return { policyIds, ids: [] };
      }
      // The time of the statements does not count: a slow database is no sign of slow patterns.
      const began = performance.now();
      if (denialsOf.get(policyId)?.some((denial) => isMatching(denial, claims))) ids.push(id);
      comparedMs += performance.now() - began;
    }
  }
  await issuers.closeTokens();
  return { policyIds: [], ids };
}

/** Keyed by the id of the affected policy. */
function findDenials(policies: readonly PolicyRow[]): ReadonlyMap<string, readonly PolicyRow[]> {
  const denials = policies.filter(({ decision }) => decision === 'deny');
  const found = policies.flatMap(({ decision, id, owner, tokenKind }): [string, readonly PolicyRow[]][] => {
    if (decision === 'deny' || tokenKind === 'any') return [];
    const about = denials.filter((denial) => isAbout(denial, { kind: requestedKind(tokenKind), owner }));
    return about.length > 0 ? [[id, about]] : [];
  });
  return new Map(found);
}

/** Other transactions wait meanwhile. After this time, all compared tokens are revoked; their runs may exchange another id token. */
const maxCompareMs = 5_000;
