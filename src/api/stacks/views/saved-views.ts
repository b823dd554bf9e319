import { violatedConstraint } from '../../../shared/platform/db/sqlstate.ts';
import {
  ConflictError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
} from '../../../shared/platform/errors/errors.ts';
import { createStackListRepository } from '../../../shared/stacks/stack-list-repository.ts';
import { assertManages, lockAccess } from '../../access/locked-access.ts';
import { getOrganization } from '../../access/organizations.ts';
import type { ApiContext } from '../../platform/api-context.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../../platform/http/request.ts';
import type { ViewedPage } from './saved-view.ts';
import { createSavedViewRepository, listViewsOf, type NewView, type SavedViewRow } from './saved-view-repository.ts';

/** A member's own views in an organization, and shared views of all members together. */
const maxViews = { own: 50, shared: 50 } as const;
/** Views over all organizations of a user. */
const maxEverywhere = 500;

/** Private views, and views shared with the organization. Only changes of shared views are recorded. */
export class SavedViews {
  readonly #context: Pick<ApiContext, 'db'>;

  constructor(context: Pick<ApiContext, 'db'>) {
    this.#context = context;
  }

  async list(caller: Caller, organization: string): Promise<readonly SavedViewRow[]> {
    const userId = userOf(caller);
    const { db } = this.#context;
    return createSavedViewRepository(db, (await getOrganization(db, organization)).id, userId).list();
  }

  /** If there are too many, the pinned and own ones first. */
  async listEverywhere(caller: Caller) {
    const userId = userOf(caller);
    const { db } = this.#context;
    const all = await createStackListRepository(db).listOrganizations(caller.tokenId, { name: null, from: null });
    return listViewsOf(db, all, userId, maxEverywhere);
  }

  /** Saves a view, and pins it for the caller. Returns its id. */
  create(caller: Caller, organization: string, view: NewView, audit: AuditTrail): Promise<string> {
    const { isShared, viewed } = view;
    const name = readName(view.name);
    assertText(viewed);
    return this.#change(caller, organization, async ({ record, views }) => {
      const { own, shared } = await views.countForNew();
      if (own >= maxViews.own)
        throw new ConflictError(`You have ${maxViews.own} views here, the maximum: delete one first`);
      assertMayShareMore(isShared ? shared : 0);
      const id = await views.insert({ isShared, name, viewed });
      await views.pin(id);
      await record(audit, isShared, { id, name });
      return id;
    });
  }

  change(
    caller: Caller,
    organization: string,
    { id, viewed, ...wanted }: { readonly id: string } & Partial<NewView>,
    audit: AuditTrail,
  ): Promise<void> {
    if (viewed) assertText(viewed);
    return this.#change(caller, organization, async ({ record, views }) => {
      // Before the lock of the view: calls that create a view take no other lock after this one.
      const { shared } = await views.countForNew();
      const before = await lockView(views, id);
      if (!before.isOwn) throw new ForbiddenError('Only its author can change a view');
      const { isShared = before.isShared } = wanted;
      const name = wanted.name === undefined ? before.name : readName(wanted.name);
      assertMayShareMore(isShared && !before.isShared ? shared : 0);
      await views.change(id, { name, isShared });
      if (viewed) await views.replacePage(id, viewed);
      await record(audit, isShared || before.isShared, {
        ...{ id, name, shared: isShared },
        ...(viewed && { filter: viewed.search }),
      });
    });
  }

  /** Pins the view to the caller's sidebar, or unpins it. */
  pin(caller: Caller, organization: string, id: string, isPinned: boolean, audit: AuditTrail): Promise<void> {
    return this.#change(caller, organization, async ({ record, views }) => {
      await lockView(views, id);
      await (isPinned ? views.pin(id) : views.unpin(id));
      await record(audit, false, {});
    });
  }

  /** Allowed for its author and, if it is shared, for admins. */
  remove(caller: Caller, organization: string, id: string, audit: AuditTrail): Promise<void> {
    return this.#change(caller, organization, async ({ record, role, views }) => {
      const { isOwn, isShared, name } = await lockView(views, id);
      if (!isOwn) assertManages({ role, isScoped: caller.isScoped }, organization);
      await views.remove(id);
      await record(audit, isShared, { id, name });
    });
  }

  /** The transaction holds the caller's membership. */
  async #change<Result>(
    caller: Caller,
    organization: string,
    run: (change: {
      readonly views: SavedViewRepository;
      readonly role: Caller['role'];
      /** Records the change if others see the view. */
      readonly record: (audit: AuditTrail, isSeen: boolean, details: object) => Promise<void>;
    }) => Promise<Result>,
  ): Promise<Result> {
    const userId = userOf(caller);
    try {
      return await this.#context.db.inTransaction(async (tx) => {
        const { role } = await lockAccess(tx, organization, caller);
        const { id } = await getOrganization(tx, organization);
        return run({
          role,
          views: createSavedViewRepository(tx, id, userId),
          record: async (audit, isSeen, details) =>
            isSeen ? audit.record(tx, { organization, object: organization, details: { ...details } }) : audit.settle(),
        });
      });
    } catch (error) {
      if (violatedConstraint(error) !== 'saved_views_name_key') throw error;
      throw new ConflictError('You have a view of this name already');
    }
  }
}

type SavedViewRepository = ReturnType<typeof createSavedViewRepository>;

/** Only a user without scopes has views. */
function userOf({ isScoped, policyId, userId }: Caller): string {
  if (userId === null || isScoped || policyId !== null)
    throw new ForbiddenError('Saved views belong to users: sign in, or use a personal token without scopes');
  return userId;
}

async function lockView(views: SavedViewRepository, id: string) {
  const view = await views.lock(id);
  if (!view) throw new NotFoundError('There is no such view');
  return view;
}

function assertText({ search }: ViewedPage): void {
  if (!Object.values(search).every((value) => value.isWellFormed()))
    throw new InvalidRequestError('The search is not valid text');
}

function assertMayShareMore(shared: number): void {
  if (shared >= maxViews.shared)
    throw new ConflictError(`${maxViews.shared} views are shared here, the maximum: delete one first`);
}

function readName(text: string): string {
  const name = text.trim();
  const isVisible = /[\p{L}\p{N}\p{P}\p{S}]/u.test(name);
  // Characters that control the direction of text would also affect the text around the name.
  if (!isVisible || !name.isWellFormed() || /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u.test(name))
    throw new InvalidRequestError('The name of a view must be one line of text');
  return name;
}
