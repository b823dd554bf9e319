import { Type } from 'typebox';
import type { AuditPosition } from '../../shared/audit/audit-list-repository.ts';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../shared/platform/schema/standard-schema.ts';
import type { ListedOrganization } from '../../shared/stacks/stack-list-repository.ts';

const Text = Nullable(Type.String());

const ActivityRow = Type.Object({
  number: Type.Integer(),
  occurredAt: Timestamp,
  /** Microseconds since the epoch. */
  micros: Type.Integer(),
  action: Type.String(),
  actor: Type.String(),
  login: Type.String(),
  object: Type.String(),
  /** False for the last scanned event if it does not match. */
  isFound: Type.Boolean(),
  /** Whether this is the last scanned event. There may be more after it. */
  isLast: Type.Boolean(),
  /** Null: the event is not about an update, or the update has been deleted. */
  updateId: Text,
  version: Nullable(Type.Integer()),
  kind: Text,
  dryRun: Nullable(Type.Boolean()),
  status: Text,
  endedAt: Nullable(Timestamp),
  message: Text,
  commit: Text,
  ciUrl: Text,
});
export type ActivityRow = Row<typeof ActivityRow>;

/** Null: any. */
export interface ActivitySearch {
  readonly actions: readonly string[];
  /** True: only previews; false: only other updates. */
  readonly isPreview: boolean | null;
  readonly login: string | null;
  readonly project: string | null;
  /** Set only together with the project. */
  readonly stack: string | null;
  readonly after: AuditPosition | null;
}

const maxMessage = 300;

/** Events of an organization, for everybody who may read its stacks. */
export function createActivityRepository(db: Queryable) {
  const any = sql.fragment`true`;
  return {
    /**
     * The newest events come first. At most `maxRead` events of the log are scanned; if there are more, the result includes the last
     * scanned event even if it does not match. Rules other than freezes, and refused calls, are left out; with facts, freezes are left out,
     * too.
     */
    list: (
      { facts, id, name }: ListedOrganization,
      { actions, after, isPreview, login, project, stack }: ActivitySearch,
      { limit, maxRead }: { readonly limit: number; readonly maxRead: number },
    ) => {
      const path = stack === null ? `${name}/${project}/` : `${name}/${project}/${stack}`;
      const ofTarget =
        project === null
          ? any
          : stack === null
            ? sql.fragment`(starts_with(object, ${path}) or object = ${`project ${project}`}
                or starts_with(object, ${`stack ${project}/`}))`
            : sql.fragment`(object = ${path} or object = ${`stack ${project}/${stack}`})`;
      const ofKind =
        isPreview === null ? any : sql.fragment`coalesce(u.dry_run or u.kind = 'preview', false) = ${isPreview}`;
      // Another stack may have had the name before, or the stack may have had another name.
      const isReadable =
        facts === null
          ? any
          : sql.fragment`exists (
              select 1 from stack_listings l join stacks s on s.id = l.stack_id
              where l.organization_id = ${id} and l.tag_name = '' and s.created_at <= e.occurred_at
                and (l.project_name = split_part(e.object, '/', 2) and l.stack_name = split_part(e.object, '/', 3)
                  and split_part(e.object, '/', 4) = '')
                and (u.stack_id = l.stack_id or e.update_id is null
                  and not exists (select 1 from former_stack_names f where f.stack_id = l.stack_id))
                and effective_permissions(${facts}::jsonb, ${id}, l.project_name, l.stack_name) & 1 = 1)`;
      return db.any(sql.rows(ActivityRow)`
        /* activity.list */
        with looked as materialized (
          select *, row_number() over (order by occurred_at desc, number desc) as rank,
            outcome = 'done' and action = any (${sql.array([...actions], 'text')}) and ${ofTarget}
              and case when action like 'update-rule.%' then details::json ->> 'kind' = 'freeze' else true end as wanted
          from (
            select number, occurred_at, action, outcome, actor, login, object, update_id, details from audit_events
            where organization_id = ${id} and ${login === null ? any : sql.fragment`login = ${login} and actor = 'user'`}
              and ${
                after === null
                  ? any
                  : sql.fragment`(occurred_at, number) <
                      (timestamptz 'epoch' + ${after.micros}::bigint * interval '1 microsecond', ${after.number}::bigint)`
              }
            order by occurred_at desc, number desc limit ${maxRead}) read
        ),
        found as (
          select e.number from (select * from looked where wanted order by rank offset 0) e
          left join updates u on u.id = e.update_id
          where ${ofKind} and ${isReadable} order by e.rank limit ${limit}
        )
        select e.number, e.occurred_at as "occurredAt", (extract(epoch from e.occurred_at) * 1000000)::bigint as micros, e.action,
          e.actor, e.login, e.object, f.number is not null as "isFound", e.rank = ${maxRead} as "isLast",
          u.id as "updateId", u.stack_version as version, u.kind, u.dry_run or u.kind = 'preview' as "dryRun", u.status,
          u.ended_at as "endedAt", left(u.message, ${maxMessage}) as message, u.commit_id as commit,
          u.ci_run::json ->> 'build.url' as "ciUrl"
        from looked e left join found f on f.number = e.number left join updates u on u.id = e.update_id
        where f.number is not null or e.rank = ${maxRead} order by e.rank`);
    },
  };
}
