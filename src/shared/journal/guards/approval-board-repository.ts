import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Nullable } from '../../platform/schema/standard-schema.ts';
import type { ListedOrganization } from '../../stacks/stack-list-repository.ts';
import { ApprovalRow, approvalColumns } from './approval-repository.ts';

const Text = Nullable(Type.String());

const BoardRow = Type.Object({
  ...ApprovalRow.properties,
  /** Microseconds since the epoch, as text. */
  askedMicros: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  /** What the viewer may do with the stack, as far as facts decide; null: their role does. */
  held: Nullable(Type.Integer()),
  /** Of the update that was stopped. */
  message: Text,
  ciUrl: Text,
});
export type ApprovalBoardRow = Row<typeof BoardRow>;

/** Which approvals are listed: those for which all that is given holds. */
export interface ApprovalFilter {
  readonly project: string | null;
  readonly stack: string | null;
  /** Whether they were given; null: either way. */
  readonly isGiven: boolean | null;
  /** Only those after this one, in this order. */
  readonly before: { readonly askedMicros: string; readonly id: string } | null;
  readonly limit: number;
}

const maxMessage = 300;

/** Approvals as a dashboard shows them. */
export function createApprovalBoardRepository(db: Queryable) {
  return {
    /** Of stacks of the organization that may be read; those that were asked for last first. */
    list: (organization: ListedOrganization, { before, isGiven, limit, project, stack }: ApprovalFilter) =>
      db.any(sql.rows(BoardRow)`
        /* approvalBoard.list */
        select ${approvalColumns}, a."askedMicros", a.project_name as project, a.stack_name as stack, a.held,
          left(u.message, ${maxMessage}) as message, u.ci_run::json ->> 'build.url' as "ciUrl"
        from (
          select a.*, l.project_name, l.stack_name, e.held, (extract(epoch from a.asked_at) * 1000000)::bigint::text as "askedMicros"
          from stack_listings l join update_approvals a on a.stack_id = l.stack_id
          cross join lateral (
            select case when ${organization.facts}::jsonb is not null
              then effective_permissions(${organization.facts}::jsonb, l.organization_id, l.project_name, l.stack_name) end as held) e
          where l.organization_id = ${organization.id} and l.tag_name = ''
            and (${project}::text is null or l.project_name = ${project}) and (${stack}::text is null or l.stack_name = ${stack})
            and (${isGiven}::boolean is null or (a.approved_at is not null) = ${isGiven})
            and (e.held is null or e.held & 1 = 1)
            and ${
              before === null
                ? sql.fragment`true`
                : sql.fragment`(a.asked_at, a.id) <
                    ('epoch'::timestamptz + ${before.askedMicros}::bigint * interval '1 microsecond', ${before.id}::uuid)`
            }
          order by a.asked_at desc, a.id desc limit ${limit}
        ) a left join updates u on u.id = a.update_id
        order by a.asked_at desc, a.id desc`),
  };
}
