import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Nullable, Timestamp } from '../../platform/schema/standard-schema.ts';

const Text = Nullable(Type.String());

export const ApprovalRow = Type.Object({
  id: Type.String(),
  kind: Type.String(),
  commit: Type.String(),
  askedAt: Timestamp,
  askedBy: Type.String(),
  askedUserId: Text,
  askedTokenId: Text,
  updateId: Text,
  request: Type.String(),
  approvedAt: Nullable(Timestamp),
  approvedBy: Text,
  reason: Text,
  expiresAt: Nullable(Timestamp),
  isValid: Type.Boolean(),
  /** Whether the viewer controls the token that requested the approval. */
  isOwn: Type.Boolean(),
});
export type ApprovalRow = Row<typeof ApprovalRow>;

/** An operator has neither token nor user. */
export type ApprovalViewer = Omit<ApprovalActor, 'login'>;
const operator: ApprovalViewer = { tokenId: null, userId: null };

/** An approval ends with the membership and the account of its giver, and with the revocation of the giver's token. */
const isInForce = sql.fragment`(
  coalesce(a.expires_at > clock_timestamp(), false)
  and (a.approved_user_id is null or exists (
    select 1 from memberships m join users u on u.id = m.user_id
    where m.organization_id = a.organization_id and m.user_id = a.approved_user_id and m.created_at <= a.approved_at and u.deactivated_at is null))
  and (a.approved_token_id is null or not exists (
    select 1 from api_tokens t where t.id = a.approved_token_id and t.revoked_at is not null and not t.is_session)))`;

export const approvalColumns = ({ tokenId, userId }: ApprovalViewer) => sql.fragment`
  a.id, a.kind, a.commit_id as commit, a.asked_at as "askedAt", a.asked_by as "askedBy", a.asked_user_id as "askedUserId",
  a.asked_token_id as "askedTokenId", a.update_id as "updateId", a.request, a.approved_at as "approvedAt",
  a.approved_by as "approvedBy", a.reason, a.expires_at as "expiresAt",
  ${isInForce} as "isValid",
  coalesce(a.asked_token_id = ${tokenId}::uuid, false)
    or people_behind(a.asked_token_id, a.asked_user_id) && (select people_behind(${tokenId}::uuid, ${userId}::uuid)) as "isOwn"`;

/** Maximum open requests of a stack. Further requests replace the oldest; requests of stopped runs are replaced last. */
const maxRequests = 1_000;
/** Maximum requests that one user, or one token without a user, makes ahead of runs. */
const maxOwnAhead = 100;
const droppedAtOnce = 10;
const maxRequestChars = 1_000;

const IdRow = Type.Object({ id: Type.String() });

export interface ApprovalSubject {
  readonly stackId: string;
  readonly kind: string;
  readonly commit: string;
}

export interface ApprovalActor {
  readonly login: string;
  readonly userId: string | null;
  readonly tokenId: string | null;
}

