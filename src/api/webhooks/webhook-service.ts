import { randomBytes, randomUUID } from 'node:crypto';
import { createQuotaRepository } from '../../shared/access/quotas/quota-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { createStackRepository } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { claimSeconds, secretOwner } from '../../shared/webhooks/delivery-attempt.ts';
import {
  type ClaimedDelivery,
  createDeliveryRepository,
  type DeliveryRow,
  type LoggedDeliveryRow,
} from '../../shared/webhooks/delivery-repository.ts';
import { urlOriginOf } from '../../shared/webhooks/webhook.ts';
import { createWebhookEventRepository } from '../../shared/webhooks/webhook-event-repository.ts';
import {
  createWebhookRepository,
  type WebhookRow,
  type WebhookScope,
} from '../../shared/webhooks/webhook-repository.ts';
import { lockAccess, lockManagement } from '../access/locked-access.ts';
import { getOrganization } from '../access/organizations.ts';
import { assertPermission } from '../access/stack-access.ts';
import { FairSemaphore } from '../platform/admission/fair-semaphore.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { findLastEdit } from '../platform/edits/last-edit.ts';
import { assertSeen, type SeenRevisions } from '../platform/edits/revisions.ts';
import type { Caller } from '../platform/http/request.ts';
import { listStackWebhooks, type StackWebhookPage } from './stack-webhooks.ts';
import { assertKeepsSecret, changed, revisionOfWebhook, secretOf } from './webhook-edit.ts';
import type { WebhookRequest } from './webhooks.schemas.ts';

export type { DeliveryRow, LoggedDeliveryRow, WebhookRow };

/** A stack, or without one the organization. */
export type WebhookOwner =
  | StackRef
  | { readonly organization: string; readonly project?: never; readonly stack?: never };

const maxWebhooks = 100;
const maxLogged = 100;

/** Organizations' webhooks are for admins, stacks' webhooks for callers with the permission admin. */
export class WebhookService {
  readonly #context: ApiContext;
  /** Callers wait for these deliveries, and receivers may be slow. */
  readonly #deliveries = new FairSemaphore({ atOnce: 32, atOncePerCaller: 4 });

  constructor(context: ApiContext) {
    this.#context = context;
  }

  async list(owner: WebhookOwner): Promise<readonly WebhookRow[]> {
    const { db } = this.#context;
    return createWebhookRepository(db).list(await findScope(db, owner));
  }

  /** A page by displayed names. */
  async listPage(owner: WebhookOwner, after: string | null, limit: number) {
    const { db } = this.#context;
    return cut(await createWebhookRepository(db).listPage(await findScope(db, owner), after, limit + 1), limit);
  }

