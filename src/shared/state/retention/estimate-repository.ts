import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';

const BytesRow = Type.Object({ bytes: Type.Number() });
const StackRow = Type.Object({
  id: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  isHeld: Type.Boolean(),
  isReadable: Type.Boolean(),
});
export type MatchedStack = Row<typeof StackRow>;

/** As in `RuleScope`. */
interface Scope {
  readonly project: string | null;
  readonly stack: string | null;
  readonly tag: { readonly name: string; readonly value: string } | null;
}

/** Changes nothing. */
export function createEstimateRepository(db: Queryable) {
  return {
    /** Ordered by name. `facts` decide which stacks the caller may read; null for all. */
    listStacks: (
      organizationId: string,
      { project, stack, tag }: Scope,
      after: { readonly project: string; readonly stack: string } | null,
      { facts, limit }: { readonly facts: object | null; readonly limit: number },
    ) =>
      db.any(sql.rows(StackRow)`
        /* retentionEstimate.listStacks */
        select l.stack_id as id, l.project_name as project, l.stack_name as stack,
          coalesce((select s.held_at is not null from stacks s where s.id = l.stack_id), false) as "isHeld",
          ${facts === null} or effective_permissions(${JSON.stringify(facts)}::jsonb, l.organization_id, l.project_name, l.stack_name) & 1 = 1
            as "isReadable"
        from stack_listings l
        where l.organization_id = ${organizationId}
          and ${tag === null ? sql.fragment`l.tag_name = ''` : sql.fragment`l.tag_name = ${tag.name} and l.tag_name <> '' and l.tag_value = ${tag.value}`}
          and (${project}::text is null or l.project_name = ${project}) and (${stack}::text is null or l.stack_name = ${stack})
          and ${after === null ? sql.fragment`true` : sql.fragment`(l.project_name, l.stack_name) > (${after.project}, ${after.stack})`}
        order by l.project_name, l.stack_name limit ${limit}`),

    /** The bytes that these checkpoints alone need: whole states, and chunks that no other version needs. */
    measureStates: async (stackId: string, checkpointIds: readonly string[]): Promise<number> => {
      const ids = sql.array([...checkpointIds], 'uuid');
      const row = await db.one(sql.rows(BytesRow)`
        /* retentionEstimate.measureStates */
        with recursive kept as (
          select k.chunk_id as id from checkpoints c join checkpoint_chunks k on k.checkpoint_id = c.id
          where c.stack_id = ${stackId} and c.codec = 'chunks' and c.id <> all (${ids})
          union
          select p.base_id from kept k join version_chunks p on p.id = k.id where p.base_id is not null
        )
        select (
          coalesce((select sum(c.stored_bytes) from checkpoints c where c.id = any (${ids}) and c.codec <> 'chunks'), 0)
          + coalesce((
            select sum(p.stored_bytes) from version_chunks p
            where p.stack_id = ${stackId} and p.id in (
              select k.chunk_id from checkpoint_chunks k where k.checkpoint_id = any (${ids})) and p.id not in (select id from kept)), 0)
        )::float8 as bytes`);
      return row.bytes;
    },

    measureEvents: async (updateIds: readonly string[]): Promise<number> => {
      const row = await db.one(sql.rows(BytesRow)`
        /* retentionEstimate.measureEvents */
        select coalesce(sum(g.stored_bytes), 0)::float8 as bytes from event_segments g
        where g.update_id = any (${sql.array([...updateIds], 'uuid')})`);
      return row.bytes;
    },
  };
}
