import { query } from '../database.ts';
import type { TestApp } from '../test-app.ts';

/** What decides where the rows of a table may be, by the catalog of Postgres. */
export interface CatalogTable {
  readonly name: string;
  readonly columns: readonly CatalogColumn[];
  /** Primary keys, constraints and indexes. The columns without expressions. */
  readonly uniqueKeys: readonly { readonly name: string; readonly columns: readonly string[] }[];
  readonly foreignKeys: readonly CatalogForeignKey[];
  /** The functions of its triggers. */
  readonly triggerFunctions: readonly string[];
}

interface CatalogColumn {
  readonly name: string;
  readonly type: string;
  readonly isNullable: boolean;
  readonly isGenerated: boolean;
  readonly isIdentity: boolean;
  readonly hasDefault: boolean;
}

export interface CatalogForeignKey {
  readonly name: string;
  readonly columns: readonly string[];
  readonly references: string;
  readonly referencedColumns: readonly string[];
  readonly onDelete: 'cascade' | 'set null' | 'set default' | 'nothing';
  readonly changesOnUpdate: boolean;
}

export interface CatalogFunction {
  readonly name: string;
  readonly source: string;
  /** Of its own, if it has one. */
  readonly searchPath: string | null;
}

/** All tables of the server, without partitions. */
export function readTables(app: TestApp): Promise<CatalogTable[]> {
  return query<CatalogTable & Record<string, unknown>>(
    app,
    `select c.relname as name,
       (select jsonb_agg(jsonb_build_object('name', a.attname, 'type', format_type(a.atttypid, null), 'isNullable', not a.attnotnull,
           'isGenerated', a.attgenerated <> '', 'isIdentity', a.attidentity <> '', 'hasDefault', a.atthasdef) order by a.attnum)
        from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
       coalesce((select jsonb_agg(jsonb_build_object('name', x.relname, 'columns', (
           select coalesce(jsonb_agg(a.attname order by k.at), '[]') from unnest(i.indkey[:i.indnkeyatts - 1]) with ordinality k (number, at)
           join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number)) order by x.relname)
        from pg_index i join pg_class x on x.oid = i.indexrelid where i.indrelid = c.oid and (i.indisunique or i.indisexclusion)), '[]') as "uniqueKeys",
       coalesce((select jsonb_agg(jsonb_build_object('name', f.conname, 'references', r.relname,
           'columns', (select jsonb_agg(a.attname order by k.at) from unnest(f.conkey) with ordinality k (number, at)
             join pg_attribute a on a.attrelid = f.conrelid and a.attnum = k.number),
           'referencedColumns', (select jsonb_agg(a.attname order by k.at) from unnest(f.confkey) with ordinality k (number, at)
             join pg_attribute a on a.attrelid = f.confrelid and a.attnum = k.number),
           'onDelete', case f.confdeltype when 'c' then 'cascade' when 'n' then 'set null' when 'd' then 'set default' else 'nothing' end,
           'changesOnUpdate', f.confupdtype not in ('a', 'r')) order by f.conname)
        from pg_constraint f join pg_class r on r.oid = f.confrelid
        where f.conrelid = c.oid and f.contype = 'f' and f.conparentid = 0), '[]') as "foreignKeys",
       array(select distinct p.proname::text from pg_trigger t join pg_proc p on p.oid = t.tgfoid
         where t.tgrelid = c.oid and not t.tgisinternal order by 1) as "triggerFunctions"
     from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition order by 1`,
  );
}

export function readFunctions(app: TestApp): Promise<CatalogFunction[]> {
  return query<CatalogFunction & Record<string, unknown>>(
    app,
    `select p.proname as name, p.prosrc as source,
       (select substr(s, 13) from unnest(p.proconfig) s where s like 'search_path=%') as "searchPath"
     from pg_proc p where p.pronamespace = 'public'::regnamespace order by 1`,
  );
}
