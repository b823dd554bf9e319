import { Type } from 'typebox';
import { type Queryable, sql } from '../../shared/platform/db/sql.ts';
import { Timestamp } from '../../shared/platform/schema/standard-schema.ts';

const MigrationRow = Type.Object({ name: Type.String(), at: Timestamp });
const ServerRow = Type.Object({
  version: Type.String(),
  startedAt: Timestamp,
  /** `connections`: those of this installation; `maxConnections`: the server's. */
  connections: Type.Integer(),
  maxConnections: Type.Integer(),
});

export function createMigrationListRepository(db: Queryable) {
  return {
    /** The newest first. */
    list: (limit: number) =>
      db.any(sql.rows(MigrationRow)`
        /* migrations.list */ select name, run_on::timestamptz as at from holdfast_migrations order by id desc limit ${limit}`),

    readServer: () =>
      db.one(sql.rows(ServerRow)`
        /* migrations.readServer */
        select current_setting('server_version') as version, pg_postmaster_start_time() as "startedAt",
          (select count(*)::int from pg_stat_activity where datname = current_database()) as connections,
          current_setting('max_connections')::int as "maxConnections"`),
  };
}
