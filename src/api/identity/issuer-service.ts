import { joinAlternatives, splitAlternatives } from '../../shared/identity/trust/alternatives.ts';
import { audienceOf, checkIssuer, parseKeySet, parseReplay } from '../../shared/identity/trust/issuer.ts';
import {
  createIssuerRepository,
  type IssuerRepository,
  type IssuerRow,
  type PolicyRow,
} from '../../shared/identity/trust/issuer-repository.ts';
import { replacePolicies } from '../../shared/identity/trust/replace-policies.ts';
import {
  checkLife,
  maxPolicies,
  parseSplitPolicies,
  type WrittenPolicy,
  writePolicy,
} from '../../shared/identity/trust/trust-definitions.ts';
import type { TrustPolicy } from '../../shared/identity/trust/trust-policy.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import { lockManagement } from '../access/locked-access.ts';
import { getOrganization } from '../access/organizations.ts';
import { changePeople } from '../access/people-lock.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { findLastEdit } from '../platform/edits/last-edit.ts';
import { assertSeen, revisionOf, type SeenRevisions } from '../platform/edits/revisions.ts';
import type { Caller } from '../platform/http/request.ts';

export type { IssuerRow, PolicyRow };

export interface IssuerRequest {
  readonly name?: string;
  readonly audience?: string;
  readonly replay?: string;
  readonly maxExpiration?: number | null;
  readonly jwks?: object | null;
  readonly thumbprints?: readonly string[] | null;
}

export interface IssuerPolicies {
  readonly issuer: IssuerRow;
  readonly policies: readonly PolicyRow[];
}

/** Issuers per organization. Their keys are in memory. */
const maxIssuers = 50;

export class IssuerService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  async list(organization: string): Promise<readonly IssuerRow[]> {
    const { db } = this.#context;
    return createIssuerRepository(db).list((await getOrganization(db, organization)).id);
  }

  /** In the order of names; `next` is the last name of the page, null on the last page. */
  async listPage(organization: string, after: string | null, limit: number) {
    const { db } = this.#context;
    const { id: organizationId } = await getOrganization(db, organization);
    const rows = await createIssuerRepository(db).listPage(organizationId, { after: after ?? '', limit: limit + 1 });
    const issuers = rows.slice(0, limit);
    return { issuers, next: rows.length > limit ? (issuers.at(-1)?.name ?? null) : null };
  }

  async get(organization: string, id: string): Promise<IssuerRow> {
    const { db } = this.#context;
    return getIssuer(createIssuerRepository(db), (await getOrganization(db, organization)).id, id);
  }

  /** Throws ConflictError if the name or the URL is taken, or if there are too many issuers. */
  async register(
    caller: Caller,
    organization: string,
    request: IssuerRequest & { readonly name: string; readonly url: string },
    audit: AuditTrail,
  ): Promise<IssuerRow> {
    const { name, url } = request;
    const audience = request.audience ?? audienceOf(organization);
    checkIssuer({ name, url, audience });
    const { maxSeconds = null, jwks = null, replay = 'once' } = changeOf(request);
    return orTaken(
      this.#context.db.inTransaction(async (tx) => {
        await lockManagement(tx, organization, caller);
        const { id: organizationId } = await getOrganization(tx, organization);
        const issuers = createIssuerRepository(tx);
        if ((await issuers.count(organizationId)) >= maxIssuers)
          throw new ConflictError(`There are ${maxIssuers} issuers here, the maximum: remove one first`);
        const issuer = { organizationId, name, url, audience, replay, maxSeconds, jwks, createdBy: caller };
        const made = await issuers.insert(issuer);
        await audit.record(tx, { organization, object: name, details: { url, audience, replay, maxSeconds } });
        return made;
      }),
    );
  }

  /**
   * Ends all issued tokens, unless only the name changes. Throws ConflictError if the name is taken, or for new keys or a new audience if a
   * policy lets CI act as another user.
   */
  async update(
    caller: Caller,
    organization: string,
    id: string,
    request: IssuerRequest,
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<IssuerRow> {
    const change = changeOf(request);
    return orTaken(
      // Changes end tokens.
      changePeople(this.#context.db, organization, async (tx) => {
        await lockManagement(tx, organization, caller);
        const issuer = await lockIssuer(tx, organization, id);
        await assertSeenIssuer(tx, issuer, seen);
        checkIssuer({ ...issuer, ...change });
        const issuers = createIssuerRepository(tx);
        const changed = await issuers.update(id, change, caller);
        if (changed.jwks !== issuer.jwks || changed.audience !== issuer.audience)
          await assertForNobodyElse(tx, changed, caller);
        if (revisionOfIssuer({ ...changed, name: issuer.name }) !== revisionOfIssuer(issuer))
          await issuers.revokeAllTokens(id);
        const { jwks, ...details } = change;
        await audit.record(tx, {
          organization,
          object: changed.name,
          details: { ...details, ...(jwks === undefined ? {} : { keys: jwks === null ? 'fetched' : 'given' }) },
        });
        return changed;
      }),
    );
  }

  /** Ends the trust in the issuer, and all issued tokens. */
  async remove(
    caller: Caller,
    organization: string,
    id: string,
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<void> {
    // Removed policies end their tokens.
    await changePeople(this.#context.db, organization, async (tx) => {
      await lockManagement(tx, organization, caller);
      const issuer = await lockIssuer(tx, organization, id);
      await assertSeenIssuer(tx, issuer, seen);
      await createIssuerRepository(tx).remove(id);
      await audit.record(tx, { organization, object: issuer.name, details: { url: issuer.url } });
    });
  }

  async getPolicies(organization: string, id: string): Promise<IssuerPolicies> {
    const issuer = await this.get(organization, id);
    return { issuer, policies: await createIssuerRepository(this.#context.db).listPolicies(id) };
  }

  /** Like `getPolicies`, with one pattern for each claim. Throws ConflictError if this needs too many policies. */
  async getSplitPolicies(organization: string, id: string): Promise<IssuerPolicies> {
    return splitPolicies(await this.getPolicies(organization, id));
  }

  /** `seen`: revisions of the policies. `isSplit`: the client reads and gets split policies. */
  async setPolicies(
    caller: Caller,
    organization: string,
    id: string,
    written: readonly WrittenPolicy[],
    audit: AuditTrail,
    { isSplit = false, seen = null }: { readonly isSplit?: boolean; readonly seen?: SeenRevisions } = {},
  ): Promise<IssuerPolicies> {
    const asWritten = parseSplitPolicies(written);
    return changePeople(this.#context.db, organization, async (tx) => {
      await lockManagement(tx, organization, caller);
      const issuer = await lockIssuer(tx, organization, id);
      await assertSeen(seen, revisionOfPolicies(issuer), 'the policies of this issuer', () =>
        findLastEdit(tx, issuer.organizationId, 'issuer.policies', ({ object }) => object === issuer.name),
      );
      const maker = { userId: caller.userId, actsFor: caller.userId };
      const wanted = isSplit ? joinAlternatives(asWritten, await listPresent(tx, id)) : asWritten;
      const policies = await replacePolicies(tx, issuer, wanted, maker);
      await audit.record(tx, {
        organization,
        object: issuer.name,
        details: { policies: policies.map((policy) => ({ id: policy.id, ...writePolicy(policy) })) },
      });
      const changed = { issuer: await getIssuer(createIssuerRepository(tx), issuer.organizationId, id), policies };
      return isSplit ? splitPolicies(changed) : changed;
    });
  }
}

