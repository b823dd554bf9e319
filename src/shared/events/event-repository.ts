import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';
import type { LeaseFence } from '../updates/lease.ts';

const EventRow = Type.Object({ sequence: Type.Integer(), event: Type.String() });

export interface EngineEventText {
  readonly sequence: number;
  /** The event's JSON, as the client sent it. */
  readonly text: string;
}

export type EventRepository = ReturnType<typeof createEventRepository>;

/** Engine events, as raw text, by (update, sequence). */
export function createEventRepository(db: Queryable) {
  return {
    /**
     * Adds events that are not there yet, if the lease still holds. Returns false when it does not.
     */
    append: async (
      fence: LeaseFence,
      events: readonly EngineEventText[],
      resourceChanges: string | null,
    ): Promise<boolean> => {
      const row = await db.one(sql.prepared('engine_events_append', Type.Object({ admitted: Type.Integer() }))`
        /* engineEvents.append */
        with fenced as (
          select id from updates where id = ${fence.updateId} and status = 'running' and epoch = ${fence.epoch}
            and expires_at > clock_timestamp() for update
        ),
        added as (
          insert into engine_events (update_id, sequence, event)
          select f.id, e.sequence, e.event
          from fenced f, unnest(${sql.array(
            events.map((event) => event.sequence),
            'int8',
          )}, ${sql.array(
            events.map((event) => event.text),
            'text',
          )}) as e (sequence, event)
          on conflict (update_id, sequence) do nothing
        ),
        summed as (
          update updates u set resource_changes = ${resourceChanges}::text from fenced f
          where u.id = f.id and ${resourceChanges}::text is not null
        )
        select count(*)::integer as admitted from fenced`);
      return row.admitted > 0;
    },

    /** Events after `after` in order of sequence; -1 stands for the beginning. */
    list: (updateId: string, after: number, limit: number) =>
      db.any(sql.rows(EventRow)`
        /* engineEvents.list */ select sequence, event from engine_events
        where update_id = ${updateId} and sequence > ${after} order by sequence limit ${limit}`),
  };
}