  /** Lists only webhooks of stacks that the caller may administer. */
  listOfStacks(caller: Caller, organization: string, continuationToken: string | undefined): Promise<StackWebhookPage> {
    return listStackWebhooks(this.#context.db, caller, organization, continuationToken);
  }

  async get(owner: WebhookOwner, name: string): Promise<WebhookRow> {
    const { db } = this.#context;
    return existing(await createWebhookRepository(db).find(await findScope(db, owner), name), name);
  }

  /** Throws ConflictError if the name is taken. */
  async create(caller: Caller, owner: WebhookOwner, request: WebhookRequest, audit: AuditTrail): Promise<WebhookRow> {
    const { db, secrets } = this.#context;
    const { displayName, name, payloadUrl } = request;
    // Looked up first: errors in a request must not matter if the stack does not exist.
    await findScope(db, owner);
    if (!displayName || !payloadUrl) throw new InvalidRequestError('A webhook needs displayName and payloadUrl');
    if (name && !/^[A-Za-z0-9._-]{1,32}$/.test(name))
      throw new InvalidRequestError('The id of a webhook has 1 to 32 letters, digits, dots, hyphens and underscores');
    const id = randomUUID();
    const wanted = changed(
      { displayName, url: payloadUrl, format: 'raw', isActive: true, events: [], groups: [] },
      request,
    );
    const secret = secretOf(request);
    return orTaken(
      db.inTransaction(async (tx) => {
        const scope = await lockScope(tx, owner, caller);
        // For a stack, the exclusive lock on its row is enough; it comes later.
        if (scope.stackId === null) await createQuotaRepository(tx).lockOrganization(scope.organizationId);
        const webhooks = createWebhookRepository(tx);
        if ((await webhooks.count(scope)) >= maxWebhooks)
          throw new ConflictError(`There are ${maxWebhooks} webhooks here, the maximum: remove one first`);
        const made = await webhooks.insert(scope, {
          ...wanted,
          id,
          name: name || randomBytes(4).toString('hex'),
          secret: secret ? await secrets.encrypt(tx, secretOwner(id), secret) : null,
          createdBy: caller.userId,
        });
        await record(tx, audit, owner, made);
        return made;
      }),
    );
  }

  /** Throws ConflictError if the name is taken. */
  async update(
    caller: Caller,
    owner: WebhookOwner,
    name: string,
    request: WebhookRequest,
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<WebhookRow> {
    const { db, secrets } = this.#context;
    return orTaken(
      db.inTransaction(async (tx) => {
        const webhooks = createWebhookRepository(tx);
        const before = existing(await webhooks.lock(await lockScope(tx, owner, caller), name), name);
        await assertSeenWebhook(tx, owner, before, seen);
        const wanted = changed(before, request);
        const secret = secretOf(request);
        if (before.encrypted !== null && secret === undefined) assertKeepsSecret(before, wanted);
        const encrypted =
          typeof secret === 'string' ? await secrets.encrypt(tx, secretOwner(before.id), secret) : secret;
        const made = await webhooks.update(before.id, wanted, encrypted);
        await record(tx, audit, owner, made, {
          secret: secret === undefined ? 'kept' : secret === null ? 'removed' : 'set',
        });
        return made;
      }),
    );
  }

  async remove(
    caller: Caller,
    owner: WebhookOwner,
    name: string,
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<void> {
    await this.#context.db.inTransaction(async (tx) => {
      const webhooks = createWebhookRepository(tx);
      const found = existing(await webhooks.lock(await lockScope(tx, owner, caller), name), name);
      await assertSeenWebhook(tx, owner, found, seen);
      await webhooks.remove(found.id);
      await record(tx, audit, owner, found);
    });
  }

  /** The newest ones. */
  async listDeliveries(owner: WebhookOwner, name: string) {
    const { format, id } = await this.get(owner, name);
    return { format, deliveries: await createDeliveryRepository(this.#context.db).list(id, maxLogged) };
  }

  /** Newest first, without bodies. */
  async listLog(owner: WebhookOwner, name: string, before: number | null, limit: number) {
    const { id } = await this.get(owner, name);
    return cut(await createDeliveryRepository(this.#context.db).listPage(id, before, limit + 1), limit);
  }

  async getDelivery(owner: WebhookOwner, name: string, deliveryId: string) {
    const { format, id } = await this.get(owner, name);
    const found = isUuid(deliveryId) ? await createDeliveryRepository(this.#context.db).find(id, deliveryId) : null;
    if (!found) throw deliveryNotFound(deliveryId);
    return { format, delivery: found };
  }

  /** Waits for the result of a test event. */
  ping(caller: Caller, owner: WebhookOwner, name: string, audit: AuditTrail) {
    return this.#deliver(caller, owner, name, audit, (tx, { organizationId, stackId }) =>
      createWebhookEventRepository(tx).insert({ organizationId, stackId, event: 'ping' }),
    );
  }

  /** Sends the event of an earlier delivery and waits for the result. */
  redeliver(caller: Caller, owner: WebhookOwner, name: string, deliveryId: string, audit: AuditTrail) {
    return this.#deliver(caller, owner, name, audit, async (tx, { id }) => {
      const event = isUuid(deliveryId) ? await createDeliveryRepository(tx).findEvent(id, deliveryId) : null;
      if (event === null) throw deliveryNotFound(deliveryId);
      return event;
    });
  }

  #deliver(
    caller: Caller,
    owner: WebhookOwner,
    name: string,
    audit: AuditTrail,
    eventOf: (tx: Queryable, webhook: WebhookRow) => Promise<string>,
  ): Promise<{ readonly format: string; readonly delivery: DeliveryRow }> {
    const { db, deliveryAttempts } = this.#context;
    return this.#deliveries.run({ tokenId: owner.organization, userId: null }, null, async () => {
      const { claimed, format } = await db.inTransaction(async (tx) => {
        const webhooks = createWebhookRepository(tx);
        const found = existing(await webhooks.find(await lockScope(tx, owner, caller), name), name);
        const event = await eventOf(tx, found);
        const added: ClaimedDelivery = await createDeliveryRepository(tx).addClaimed(found.id, event, claimSeconds);
        await record(tx, audit, owner, found, { event: added.event });
        return { claimed: added, format: found.format };
      });
      await deliveryAttempts.attempt(claimed, new AbortController().signal);
      return { format, delivery: await createDeliveryRepository(db).get(claimed.id) };
    });
  }
}