/** No policy may let CI act as another user: an admin who chooses the keys could choose the user. */
async function assertForNobodyElse(tx: Queryable, { id, name }: IssuerRow, { userId }: Caller): Promise<void> {
  const other = (await createIssuerRepository(tx).listPolicies(id)).find(
    (policy) => policy.decision === 'allow' && policy.tokenKind === 'personal' && policy.userId !== userId,
  );
  if (other)
    throw new ConflictError(
      `A policy of issuer ${name} lets CI act as ${JSON.stringify(other.owner)}: remove it before you change keys or audience`,
    );
}

function splitPolicies({ issuer, policies }: IssuerPolicies): IssuerPolicies {
  const split = splitAlternatives(policies);
  if (split === null)
    throw new ConflictError(
      `The policies of issuer ${issuer.name} have alternatives, several patterns for a claim, which Pulumi's provider does not know: they would be more than ${maxPolicies} policies without`,
    );
  return { issuer, policies: split };
}

async function listPresent(tx: Queryable, id: string): Promise<readonly TrustPolicy[]> {
  const rows = await createIssuerRepository(tx).listPolicies(id);
  return rows.map(({ id: _id, teamId: _teamId, userId: _userId, ...policy }) => policy);
}

/** The revision covers the fields that `update` sets. */
export function revisionOfIssuer({ audience, jwks, maxSeconds, name, replay }: IssuerRow): string {
  return revisionOf({ audience, jwks, maxSeconds, name, replay });
}

function assertSeenIssuer(tx: Queryable, issuer: IssuerRow, seen: SeenRevisions): Promise<void> {
  return assertSeen(seen, revisionOfIssuer(issuer), 'this issuer', () =>
    findLastEdit(tx, issuer.organizationId, 'issuer.change', ({ object }) => object === issuer.name),
  );
}

export function revisionOfPolicies({ policyVersion }: IssuerRow): string {
  return String(policyVersion);
}

function changeOf(request: IssuerRequest) {
  const { audience, jwks, maxExpiration, name, replay, thumbprints } = request;
  if (thumbprints && thumbprints.length > 0)
    throw new InvalidRequestError(
      'Thumbprints are not supported: the certificate of an issuer is verified against its certificate authority (HOLDFAST_CA_FILE adds one)',
    );
  if (maxExpiration) checkLife(maxExpiration);
  return {
    ...(name === undefined ? {} : { name }),
    ...(audience === undefined ? {} : { audience }),
    ...(replay === undefined ? {} : { replay: parseReplay(replay) }),
    ...(maxExpiration === undefined ? {} : { maxSeconds: maxExpiration || null }),
    ...(jwks === undefined ? {} : { jwks: jwks === null ? null : parseKeySet(jwks) }),
  };
}

async function lockIssuer(tx: Queryable, organization: string, id: string): Promise<IssuerRow> {
  const issuers = createIssuerRepository(tx);
  const { id: organizationId } = await getOrganization(tx, organization);
  await getIssuer(issuers, organizationId, id);
  await issuers.lock(id);
  return getIssuer(issuers, organizationId, id);
}

async function getIssuer(issuers: IssuerRepository, organizationId: string, id: string): Promise<IssuerRow> {
  const issuer = isUuid(id) ? await issuers.find(organizationId, id) : null;
  if (!issuer) throw new NotFoundError(`There is no issuer ${JSON.stringify(id.slice(0, 60))}`);
  return issuer;
}

async function orTaken<T>(change: Promise<T>): Promise<T> {
  try {
    return await change;
  } catch (error) {
    const constraint = violatedConstraint(error);
    if (constraint === 'trusted_issuers_name_key') throw new ConflictError('There is already an issuer with this name');
    if (constraint === 'trusted_issuers_url_key') throw new ConflictError('There is already an issuer with this URL');
    throw error;
  }
}
