import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../../shared/platform/db/sql.ts';
import { type ListedOrganization, unnested } from '../../../shared/stacks/stack-list-repository.ts';
import type { ViewedPage } from './saved-view.ts';

const SavedViewRow = Type.Object({
  id: Type.String(),
  name: Type.String(),
  page: Type.Unsafe<ViewedPage['page']>(Type.String()),
  search: Type.Record(Type.String(), Type.String()),
  isShared: Type.Boolean(),
  /** A login. */
  author: Type.String(),
  isOwn: Type.Boolean(),
  isPinned: Type.Boolean(),
});
export type SavedViewRow = Row<typeof SavedViewRow>;

const OwnedViewRow = Type.Object({ ...SavedViewRow.properties, organization: Type.String() });

const LockedRow = Type.Object({ name: Type.String(), isShared: Type.Boolean(), isOwn: Type.Boolean() });
const CountRow = Type.Object({ own: Type.Integer(), shared: Type.Integer() });
const IdRow = Type.Object({ id: Type.String() });

/** Any number that no other lock on the same ids uses. */
const makingLock = 35;

export interface NewView {
  readonly name: string;
  readonly isShared: boolean;
  readonly viewed: ViewedPage;
}

/** The columns of a view `v` of the author `u`, as `userId` sees it. */
function columns(userId: string) {
  return sql.fragment`
    v.id, v.name, v.page, v.search, v.is_shared as "isShared", u.login as author, v.user_id = ${userId} as "isOwn",
    exists (select from saved_view_pins p where p.view_id = v.id and p.user_id = ${userId}) as "isPinned"`;
}

/** Pinned views first, then the user's own. */
export function listViewsOf(
  db: Queryable,
  organizations: readonly ListedOrganization[],
  userId: string,
  limit: number,
) {
  return db.any(sql.rows(OwnedViewRow)`
    /* savedViews.listEverywhere */
    select o.name as organization, ${columns(userId)}
    from ${unnested(organizations)} as o (id, name, facts)
    join saved_views v on v.organization_id = o.id and (v.is_shared or v.user_id = ${userId})
    join users u on u.id = v.user_id
    order by "isPinned" desc, "isOwn" desc, lower(v.name), v.id limit ${limit}`);
}

/** Saved views as `userId` sees them. */
export function createSavedViewRepository(db: Queryable, organizationId: string, userId: string) {
  const isVisible = sql.fragment`
    v.organization_id = ${organizationId} and (v.is_shared or v.user_id = ${userId})`;
  return {
    /** Own and shared views. */
    list: () =>
      db.any(sql.rows(SavedViewRow)`
        /* savedViews.list */
        select ${columns(userId)} from saved_views v join users u on u.id = v.user_id
        where ${isVisible} order by lower(v.name), v.id`),

    /** Waits for concurrent transactions that add views to the organization. */
    countForNew: async () => {
      await db.query(sql.nothing`
        /* savedViews.lockForNew */ select pg_advisory_xact_lock(hashtextextended(${organizationId}, ${makingLock}::bigint))`);
      return db.one(sql.rows(CountRow)`
        /* savedViews.countForNew */
        select count(*) filter (where v.user_id = ${userId})::int as own, count(*) filter (where v.is_shared)::int as shared
        from saved_views v where ${isVisible}`);
    },

    insert: async ({ isShared, name, viewed: { page, search } }: NewView): Promise<string> => {
      const { id } = await db.one(sql.rows(IdRow)`
        /* savedViews.insert */
        insert into saved_views (organization_id, user_id, name, is_shared, page, search)
        values (${organizationId}, ${userId}, ${name}, ${isShared}, ${page}, ${JSON.stringify(search)}::jsonb)
        returning id`);
      return id;
    },

    /** Null if the user sees no view with this id. */
    lock: (id: string) =>
      db.maybeOne(sql.rows(LockedRow)`
        /* savedViews.lock */
        select v.name, v.is_shared as "isShared", v.user_id = ${userId} as "isOwn"
        from saved_views v where ${isVisible} and v.id = ${id} for update`),

    change: (id: string, { isShared, name }: Pick<NewView, 'name' | 'isShared'>) =>
      db.query(sql.nothing`
        /* savedViews.change */ update saved_views set name = ${name}, is_shared = ${isShared} where id = ${id}`),

    replacePage: (id: string, { page, search }: ViewedPage) =>
      db.query(sql.nothing`
        /* savedViews.replacePage */
        update saved_views set page = ${page}, search = ${JSON.stringify(search)}::jsonb where id = ${id}`),

    remove: (id: string) => db.query(sql.nothing`/* savedViews.remove */ delete from saved_views where id = ${id}`),

    pin: (id: string) =>
      db.query(sql.nothing`
        /* savedViews.pin */ insert into saved_view_pins (view_id, user_id) values (${id}, ${userId}) on conflict do nothing`),

    unpin: (id: string) =>
      db.query(sql.nothing`
        /* savedViews.unpin */ delete from saved_view_pins where view_id = ${id} and user_id = ${userId}`),
  };
}
