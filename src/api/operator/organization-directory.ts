import { createQuotaRepository } from '../../shared/access/quotas/quota-repository.ts';
import { noOverrides, type QuotaName, type QuotaOverrides, quotaNames } from '../../shared/access/quotas/quotas.ts';
import { createStorageRepository } from '../../shared/access/quotas/storage-repository.ts';
import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import { createPeopleRepository } from '../../shared/identity/people-repository.ts';
import { createTokenRepository } from '../../shared/identity/token-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ConflictError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { assertOrganizationName, isLogin, isOrganizationName } from '../../shared/stacks/names.ts';
import { createWebhookEventRepository } from '../../shared/webhooks/webhook-event-repository.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import { afterOf, pageOf } from './name-pages.ts';
import type { CreateOrganizationRequest, SetQuotaRequest } from './operator.schemas.ts';
import { lockOperator } from './operator-access.ts';

/** Webhook events that one statement deletes. */
const eventsAtOnce = 1_000;
const tokensAtOnce = 1_000;

export class OrganizationDirectory {
  readonly #context: Pick<ApiContext, 'db' | 'quotas'>;

  constructor(context: Pick<ApiContext, 'db' | 'quotas'>) {
    this.#context = context;
  }

  /** In the order of names. */
  async list(continuationToken: string | undefined) {
    const identity = createIdentityRepository(this.#context.db);
    return pageOf(
      (limit) => identity.listOrganizations({ after: afterOf(continuationToken), limit }),
      ({ name }) => name,
    );
  }

  /** Throws ConflictError if the name is taken. */
  async create(caller: Caller, { admin, name }: CreateOrganizationRequest, audit: AuditTrail): Promise<Date> {
    assertOrganizationName(name);
    return this.#context.db.inTransaction(async (tx) => {
      await lockOperator(tx, caller);
      const identity = createIdentityRepository(tx);
      const login = admin ?? caller.login;
      const user = isLogin(login) ? await createPeopleRepository(tx).find(login) : null;
      if (!user) throw new NotFoundError(`There is no user ${JSON.stringify(login.slice(0, 100))}`);
      if (!user.isActive) throw new ConflictError(`${user.login} is deactivated, and cannot be the first admin`);
      const { created, id } = await identity.ensureOrganization(name);
      if (!created) throw new ConflictError(`There is already an organization ${name}`);
      await identity.setMembership(id, user.id, 'admin');
      await audit.record(tx, { organization: name, object: name, details: { admin: login } });
      const [row] = await identity.listOrganizations({ only: name, after: '', limit: 1 });
      return row?.createdAt ?? new Date();
    });
  }

  /** Deletes an organization without stacks and policy packs, with its members, teams, tokens and rules. Its audit events stay. */
  async delete(caller: Caller, name: string, audit: AuditTrail): Promise<void> {
    const { db } = this.#context;
    const emptyId = await db.inTransaction((tx) => lockEmpty(tx, caller, name));
    // In batches: ended tokens of CI runs and millions of webhook events are too many for the transaction that deletes the organization.
    const tokens = createTokenRepository(db);
    while ((await tokens.deleteEndedOfRuns(emptyId, tokensAtOnce)) === tokensAtOnce);
    const events = createWebhookEventRepository(db);
    while ((await events.deleteOfOrganization(emptyId, eventsAtOnce)) === eventsAtOnce);
    await db.inTransaction(async (tx) => {
      const id = await lockEmpty(tx, caller, name, '; the log of its webhooks was deleted');
      const identity = createIdentityRepository(tx);
      await audit.record(tx, { organization: null, object: name });
      await identity.removeOrganization(id);
    });
  }

  /** The limits that an operator has set. */
  async getQuota(name: string): Promise<QuotaOverrides> {
    const { db } = this.#context;
    const organization = isOrganizationName(name) ? await createIdentityRepository(db).findOrganization(name) : null;
    if (!organization) throw noOrganization(name);
    return limitsOf(await createQuotaRepository(db).listOverrides(), name);
  }

  /** A missing limit falls back to the settings. */
  async setQuota(caller: Caller, name: string, request: SetQuotaRequest, audit: AuditTrail): Promise<QuotaOverrides> {
    const { db, quotas } = this.#context;
    const organization = isOrganizationName(name) ? await createIdentityRepository(db).findOrganization(name) : null;
    if (!organization) throw noOrganization(name);
    const after: QuotaOverrides = { ...noOverrides, ...request };
    // Measured first, because the limit is compared with the last measurement.
    if (after.keptBytes !== null && after.keptBytes > 0) await createStorageRepository(db).measure(organization.id);
    await db.inTransaction(async (tx) => {
      await lockOperator(tx, caller);
      // The organization may have been deleted meanwhile; from now on, it cannot be.
      if (!(await createIdentityRepository(tx).findOrganization(name))) throw noOrganization(name);
      const changing = createQuotaRepository(tx);
      const before = limitsOf(await changing.listOverrides(), name);
      if (quotaNames.every((quota) => before[quota] === after[quota])) return audit.settle();
      if (quotaNames.every((quota) => after[quota] === null)) await changing.deleteOverrides(organization.id);
      else await changing.setOverrides(organization.id, after);
      await audit.record(tx, { organization: name, object: name, details: { before, after } });
    });
    quotas.forget();
    return after;
  }
}

/** The organization must have no stacks and policy packs; `lost` ends the message of the ConflictError. */
async function lockEmpty(tx: Queryable, caller: Caller, name: string, lost = ''): Promise<string> {
  await lockOperator(tx, caller);
  const identity = createIdentityRepository(tx);
  const id = isOrganizationName(name) ? await identity.lockOrganization(name) : null;
  if (id === null) throw noOrganization(name);
  const { packs, stacks } = await identity.countKept(id);
  if (stacks + packs > 0)
    throw new ConflictError(
      `Organization ${name} still has ${stacks} stacks, with deleted ones whose data is kept, and ${packs} policy packs${lost}`,
    );
  return id;
}

function limitsOf(
  rows: readonly (QuotaOverrides & { readonly organization: string })[],
  name: string,
): Record<QuotaName, number | null> {
  const row = rows.find(({ organization }) => organization === name) ?? noOverrides;
  return Object.fromEntries(quotaNames.map((quota) => [quota, row[quota]])) as Record<QuotaName, number | null>;
}

function noOrganization(name: string): NotFoundError {
  return new NotFoundError(`There is no organization ${JSON.stringify(name.slice(0, 100))}`);
}
