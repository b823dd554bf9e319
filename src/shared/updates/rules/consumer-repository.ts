import { Type } from 'typebox';
import { type Queryable, type Row, type SqlFragment, sql } from '../../platform/db/sql.ts';
import { formatStackRef, type StackRef } from '../../stacks/names.ts';

const ConsumerRow = Type.Object({
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  /** JSON text. */
  tags: Type.String(),
});
export type Consumer = Row<typeof ConsumerRow>;

const CountRow = Type.Object({ count: Type.Integer() });

/** Above this many consumers in all organizations, the stacks of the organization in question are searched instead. */
const maxConsumers = 1_000;

/**
 * Stacks whose newest indexed state refers to another stack. Counts stacks, not references, because anybody can make millions of
 * references.
 */
export function createConsumerRepository(db: Queryable) {
  return {
    /** Sorted by name. */
    listOwn: (ref: StackRef, limit: number) =>
      db.any(sql.rows(ConsumerRow)`
        /* consumers.listOwn */
        select ${ref.organization}::text as organization, s.project, s.name as stack, s.tags
        from ${consumersIn(sql.fragment`(select id from organizations where name = ${ref.organization})`, formatStackRef(ref))} r
          cross join lateral (
            select p.name as project, s.name, s.tags from stacks s join projects p on p.id = s.project_id
            where s.id = r.stack_id and s.deleted_at is null offset 0) s
        where (s.project, s.name) <> (${ref.project}, ${ref.stack})
        order by 2, 3 limit ${limit}`),

    countOthers: async (ref: StackRef, limit: number): Promise<number> =>
      (
        await db.one(sql.rows(CountRow)`
          /* consumers.countOthers */
          select count(*)::integer as count from (
            select 1 from ${consumersOf(formatStackRef(ref))} r
              cross join lateral (
                select p.organization_id from stacks s join projects p on p.id = s.project_id
                where s.id = r.stack_id and s.deleted_at is null offset 0) s
            where s.organization_id is distinct from (select id from organizations where name = ${ref.organization})
            limit ${limit}) o`)
      ).count,
  };
}

/** A subquery with the column stack_id. Includes deleted stacks. */
export function consumersIn(organizationId: SqlFragment, name: string): SqlFragment {
  return sql.fragment`(
    with first as materialized (select stack_id from ${consumersOf(name)} r limit ${maxConsumers + 1})
    select r.stack_id from first r
      cross join lateral (select i.referring_in from state_indexes i where i.stack_id = r.stack_id offset 0) i
    where i.referring_in = ${organizationId} and (select count(*) from first) <= ${maxConsumers}
    union all
    select i.stack_id from state_indexes i
      cross join lateral (select 1 from stack_resources r where r.stack_id = i.stack_id and r.reads = ${name} limit 1) r
    where i.referring_in = ${organizationId} and (select count(*) from first) > ${maxConsumers})`;
}

/** The same for all organizations, with one index search per fetched stack. */
function consumersOf(name: string): SqlFragment {
  return sql.fragment`(
    with recursive consumers as (
      (select stack_id from stack_resources where reads = ${name} order by stack_id limit 1)
      union all
      select (
        select n.stack_id from stack_resources n where n.reads = ${name} and n.stack_id > l.stack_id order by n.stack_id limit 1)
      from consumers l where l.stack_id is not null
    )
    select stack_id from consumers where stack_id is not null)`;
}
