import { Type } from 'typebox';
import { type PermissionSet, permissionSet } from '../../../shared/access/permissions.ts';
import { type Queryable, type Row, sql } from '../../../shared/platform/db/sql.ts';
import { Nullable } from '../../../shared/platform/schema/standard-schema.ts';
import type { ListedOrganization } from '../../../shared/stacks/stack-list-repository.ts';
import {
  ApprovalRow,
  type ApprovalViewer,
  approvalColumns,
} from '../../../shared/updates/approvals/approval-repository.ts';

const Text = Nullable(Type.String());

const OverviewRow = Type.Object({
  ...ApprovalRow.properties,
  /** Microseconds since the epoch, as text. */
  askedMicros: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  /** The viewer's permissions on the stack, if facts decide them; null: their role decides. */
  held: Nullable(Type.Integer()),
  /** The message of the update that was stopped. */
  message: Text,
  ciUrl: Text,
});
export type ApprovalOverviewRow = Row<typeof OverviewRow>;

export interface ApprovalFilter {
  readonly project: string | null;
  /** Set only together with the project. */
  readonly stack: string | null;
  /** True: only given approvals; false: only pending ones; null: both. */
  readonly isGiven: boolean | null;
  readonly commit?: string | undefined;
  /** The permissions on the stack that the viewer must have; without it, the permission to read. */
  readonly held?: PermissionSet;
  /** Maximum number of the organization's approvals to examine; without it, all. */
  readonly maxScanned?: number;
  readonly before: { readonly askedMicros: string; readonly id: string } | null;
  readonly limit: number;
}

const maxMessage = 300;
type Fragment = ReturnType<typeof sql.fragment>;

export function createApprovalQueryRepository(db: Queryable) {
  return {
    /** Approvals of the stacks that the viewer may read; the most recently requested first. */
    list: (
      organization: ListedOrganization,
      {
        before,
        commit,
        held: needed = permissionSet(['read']),
        isGiven,
        limit,
        maxScanned,
        project,
        stack,
      }: ApprovalFilter,
      viewer: ApprovalViewer,
    ) => {
      const later =
        before === null
          ? sql.fragment`true`
          : sql.fragment`(a.asked_at, a.id) <
              ('epoch'::timestamptz + ${before.askedMicros}::bigint * interval '1 microsecond', ${before.id}::uuid)`;
      const held = (project: Fragment, stack: Fragment) => sql.fragment`
        select case when ${organization.facts}::jsonb is not null
          then effective_permissions(${organization.facts}::jsonb, ${organization.id}, ${project}, ${stack}) end as held`;
      const isReadable = sql.fragment`(e.held is null or e.held & ${needed} = ${needed})`;
      /** Given or pending approvals, in the order of an index. Lateral joins keep Postgres from reading all stacks. */
      const page = (given: boolean) => {
        const state = sql.fragment`${
          given ? sql.fragment`a.approved_at is not null` : sql.fragment`a.approved_at is null`
        } ${commit === undefined ? sql.fragment`` : sql.fragment`and a.commit_id = ${commit}`}`;
        const newest = sql.fragment`order by a.asked_at desc, a.id desc`;
        const order = sql.fragment`${newest} limit ${limit}`;
        const scanned =
          maxScanned === undefined
            ? sql.fragment`update_approvals`
            : sql.fragment`(
              select * from update_approvals a where a.organization_id = ${organization.id} and ${state} and ${later}
              ${newest} limit ${maxScanned})`;
        return stack === null
          ? sql.fragment`(
              select a.*, p.name as project_name, s.name as stack_name, e.held from ${scanned} a
              cross join lateral (
                select s.name, s.project_id from stacks s where s.id = a.stack_id and s.deleted_at is null offset 0) s
              join projects p on p.id = s.project_id
              cross join lateral (${held(sql.fragment`p.name`, sql.fragment`s.name`)}) e
              where a.organization_id = ${organization.id} and ${state} and ${later} and ${isReadable}
                and (${project}::text is null or p.name = ${project}) ${order})`
          : sql.fragment`(
              select a.*, l.project_name, l.stack_name, e.held from stack_listings l
              cross join lateral (${held(sql.fragment`l.project_name`, sql.fragment`l.stack_name`)}) e
              cross join lateral (
                select * from update_approvals a where a.stack_id = l.stack_id and ${state} and ${later} ${order}) a
              where l.organization_id = ${organization.id} and l.tag_name = '' and l.project_name = ${project}
                and l.stack_name = ${stack} and ${isReadable} ${order})`;
      };
      const pages =
        isGiven === null ? sql.fragment`${page(true)} union all ${page(false)}` : sql.fragment`${page(isGiven)}`;
      return db.any(sql.rows(OverviewRow)`
        /* approvalQueries.list */
        select ${approvalColumns(viewer)}, (extract(epoch from a.asked_at) * 1000000)::bigint::text as "askedMicros",
          a.project_name as project, a.stack_name as stack, a.held,
          left(u.message, ${maxMessage}) as message, u.ci_run::json ->> 'build.url' as "ciUrl"
        from (select * from (${pages}) b order by b.asked_at desc, b.id desc limit ${limit}) a
        left join updates u on u.id = a.update_id
        order by a.asked_at desc, a.id desc`);
    },
  };
}
