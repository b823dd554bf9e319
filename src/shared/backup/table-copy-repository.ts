import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { isOurs } from '../platform/db/app-role.ts';
import { assertCommitted } from '../platform/db/rolled-back-error.ts';
import { liftLimits } from '../platform/db/session-limits.ts';
import { isHiddenFunction } from '../platform/db/sqlstate.ts';
import { assertOneOwner } from '../platform/db/table-owners.ts';
import { isReferenced } from '../state/checkpoints/blob-repository.ts';
import type { SequenceValue, TableCopy } from './manifest.ts';

type TableShape = Pick<TableCopy, 'name' | 'columns' | 'partitions'>;

interface ForeignKey {
  readonly table: string;
  readonly name: string;
  readonly definition: string;
}

const restoreMark = 'restoring backup ';
const migrationsTable = 'holdfast_migrations';

const tables = `
  from pg_class c
  where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    and c.relname <> '${migrationsTable}' and ${isOurs('c')}`;

/** Not copied: a restored installation has its blobs in the store of its settings. */
const locationsTable = 'blob_places';

/** Uses a separate connection. Names in results are quoted where SQL requires it. */
export function createTableCopyRepository(client: pg.Client) {
  const run = async <T extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<T[]> => {
    const result = await client.query<T>(text, values);
    assertCommitted(text, result);
    return result.rows;
  };
  return {
    /** Until `end`, all reads see the present state of the database. */
    beginSnapshot: async () => {
      await run('begin isolation level repeatable read, read only');
      await run(`set local datestyle = 'ISO'`);
      await run(`set local timezone = 'UTC'`);
      // The transaction waits for the store of the backups.
      await liftLimits(client, { isLocal: true });
    },
    begin: () => run('begin'),
    end: () => run('commit'),
    rollback: () => run('rollback'),

    describe: async () => {
      const [row] = await run<{ takenAt: Date; postgres: string; installation: string; masterKeys: string[] }>(`
        /* tableCopies.describe */
        select clock_timestamp() as "takenAt", version() as postgres, (select id from installation) as installation,
          array(select master_key_id from encryption_keys union select master_key_id from webhooks where secret is not null order by 1) as "masterKeys"`);
      return row as NonNullable<typeof row>;
    },
    /** Returns the end of the write-ahead log; null if the server does not report it. */
    readPosition: async () => {
      // Without a savepoint, the error of a server that hides the function would end the transaction.
      await run('savepoint position');
      try {
        const [row] = await run<{ position: string }>('select pg_current_wal_lsn()::text as position');
        return row?.position ?? null;
      } catch (error) {
        if (!isHiddenFunction(error)) throw error;
        await run('rollback to savepoint position');
        return null;
      }
    },
    /** In the order of their application. */
    listMigrations: async (): Promise<string[]> => {
      const [table] = await run<{ found: boolean }>(`select to_regclass('${migrationsTable}') is not null as found`);
      if (!table?.found) return [];
      return (await run<{ name: string }>(`select name from ${migrationsTable} order by id`)).map(({ name }) => name);
    },

    /** `withLocations` includes the locations of the blobs. Throws AppRoleError if a table has another owner. */
    listTables: async ({ withLocations = false } = {}) => {
      await assertOneOwner(client);
      return run<TableShape>(`
        /* tableCopies.listTables */
        select quote_ident(c.relname) as name,
          (select json_agg(quote_ident(a.attname) order by a.attnum) from pg_attribute a
            where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns,
          coalesce((select json_agg(json_build_object('name', quote_ident(p.relname), 'bounds', pg_get_expr(p.relpartbound, p.oid)) order by p.relname)
            from pg_inherits i join pg_class p on p.oid = i.inhrelid where i.inhparent = c.oid), '[]') as partitions
        ${tables} ${withLocations ? '' : `and c.relname <> '${locationsTable}'`} order by c.relname`);
    },

    /** Estimates the size of the compressed copy. */
    estimateBytes: async ({ name }: TableShape): Promise<number> => {
      const [row] = await run<{ bytes: string }>(
        `/* tableCopies.estimateBytes */
         select coalesce(pg_table_size($1::regclass), 0) + coalesce((select sum(pg_table_size(i.inhrelid))
           from pg_inherits i where i.inhparent = $1::regclass), 0) as bytes`,
        [name],
      );
      return Number(row?.bytes);
    },

    /** Lists only used sequences. */
    listSequences: () =>
      run<SequenceValue>(`
        /* tableCopies.listSequences */
        select quote_ident(s.sequencename) as name, s.last_value as value from pg_sequences s
          join pg_class c on c.relnamespace = current_schema()::regnamespace and c.relname = s.sequencename
        where s.schemaname = current_schema() and s.last_value is not null and ${isOurs('c')}
          and s.sequencename <> '${migrationsTable}_id_seq' order by s.sequencename`),

    /** Returns text of COPY. `rows` is known at the end of the stream. */
    read: ({ columns, name }: TableShape): { text: Readable; rows: () => number } => {
      const text = client.query(copyTo(`copy (select ${columns.join(', ')} from ${name}) to stdout`));
      // The reader gets the error. After the reader has ended, the error of a lost connection would end the process.
      text.on('error', () => {});
      return { text, rows: () => text.rowCount };
    },

    listReferencedBlobs: async (after: string, limit: number): Promise<string[]> => {
      const rows = await run<{ key: string }>(
        `/* tableCopies.listReferencedBlobs */
         select b.key from blobs b where b.key > $1 and ${isReferenced.sql}
         order by b.key limit $2`,
        [after, limit],
      );
      return rows.map(({ key }) => key);
    },

    /** Returns, by organization, the batch of the audit chain before which retention has dropped everything. */
    listAuditBases: async (): Promise<ReadonlyMap<string, number>> => {
      const rows = await run<{ id: string; base: number }>(
        `/* tableCopies.listAuditBases */ select organization_id as id, base_batch::float8 as base from audit_chains where base_batch > 0`,
      );
      return new Map(rows.map(({ base, id }) => [id, base]));
    },

    /** Whether the database has organizations. */
    isUsed: async () => {
      const [table] = await run<{ found: boolean }>(`select to_regclass('organizations') is not null as found`);
      if (!table?.found) return false;
      const [row] = await run<{ used: boolean }>('select exists (select 1 from organizations) as used');
      return row?.used ?? true;
    },

    /** Until the end of the transaction, nobody can begin to use the database. */
    lockUse: async () => {
      const [table] = await run<{ found: boolean }>(`select to_regclass('organizations') is not null as found`);
      if (table?.found) await run('lock table organizations in access exclusive mode');
    },
    /** The end of the session releases the lock. Returns whether another session has it. */
    lockRestore: async (): Promise<boolean> => {
      const [row] = await run<{ held: boolean }>(
        `/* tableCopies.lockRestore */ select pg_try_advisory_lock(hashtextextended('holdfast restore', 0)) as held`,
      );
      return row?.held !== true;
    },

    analyze: () => run('analyze'),

    /** Called in the transaction of a load; with null when the restore has ended. */
    markRestore: async (id: string | null) => {
      const [row] = await run<{ statement: string }>(
        `select format('comment on table installation is %L', $1::text) as statement`,
        [id === null ? null : restoreMark + id],
      );
      await run(row?.statement as string);
    },
    /** Finds a restore that was interrupted after it had loaded the tables. */
    readRestoreMark: async (): Promise<string | null> => {
      const [row] = await run<{ note: string | null }>(
        `select obj_description('installation'::regclass, 'pg_class') as note`,
      );
      return row?.note?.startsWith(restoreMark) ? row.note.slice(restoreMark.length) : null;
    },

    /** Blocks webhooks and audit events, if the migrations of the load support this. */
    holdOutgoing: async () => {
      const column = await run(
        `select 1 from pg_attribute where attrelid = 'installation'::regclass and attname = 'outgoing_held_since'`,
      );
      if (column.length > 0) await run('update installation set outgoing_held_since = clock_timestamp()');
    },

    /** Empties all tables, in the caller's transaction. Returns the removed foreign keys. */
    prepareLoad: async (): Promise<ForeignKey[]> => {
      await run(`set local datestyle = 'ISO'`);
      await liftLimits(client, { isLocal: true });
      const names = (await run<{ name: string }>(`select quote_ident(c.relname) as name ${tables}`)).map(
        ({ name }) => name,
      );
      const keys = await run<ForeignKey>(`
        /* tableCopies.listForeignKeys */
        select k.conrelid::regclass::text as table, quote_ident(k.conname) as name, pg_get_constraintdef(k.oid) as definition
        from pg_constraint k join pg_class c on c.oid = k.conrelid
        where k.contype = 'f' and k.conparentid = 0 and k.connamespace = current_schema()::regnamespace and ${isOurs('c')}`);
      for (const { name, table } of keys) await run(`alter table ${table} drop constraint ${name}`);
      for (const name of names) await run(`alter table ${name} disable trigger user`);
      if (names.length > 0) await run(`truncate ${names.join(', ')}`);
      return keys;
    },

    addPartitions: async ({ name, partitions }: TableShape) => {
      const present = new Set(
        (
          await run<{ name: string }>(
            `select quote_ident(p.relname) as name from pg_inherits i join pg_class p on p.oid = i.inhrelid
             where i.inhparent = $1::regclass`,
            [name],
          )
        ).map((row) => row.name),
      );
      for (const partition of partitions)
        if (!present.has(partition.name))
          await run(`create table ${partition.name} partition of ${name} ${partition.bounds}`);
    },

    write: async ({ columns, name }: TableShape, text: AsyncIterable<Buffer>): Promise<number> => {
      const rows = client.query(copyFrom(`copy ${name} (${columns.join(', ')}) from stdin`));
      await pipeline(Readable.from(text, { objectMode: false }), rows);
      return rows.rowCount;
    },

    countRows: async ({ name }: TableShape): Promise<number> => {
      const [row] = await run<{ count: string }>(`select count(*) as count from ${name}`);
      return Number(row?.count);
    },

    setSequence: ({ name, value }: SequenceValue) => run('select setval($1::regclass, $2)', [name, value]),

    /** Fails if a row refers to a missing one. */
    finishLoad: async (keys: readonly ForeignKey[]) => {
      for (const { name } of await run<{ name: string }>(`select quote_ident(c.relname) as name ${tables}`))
        await run(`alter table ${name} enable trigger user`);
      for (const { definition, name, table } of keys)
        await run(`alter table ${table} add constraint ${name} ${definition}`);
    },
  };
}
export type TableCopyRepository = ReturnType<typeof createTableCopyRepository>;