/** Approvals of runs that delete or replace more than the rules of their stack allow. All times are by the database's clock. */
export function createApprovalRepository(db: Queryable) {
  // The open request of a stopped run stays as the server has recorded it. A request ahead of runs only adds its text and its author.
  const staysOfRun = sql.fragment`excluded.update_id is null and a.update_id is not null and a.approved_at is null`;
  // An approval that has ended is requested anew; one in force stays.
  const asked = sql.fragment`
    on conflict (stack_id, kind, commit_id) where superseded_at is null do update set asked_at = clock_timestamp(),
      (asked_by, asked_user_id, asked_token_id, update_id, request) = (
        select a.asked_by, a.asked_user_id, a.asked_token_id, a.update_id,
          left(a.request || format(' – %s: %s', excluded.asked_by, to_json(excluded.request)), greatest(length(a.request), ${maxRequestChars}))
        where ${staysOfRun}
        union all
        select excluded.asked_by, excluded.asked_user_id, excluded.asked_token_id, excluded.update_id, excluded.request
        where not (${staysOfRun})),
      (approved_at, approved_by, approved_user_id, approved_token_id, approved_people, reason, expires_at) = (
        select a.approved_at, a.approved_by, a.approved_user_id, a.approved_token_id, a.approved_people, a.reason, a.expires_at where ${isInForce})`;
  /**
   * Drops the oldest surplus requests of the stack, and of the requester of `id`, but never `id`. Skips locked requests until the next
   * call.
   */
  const dropOldest = (stackId: string, id: string) => {
    const open = sql.fragment`update_approvals o where o.stack_id = ${stackId} and o.approved_at is null`;
    return db.query(sql.nothing`
      /* approvals.dropOldest */
      delete from update_approvals where id in (
        select a.id from (
          (select o.id from ${open} order by o.id <> ${id}, o.update_id is null, o.asked_at desc, o.id desc offset ${maxRequests} limit ${droppedAtOnce})
          union
          (select o.id from ${open} and o.update_id is null and coalesce(o.asked_user_id, o.asked_token_id) =
             (select coalesce(n.asked_user_id, n.asked_token_id) from update_approvals n where n.id = ${id})
           order by o.id <> ${id}, o.asked_at desc, o.id desc offset ${maxOwnAhead} limit ${droppedAtOnce})) o
        join update_approvals a on a.id = o.id for update of a skip locked)`);
  };
  return {
    /** Requests an approval in the name of the user or token that runs the update. A token's label cannot be mistaken for a login. */
    askForUpdate: async (
      updateId: string,
      { stackId, kind, commit, request }: ApprovalSubject & { readonly request: string },
    ): Promise<void> => {
      const row = await db.one(sql.rows(IdRow)`
        /* approvals.askForUpdate */
        insert into update_approvals as a (stack_id, kind, commit_id, asked_by, asked_user_id, asked_token_id, update_id, request)
        select ${stackId}, ${kind}, ${commit}, coalesce(p.login, l.label, 'a token'), u.requested_by, u.token_id, u.id, ${request}
        from updates u left join users p on p.id = u.requested_by left join api_tokens t on t.id = u.token_id left join teams e on e.id = t.team_id
        cross join lateral (
          select case t.kind when 'team' then 'team:' || e.name || '/' || t.name else t.kind || ':' || t.name end as label) l
        where u.id = ${updateId}
        ${asked}
        returning id`);
      await dropOldest(stackId, row.id);
    },

    /** Requests an approval ahead of a run. Returns its id. */
    ask: async (
      { stackId, kind, commit }: ApprovalSubject,
      { login, tokenId, userId }: ApprovalActor,
      request: string,
    ): Promise<string> => {
      const row = await db.one(sql.rows(IdRow)`
        /* approvals.ask */
        insert into update_approvals as a (stack_id, kind, commit_id, asked_by, asked_user_id, asked_token_id, request)
        values (${stackId}, ${kind}, ${commit}, ${login}, ${userId}, ${tokenId}, ${request})
        ${asked}
        returning id`);
      await dropOldest(stackId, row.id);
      return row.id;
    },

    approve: (id: string, by: ApprovalActor, given: { readonly reason: string; readonly seconds: number }) =>
      db.query(sql.nothing`
        /* approvals.approve */
        update update_approvals set approved_at = clock_timestamp(), approved_by = ${by.login}, approved_user_id = ${by.userId},
          approved_token_id = ${by.tokenId}, approved_people = people_behind(${by.tokenId}::uuid, ${by.userId}::uuid),
          reason = ${given.reason}, expires_at = clock_timestamp() + make_interval(secs => ${given.seconds})
        where id = ${id}`),

    /** Deletes up to `limit` approvals that expired or were requested over `days` ago. Skips stacks under a legal hold. */
    deleteOld: async (days: number, limit: number): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* approvals.deleteOld */
        delete from update_approvals where id = any (array(
          select a.id from update_approvals a where coalesce(a.expires_at, a.asked_at) < now() - make_interval(days => ${days})
            and not exists (select 1 from stacks s where s.id = a.stack_id and s.held_at is not null)
          order by coalesce(a.expires_at, a.asked_at) limit ${limit} for update of a skip locked))`);
      return rowCount;
    },

    /** Removes the approval. Under a legal hold, an approval that was given ends but is kept. */
    remove: (id: string) =>
      db.query(sql.nothing`
        /* approvals.remove */
        with ended as (
          update update_approvals a set expires_at = least(a.expires_at, clock_timestamp()) from stacks s
          where a.id = ${id} and a.approved_at is not null and s.id = a.stack_id and s.held_at is not null returning a.id)
        delete from update_approvals where id = ${id} and not exists (select 1 from ended)`),

    /**
     * Excludes approvals by a user who controls the run's token, including approvals by a token that this user controlled at the time.
     * `byPeople` also excludes approvals by tokens without a user.
     */
    findValid: (
      { stackId, kind, commit }: ApprovalSubject,
      { tokenId, userId }: ApprovalViewer,
      { byPeople }: { readonly byPeople: boolean },
    ) =>
      db.maybeOne(sql.rows(ApprovalRow)`
        /* approvals.findValid */
        select ${approvalColumns({ tokenId, userId })} from update_approvals a
        where a.stack_id = ${stackId} and a.kind = ${kind} and a.commit_id = ${commit} and ${isInForce}
          and (a.approved_token_id is null or a.approved_token_id is distinct from ${tokenId}::uuid)
          and not (a.approved_people || people_behind(a.approved_token_id, a.approved_user_id)) && people_behind(${tokenId}::uuid, ${userId}::uuid)
          and not (${byPeople} and a.approved_user_id is null and a.approved_token_id is not null)`),

    findId: async ({ stackId, kind, commit }: ApprovalSubject): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* approvals.findId */
        select id from update_approvals where stack_id = ${stackId} and kind = ${kind} and commit_id = ${commit} and superseded_at is null for update`);
      return row?.id ?? null;
    },

    /** Locks the approval until the end of the transaction. Superseded approvals are not found. */
    lock: (stackId: string, id: string, viewer: ApprovalViewer) =>
      db.maybeOne(sql.rows(ApprovalRow)`
        /* approvals.lock */
        select ${approvalColumns(viewer)} from update_approvals a
        where a.id = ${id} and a.stack_id = ${stackId} and a.superseded_at is null for update`),

    list: (stackId: string, limit: number, commit: string | null = null) => {
      // The indexes separate given and open approvals.
      const page = (given: boolean) => sql.fragment`(
        select * from update_approvals a where a.stack_id = ${stackId} and a.approved_at ${given ? sql.fragment`is not null` : sql.fragment`is null`}
          ${commit === null ? sql.fragment`` : sql.fragment`and a.commit_id = ${commit}`}
        order by a.asked_at desc, a.id desc limit ${limit})`;
      return db.any(sql.rows(ApprovalRow)`
        /* approvals.list */
        select ${approvalColumns(operator)} from (${page(true)} union all ${page(false)}) a
        order by a.asked_at desc, a.id desc limit ${limit}`);
    },
  };
}