async function findScope(db: Queryable, owner: WebhookOwner): Promise<WebhookScope> {
  if (owner.stack === undefined) {
    const organization = await getOrganization(db, owner.organization);
    return { organizationId: organization.id, stackId: null };
  }
  const stack = await createStackRepository(db).find(owner);
  if (!stack) throw stackNotFound(owner);
  return { organizationId: stack.organizationId, stackId: stack.id };
}

/** The caller's permission is locked until the commit. */
async function lockScope(tx: Queryable, owner: WebhookOwner, caller: Caller): Promise<WebhookScope> {
  if (owner.stack === undefined) {
    await lockManagement(tx, owner.organization, caller);
    return findScope(tx, owner);
  }
  const access = await lockAccess(tx, owner.organization, caller);
  const stack = await createStackRepository(tx).lock(owner);
  if (!stack) throw stackNotFound(owner);
  assertPermission(access, stack, readTags(stack.tags), 'admin');
  return { organizationId: stack.organizationId, stackId: stack.id };
}

function assertSeenWebhook(
  tx: Queryable,
  owner: WebhookOwner,
  webhook: WebhookRow,
  seen: SeenRevisions,
): Promise<void> {
  return assertSeen(seen, revisionOfWebhook(webhook), 'this webhook', () =>
    findLastEdit(
      tx,
      webhook.organizationId,
      'webhook.change',
      ({ object }) => object === objectOf(owner, webhook.name),
    ),
  );
}

function objectOf(owner: WebhookOwner, name: string): string {
  return `${owner.stack === undefined ? owner.organization : formatStackRef(owner)}/${name}`;
}

/** Paths of URLs can be secrets, so the log contains only origins. */
function record(
  tx: Queryable,
  audit: AuditTrail,
  owner: WebhookOwner,
  { displayName, events, format, groups, isActive, name, url }: WebhookRow,
  more: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const details = { displayName, server: urlOriginOf(url), format, isActive, events, groups, ...more };
  return audit.record(tx, { organization: owner.organization, object: objectOf(owner, name), details });
}

function deliveryNotFound(id: string): NotFoundError {
  return new NotFoundError(`There is no delivery ${JSON.stringify(id.slice(0, 60))}`);
}

function cut<Row>(rows: readonly Row[], limit: number): { readonly rows: readonly Row[]; readonly isCut: boolean } {
  return { rows: rows.slice(0, limit), isCut: rows.length > limit };
}

function existing(found: WebhookRow | null, name: string): WebhookRow {
  if (!found) throw new NotFoundError(`There is no webhook ${JSON.stringify(name.slice(0, 60))}`);
  return found;
}

async function orTaken<T>(change: Promise<T>): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (/^webhooks_(display_)?name_key$/.test(violatedConstraint(error) ?? ''))
      throw new ConflictError('There is already a webhook with this name');
    throw error;
  }
}
