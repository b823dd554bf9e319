import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../shared/platform/schema/standard-schema.ts';
import { isEffective } from '../../shared/updates/history-repository.ts';
import type { UpdateStatus } from '../../shared/updates/update-state.ts';

const Text = Nullable(Type.String());

export const EmbedKind = Type.Union([Type.Literal('badge'), Type.Literal('feed')]);
export type EmbedKind = Type.Static<typeof EmbedKind>;

/** An organization, or one of its stacks. */
export interface EmbedOwner {
  readonly organizationId: string;
  readonly stackId: string | null;
}

const EmbedRow = Type.Object({
  id: Type.String(),
  kind: EmbedKind,
  createdBy: Text,
  createdAt: Timestamp,
});
export type EmbedRow = Row<typeof EmbedRow>;

const StatusRow = Type.Object({ status: Nullable(Type.Unsafe<UpdateStatus>(Type.String())) });

const FeedRow = Type.Object({
  id: Type.String(),
  organizationId: Type.String(),
  organization: Type.String(),
  /** Null: the feed of the organization. */
  stackId: Text,
  project: Text,
  stack: Text,
  tags: Text,
  /** The permissions of this user decide what the feed shows. */
  login: Type.String(),
  createdAt: Timestamp,
});
export type FeedRow = Row<typeof FeedRow>;

const EntryRow = Type.Object({
  id: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  tags: Type.String(),
  version: Nullable(Type.Integer()),
  kind: Type.String(),
  status: Type.Unsafe<UpdateStatus>(Type.String()),
  by: Text,
  message: Type.String(),
  createdAt: Timestamp,
  /** The end of the update, or its start. */
  changedAt: Timestamp,
});
export type EntryRow = Row<typeof EntryRow>;

const CountRow = Type.Object({ count: Type.Integer() });
const IdRow = Type.Object({ id: Type.String() });

const maxMessage = 300;

export function createEmbedRepository(db: Queryable) {
  const ofOwner = ({ organizationId, stackId }: EmbedOwner) => sql.fragment`
    e.organization_id = ${organizationId} and e.stack_id is not distinct from ${stackId}::uuid`;
  return {
    insert: (owner: EmbedOwner, kind: EmbedKind, tokenHash: Buffer, createdBy: string | null) =>
      db.one(sql.rows(IdRow)`
        /* embeds.insert */
        insert into embeds (kind, organization_id, stack_id, token_hash, created_by)
        values (${kind}, ${owner.organizationId}, ${owner.stackId}, ${sql.binary(tokenHash)}, ${createdBy})
        returning id`),

    count: async (owner: EmbedOwner): Promise<number> =>
      (
        await db.one(sql.rows(CountRow)`
          /* embeds.count */ select count(*)::int as count from embeds e where ${ofOwner(owner)}`)
      ).count,

    /** The newest first. */
    list: (owner: EmbedOwner) =>
      db.any(sql.rows(EmbedRow)`
        /* embeds.list */
        select e.id, e.kind, c.login as "createdBy", e.created_at as "createdAt"
        from embeds e left join users c on c.id = e.created_by
        where ${ofOwner(owner)} order by e.created_at desc, e.id`),

    /** Null if the owner has none with this id. */
    remove: (owner: EmbedOwner, id: string) =>
      db.maybeOne(sql.rows(Type.Object({ kind: EmbedKind }))`
        /* embeds.remove */ delete from embeds e where ${ofOwner(owner)} and e.id = ${id} returning e.kind`),

    /** The status of the last update; null if there is no badge with this token, or if its stack is deleted. */
    findStatus: (tokenHash: Buffer) =>
      db.maybeOne(sql.rows(StatusRow)`
        /* embeds.findStatus */
        select (
          select u.status from updates u where u.stack_id = s.id and ${isEffective} order by u.number desc limit 1) as status
        from embeds e join stacks s on s.id = e.stack_id and s.deleted_at is null
        where e.token_hash = ${sql.binary(tokenHash)} and e.kind = 'badge'`),

    /** Null if there is none, its stack is deleted, or its user is gone. */
    findFeed: (tokenHash: Buffer) =>
      db.maybeOne(sql.rows(FeedRow)`
        /* embeds.findFeed */
        select e.id, o.id as "organizationId", o.name as organization, s.id as "stackId", p.name as project, s.name as stack, s.tags, c.login,
          e.created_at as "createdAt"
        from embeds e join organizations o on o.id = e.organization_id
        join users c on c.id = e.created_by and c.deactivated_at is null
        -- Who leaves and returns begins without earlier feeds.
        join memberships m on m.organization_id = o.id and m.user_id = c.id and m.created_at <= e.created_at
        left join stacks s on s.id = e.stack_id and s.deleted_at is null left join projects p on p.id = s.project_id
        where e.token_hash = ${sql.binary(tokenHash)} and e.kind = 'feed' and (e.stack_id is null or s.id is not null)`),

    /** The newest updates without previews. Those of an organization are searched among its last changed stacks. */
    listEntries: ({ organizationId, stackId }: EmbedOwner, limit: number) =>
      db.any(sql.rows(EntryRow)`
        /* embeds.listEntries */
        with shown as (
          ${
            stackId === null
              ? sql.fragment`select c.stack_id from stack_changes c where c.organization_id = ${organizationId}
                  order by c.changed_at desc, c.stack_id desc limit ${limit}`
              : sql.fragment`select ${stackId}::uuid as stack_id`
          }
        )
        select u.id, p.name as project, s.name as stack, s.tags, u.stack_version as version, u.kind, u.status,
          coalesce(a.login, t.kind || ':' || t.name) as by, left(u.message, ${maxMessage}) as message, u.created_at as "createdAt",
          coalesce(u.ended_at, u.started_at, u.created_at) as "changedAt"
        from (
          select u.* from shown cross join lateral (
            select u.* from updates u where u.stack_id = shown.stack_id and ${isEffective} order by u.number desc limit ${limit}) u
          order by coalesce(u.ended_at, u.started_at, u.created_at) desc, u.id limit ${limit}
        ) u join stacks s on s.id = u.stack_id and s.deleted_at is null join projects p on p.id = s.project_id
        left join users a on a.id = u.requested_by left join api_tokens t on t.id = u.token_id and u.requested_by is null
        order by "changedAt" desc, u.id`),
  };
}
