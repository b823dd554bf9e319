import { type Queryable, sql } from '../platform/db/sql.ts';

/** A process that died keeps the queue positions of its calls for this time, in seconds. */
const keptAfterDeathSeconds = 10;

/** Processes whose calls wait in queues, and the entries that lost theirs. All times are by the database's clock. */
export function createUpdateQueueProcessRepository(db: Queryable) {
  return {
    /** Extends the wait of this process's calls by `seconds`. */
    renewProcess: (processId: string, seconds: number) =>
      db.query(sql.nothing`
        /* updateQueue.renewProcess */
        insert into update_queue_processes (id, alive_until) values (${processId}, clock_timestamp() + make_interval(secs => ${seconds}))
        on conflict (id) do update set alive_until = excluded.alive_until`),

    removeProcess: (processId: string) =>
      db.query(sql.nothing`/* updateQueue.removeProcess */ delete from update_queue_processes where id = ${processId}`),

    /**
     * Shortens times that are too long because the clock was set back: a process that has died would block its queues until then. `alive`
     * and `kept` are the longest valid times, in seconds.
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

    /** Removes queue entries that were not resumed in time, and processes that have ended. */
    removeGone: () =>
      db.query(sql.nothing`
        /* updateQueue.removeGone */
        with dead as (
          delete from update_queue_processes where alive_until < clock_timestamp() - make_interval(secs => ${keptAfterDeathSeconds}) returning id)
        delete from update_queue_waiters w
        where w.process_id is null and w.kept_until <= clock_timestamp()
          or w.process_id is not null and (w.process_id in (select id from dead)
            or not exists (select 1 from update_queue_processes p where p.id = w.process_id))`),
  };
}
