import { query } from './database.ts';
import type { TestApp } from './test-app.ts';

/** Keeps all processes with waiting calls alive: on a busy machine they may not report often enough to keep their positions. */
export async function keepQueueProcesses(app: TestApp): Promise<void> {
  await query(
    app,
    `create function stay_alive() returns trigger language plpgsql as
       $$ begin new.alive_until := clock_timestamp() + interval '1 hour'; return new; end $$;
     create trigger stay_alive before insert or update on update_queue_processes for each row execute function stay_alive()`,
  );
}
