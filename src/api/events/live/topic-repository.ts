import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../../shared/platform/db/sql.ts';
import { Nullable } from '../../../shared/platform/schema/standard-schema.ts';

/** A topic by names, or by the id of an update. */
export interface TopicTarget {
  readonly organization: string | null;
  readonly project: string | null;
  readonly stack: string | null;
  readonly updateId: string | null;
}

const FoundRow = Type.Object({
  /** Null if the topic has no names. */
  organization: Nullable(Type.String()),
  project: Nullable(Type.String()),
  stack: Nullable(Type.String()),
  organizationId: Nullable(Type.String()),
  stackId: Nullable(Type.String()),
  updateId: Nullable(Type.String()),
});
export type FoundRow = Row<typeof FoundRow>;

export function createTopicRepository(db: Queryable) {
  return {
    /** The rows have the order of the topics. Deleted stacks have no row. */
    find: (targets: readonly TopicTarget[]) => {
      const column = (name: keyof TopicTarget, type: 'text' | 'uuid') =>
        sql.array(
          targets.map((target) => target[name]),
          type,
        );
      return db.any(sql.rows(FoundRow)`
        /* liveTopics.find */
        select o.name as organization, s.project, s.name as stack, o.id as "organizationId", s.id as "stackId", u.id as "updateId"
        from unnest(${column('organization', 'text')}, ${column('project', 'text')}, ${column('stack', 'text')}, ${column('updateId', 'uuid')})
          with ordinality as t (organization, project, stack, update_id, number)
        left join updates u on u.id = t.update_id
        left join lateral (
          select s.id, s.name, p.name as project, p.organization_id from stacks s join projects p on p.id = s.project_id
          where s.id = u.stack_id and s.deleted_at is null
          union all
          select s.id, s.name, p.name, p.organization_id
          from organizations o join projects p on p.organization_id = o.id join stacks s on s.project_id = p.id
          where t.update_id is null and o.name = t.organization and p.name = t.project and s.name = t.stack and s.deleted_at is null) s on true
        left join organizations o on o.id = coalesce(s.organization_id,
          case when t.update_id is null and t.project is null then (select id from organizations where name = t.organization) end)
        order by t.number`);
    },
  };
}
