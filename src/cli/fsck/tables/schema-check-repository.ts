import type pg from 'pg';
import { isOurs } from '../../../shared/platform/db/app-role.ts';

interface ForeignKey {
  readonly name: string;
  readonly child: string;
  readonly parent: string;
  readonly columns: readonly string[];
  readonly keys: readonly string[];
}

/** Larger gaps are closed by setting the sequence, for which servers lack the privilege. */
const maxSteps = 1_000_000n;

interface SequenceGap {
  readonly sequence: string;
  readonly column: string;
  readonly last: string;
  readonly highest: string;
}

/**
 * A restore or a person may have disabled constraints. Needs a connection without a statement timeout, because each foreign key is one
 * statement. Names in results are quoted if SQL needs it.
 */
export function createSchemaCheckRepository(client: pg.Client) {
  const run = async <T extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<T[]> =>
    (await client.query<T>(text, values)).rows;
  return {
    /** Triggers, constraints and indexes that do not work. */
    listDisabled: async (): Promise<string[]> => {
      const rows = await run<{ name: string }>(`
        /* schemaChecks.listDisabled */
        select 'trigger ' || t.tgname || ' of ' || t.tgrelid::regclass as name from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where c.relnamespace = 'public'::regnamespace and ${isOurs('c')} and t.tgenabled not in ('O', 'A')
        union all
        select 'constraint ' || k.conname || ' of ' || k.conrelid::regclass from pg_constraint k join pg_class c on c.oid = k.conrelid
        where k.connamespace = 'public'::regnamespace and ${isOurs('c')} and not k.convalidated
        union all
        select 'index ' || i.indexrelid::regclass from pg_index i join pg_class c on c.oid = i.indrelid
        where c.relnamespace = 'public'::regnamespace and ${isOurs('c')} and not i.indisvalid
        order by 1`);
      return rows.map(({ name }) => name);
    },

    listForeignKeys: () =>
      run<ForeignKey & pg.QueryResultRow>(`
        /* schemaChecks.listForeignKeys */
        select k.conname as name, k.conrelid::regclass::text as child, k.confrelid::regclass::text as parent,
          (select array_agg(quote_ident(a.attname) order by c.at) from unnest(k.conkey) with ordinality c (number, at)
            join pg_attribute a on a.attrelid = k.conrelid and a.attnum = c.number) as columns,
          (select array_agg(quote_ident(a.attname) order by c.at) from unnest(k.confkey) with ordinality c (number, at)
            join pg_attribute a on a.attrelid = k.confrelid and a.attnum = c.number) as keys
        from pg_constraint k join pg_class t on t.oid = k.conrelid
        where k.contype = 'f' and k.connamespace = 'public'::regnamespace and k.conparentid = 0 and ${isOurs('t')} order by 2, 1`),

    /** Rows that refer to a row that does not exist. */
    countViolations: async ({ child, columns, keys, parent }: ForeignKey): Promise<number> => {
      const given = columns.map((column) => `c.${column} is not null`).join(' and ');
      const found = columns.map((column, at) => `p.${keys[at]} = c.${column}`).join(' and ');
      const [row] = await run<{ count: string }>(`
        /* schemaChecks.countViolations */
        select count(*) as count from ${child} c where ${given} and not exists (select 1 from ${parent} p where ${found})`);
      return Number(row?.count ?? 0);
    },

    /** Sequences that would repeat a number. */
    listSequenceGaps: async (): Promise<SequenceGap[]> => {
      const owned = await run<{ sequence: string; table: string; column: string }>(`
        /* schemaChecks.listSequences */
        select s.oid::regclass::text as sequence, d.refobjid::regclass::text as table, quote_ident(a.attname) as column
        from pg_class s join pg_depend d on d.objid = s.oid and d.classid = 'pg_class'::regclass and d.deptype in ('a', 'i')
          join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
        where s.relkind = 'S' and s.relnamespace = 'public'::regnamespace and ${isOurs('s')}
        union all
        -- Belongs to no column, because the table has partitions.
        select 'audit_event_numbers', 'audit_events', 'number' order by 1`);
      const gaps: SequenceGap[] = [];
      for (const { column, sequence, table } of owned) {
        // The rows are read first: a sequence that is read later must be past all of them.
        const [highest] = await run<{ value: string | null }>(`
          /* schemaChecks.readHighest */ select max(${column}) as value from ${table}`);
        const [last] = await run<{ value: string }>(`
          /* schemaChecks.readSequence */ select case when is_called then last_value else last_value - 1 end as value from ${sequence}`);
        if (highest?.value && last && BigInt(highest.value) > BigInt(last.value))
          gaps.push({ sequence, column: `${table}.${column}`, last: last.value, highest: highest.value });
      }
      return gaps;
    },

    /** Needs no privilege to set a sequence, unless the gap is large. */
    raiseSequence: async ({ highest, last, sequence }: SequenceGap): Promise<void> => {
      const gap = BigInt(highest) - BigInt(last);
      if (gap > maxSteps)
        await run('/* schemaChecks.setSequence */ select setval($1::regclass, $2::bigint)', [sequence, highest]);
      else
        await run(
          '/* schemaChecks.stepSequence */ select max(nextval($1::regclass)) from generate_series(1, $2::bigint)',
          [sequence, String(gap)],
        );
    },
  };
}
