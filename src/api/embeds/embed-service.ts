import { decide } from '../../shared/access/access-decision.ts';
import { hasPermission } from '../../shared/access/permissions.ts';
import { hashToken, mintToken, tokenForm } from '../../shared/platform/crypto/secret-token.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ConflictError, ForbiddenError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { createStackRepository } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { createAccessHolderRepository } from '../access/access-holder-repository.ts';
import { lockAccess, lockManagement } from '../access/locked-access.ts';
import { getOrganization } from '../access/organizations.ts';
import { assertPermission } from '../access/stack-access.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import { renderBadge } from './badge.ts';
import {
  createEmbedRepository,
  type EmbedKind,
  type EmbedOwner,
  type EmbedRow,
  type EntryRow,
} from './embed-repository.ts';
import { renderFeed } from './feed.ts';

export type EmbedOwnerRef =
  | StackRef
  | { readonly organization: string; readonly project?: never; readonly stack?: never };

/** `isFound`: false if the address shows nothing, for whatever reason. */
export interface RenderedEmbed {
  readonly text: string;
  readonly isFound: boolean;
}

const prefixes: Readonly<Record<EmbedKind, string>> = { badge: 'hfb-', feed: 'hff-' };
const maxEmbeds = 20;
const maxEntries = 50;

/**
 * Badges and feeds of stacks are for callers who may write to the stack, feeds of organizations for their admins. A reader needs only the
 * token in the address. A badge stays when its creator leaves, because it reveals only a status; a feed shows only stacks that its creator
 * may still read.
 */
export class EmbedService {
  readonly #context: Pick<ApiContext, 'db' | 'config'>;

  constructor(context: Pick<ApiContext, 'db' | 'config'>) {
    this.#context = context;
  }

  async list(ref: EmbedOwnerRef): Promise<readonly EmbedRow[]> {
    const { db } = this.#context;
    return createEmbedRepository(db).list(await findOwner(db, ref));
  }

  /** The returned token is not stored. Throws ConflictError if there are too many. */
  async create(caller: Caller, ref: EmbedOwnerRef, kind: EmbedKind, audit: AuditTrail) {
    const { userId } = caller;
    if (kind === 'feed' && userId === null)
      throw new ForbiddenError(
        'A feed shows what a user may read: create it as a user, not with the token of a team or service',
      );
    if (kind === 'feed' && caller.isScoped)
      throw new ForbiddenError(
        'A feed shows all that its user may read: create it with a token without scopes, or sign in',
      );
    const { token, hash } = mintToken(prefixes[kind]);
    const id = await this.#context.db.inTransaction(async (tx) => {
      const owner = await lockOwner(tx, ref, caller);
      const embeds = createEmbedRepository(tx);
      if ((await embeds.count(owner)) >= maxEmbeds)
        throw new ConflictError(`There are ${maxEmbeds} badges and feeds here, the maximum: revoke one first`);
      const made = await embeds.insert(owner, kind, hash, userId);
      await record(tx, audit, ref, kind, made.id);
      return made.id;
    });
    return { id, token };
  }

  async revoke(caller: Caller, ref: EmbedOwnerRef, id: string, audit: AuditTrail): Promise<void> {
    await this.#context.db.inTransaction(async (tx) => {
      const removed = await createEmbedRepository(tx).remove(await lockOwner(tx, ref, caller), id);
      if (!removed) throw new NotFoundError('There is no such badge or feed');
      await record(tx, audit, ref, removed.kind, id);
    });
  }

  async showBadge(token: string): Promise<RenderedEmbed> {
    const found =
      tokenForm(token, prefixes.badge) === 'whole'
        ? await createEmbedRepository(this.#context.db).findStatus(hashToken(token))
        : null;
    return { isFound: found !== null, text: renderBadge(found === null ? 'unknown' : (found.status ?? 'none')) };
  }

  async showFeed(token: string): Promise<RenderedEmbed> {
    const { config, db } = this.#context;
    const nothing = { isFound: false, text: '' };
    if (tokenForm(token, prefixes.feed) !== 'whole') return nothing;
    const embeds = createEmbedRepository(db);
    const feed = await embeds.findFeed(hashToken(token));
    if (!feed) return nothing;
    const { login, organizationId, project, stack, stackId, tags } = feed;
    const [creator] = await createAccessHolderRepository(db, null).listUsers(organizationId, {
      only: login,
      after: null,
      limit: 1,
    });
    if (!creator) return nothing;
    const mayRead = (at: Pick<EntryRow, 'project' | 'stack' | 'tags'>): boolean =>
      hasPermission(decide(creator.facts, { ...at, tags: readTags(at.tags) }), 'read');
    const isAllowed =
      project === null || stack === null || tags === null
        ? creator.role === 'admin'
        : mayRead({ project, stack, tags });
    if (!isAllowed) return nothing;
    const shown = (await embeds.listEntries({ organizationId, stackId }, maxEntries)).filter(mayRead);
    return { isFound: true, text: renderFeed(feed, shown, config.publicUrl.replace(/\/+$/, '')) };
  }
}

async function findOwner(db: Queryable, ref: EmbedOwnerRef): Promise<EmbedOwner> {
  if (ref.stack === undefined)
    return { organizationId: (await getOrganization(db, ref.organization)).id, stackId: null };
  const stack = await createStackRepository(db).find(ref);
  if (!stack) throw stackNotFound(ref);
  return { organizationId: stack.organizationId, stackId: stack.id };
}

/** Like `findOwner`, for a change: the caller's permission is locked until the commit. */
async function lockOwner(tx: Queryable, ref: EmbedOwnerRef, caller: Caller): Promise<EmbedOwner> {
  if (ref.stack === undefined) {
    await lockManagement(tx, ref.organization, caller);
    return findOwner(tx, ref);
  }
  const access = await lockAccess(tx, ref.organization, caller);
  const stack = await createStackRepository(tx).lock(ref);
  if (!stack) throw stackNotFound(ref);
  assertPermission(access, ref, readTags(stack.tags), 'write');
  return { organizationId: stack.organizationId, stackId: stack.id };
}

function record(tx: Queryable, audit: AuditTrail, ref: EmbedOwnerRef, kind: EmbedKind, id: string): Promise<void> {
  const object = ref.stack === undefined ? ref.organization : formatStackRef(ref);
  return audit.record(tx, { organization: ref.organization, object, details: { kind, id } });
}
