import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';

/** How long the positions of a dead process's calls are kept. */
const keptAfterDeathSeconds = 10;
/** Positions that a newer run or a user took from a call are kept longer, so that a returning process does not restore them. */
const evictedSeconds = 600;

const EntryRow = Type.Object({ id: Type.String(), isSuperseded: Type.Boolean() });
const LostRow = Type.Object({ id: Type.String(), isElsewhere: Type.Boolean() });

/** An entry of a waiting call that the database may have lost. */
export interface LostEntry {
  readonly id: string;
  readonly number: number;
  readonly stackId: string;
  readonly tokenId: string;
  readonly isUrgent: boolean;
  readonly run: object | null;
  readonly shown: object;
  /** JSON text. */
  readonly tags: string;
  readonly waitSeconds: number;
}

/** Processes whose calls wait in queues. All times are by the database's clock. */
export function createUpdateQueueProcessRepository(db: Queryable) {
  return {
    /**
     * The commit does not wait for the disk. Other processes see it at once, entries added later reach the disk after it, and the next
     * renewal repeats one that was lost in a crash of Postgres.
     */
    renewProcess: (processId: string, seconds: number) =>
      db.query(sql.nothing`
        /* updateQueue.renewProcess */
        with quick as materialized (select set_config('synchronous_commit', 'off', true))
        insert into update_queue_processes (id, alive_until)
        select ${processId}::uuid, clock_timestamp() + make_interval(secs => ${seconds}) from quick
        on conflict (id) do update set alive_until = excluded.alive_until`),

    removeProcess: (processId: string) =>
      db.query(sql.nothing`/* updateQueue.removeProcess */ delete from update_queue_processes where id = ${processId}`),

    /**
     * Shortens times that are too long because the clock was set back, as a dead process would block its queues. `alive` and `kept` are the
     * longest valid times, in seconds.
     */
    clipTimes: async ({ alive, kept }: { readonly alive: number; readonly kept: number }): Promise<void> => {
      await db.query(sql.nothing`
        /* updateQueue.clipProcesses */
        update update_queue_processes set alive_until = clock_timestamp() + make_interval(secs => ${alive})
        where alive_until > clock_timestamp() + make_interval(secs => ${alive})`);
      await db.query(sql.nothing`
        /* updateQueue.clipKept */
        update update_queue_waiters set kept_until = clock_timestamp() + make_interval(secs => ${kept})
        where process_id is null and kept_until > clock_timestamp() + make_interval(secs => ${kept})`);
    },

    /** Removes queue entries that were not resumed in time, and dead processes. */
    removeGone: () =>
      db.query(sql.nothing`
        /* updateQueue.removeGone */
        with dead as (
          delete from update_queue_processes p
          where alive_until < clock_timestamp() - make_interval(secs => ${keptAfterDeathSeconds})
            and (alive_until < clock_timestamp() - make_interval(secs => ${evictedSeconds})
              or not exists (select 1 from update_queue_waiters w where w.process_id = p.id and w.superseded_by is not null))
          returning id)
        delete from update_queue_waiters w
        where w.process_id is null and w.kept_until <= clock_timestamp()
          or w.process_id is not null and (w.process_id in (select id from dead)
            or not exists (
              select 1 from update_queue_processes p where p.id = w.process_id
                and (w.superseded_by is not null or p.alive_until >= clock_timestamp() - make_interval(secs => ${keptAfterDeathSeconds}))))`),

    /** Needed because notifications may have been lost. */
    listOf: (processId: string) =>
      db.any(sql.rows(EntryRow)`
        /* updateQueue.listOf */
        select id, superseded_by is not null as "isSuperseded" from update_queue_waiters where process_id = ${processId}`),

    removeAbandoned: (processId: string, ids: readonly string[]) =>
      db.query(sql.nothing`
        /* updateQueue.removeAbandoned */
        delete from update_queue_waiters where process_id = ${processId} and id = any (${sql.array([...ids], 'uuid')})`),

    /**
     * Other processes may have removed entries while this process could not renew them. Old positions are kept. Entries of deleted stacks
     * and tokens stay lost.
     */
    restore: async (
      processId: string,
      lost: readonly (LostEntry & { readonly waitedSeconds: number; readonly isLateNotified: boolean })[],
    ) => {
      const rows = await db.any(sql.rows(LostRow)`
        /* updateQueue.restore */
        with lost as (
          select * from jsonb_to_recordset(${JSON.stringify(lost)}::jsonb) as l (id uuid, number bigint, "stackId" uuid, "tokenId" uuid,
            "isUrgent" boolean, run jsonb, shown jsonb, tags text, "waitSeconds" integer, "waitedSeconds" float8, "isLateNotified" boolean)),
        restored as (
          insert into update_queue_waiters (id, number, stack_id, token_id, process_id, kept_until, arrived_at, is_urgent, run, shown,
            tags, wait_seconds, is_late_notified)
          overriding system value
          select l.id, l.number, s.id, t.id, ${processId}, clock_timestamp(), clock_timestamp() - make_interval(secs => l."waitedSeconds"),
            l."isUrgent", l.run, l.shown, l.tags, l."waitSeconds", l."isLateNotified"
          from lost l join stacks s on s.id = l."stackId" and s.deleted_at is null join api_tokens t on t.id = l."tokenId"
          on conflict (id) do nothing)
        select l.id, exists (select 1 from update_queue_waiters w where w.id = l.id and w.process_id is distinct from ${processId}) as "isElsewhere"
        from lost l`);
      // Newer runs that arrived meanwhile could not supersede these entries. Only a higher build number proves that a run is newer: a later
      // arrival may itself replace a lost entry.
      const ids = lost.map(({ id }) => id);
      await db.query(sql.nothing`
        /* updateQueue.supersedeRestored */
        update update_queue_waiters w set superseded_by = jsonb_build_object('commit', n.run -> 'commit', 'url', n.run -> 'url')
        from update_queue_waiters n
        where w.id = any (${sql.array(ids, 'uuid')}) and w.superseded_by is null
          and n.stack_id = w.stack_id and n.number > w.number and n.superseded_by is null
          and n.run ->> 'series' = w.run ->> 'series' and n.run ->> 'commit' <> w.run ->> 'commit'
          and n.run ->> 'builds' = w.run ->> 'builds' and (n.run ->> 'build')::bigint > (w.run ->> 'build')::bigint`);
      return rows;
    },
  };
}
