import pg from 'pg';

/** What the runs of one statement cost together. */
export interface StatementCost {
  readonly calls: number;
  /** Pages touched, in memory or not, those of its triggers included. */
  readonly pages: number;
  readonly rows: number;
}

/** Flags with which Postgres counts pages by statement. */
export const countingFlags = [
  ...['-c', 'shared_preload_libraries=pg_stat_statements'],
  ...['-c', 'pg_stat_statements.max=5000', '-c', 'pg_stat_statements.track=top'],
];

/** Counts what each statement of a database reads, by its beginning: Postgres drops the comment with its name. */
export class StatementPages {
  readonly #client: pg.Client;
  readonly #database: string;

  private constructor(client: pg.Client, database: string) {
    this.#client = client;
    this.#database = database;
  }

  /** `postgresUrl`: another database of the same Postgres, whose own statements do not count. */
  static async open(postgresUrl: string, database: string): Promise<StatementPages> {
    const client = new pg.Client({ connectionString: postgresUrl });
    await client.connect();
    await client.query('create extension if not exists pg_stat_statements');
    return new StatementPages(client, database);
  }

  async reset(): Promise<void> {
    await this.#client.query(
      'select pg_stat_statements_reset(0, (select oid from pg_database where datname = $1), 0)',
      [this.#database],
    );
  }

  /** What ran since the last reset. */
  async read(): Promise<Map<string, StatementCost>> {
    const { rows } = await this.#client.query<{ query: string; calls: string; pages: string; rows: string }>(
      `select query, calls, shared_blks_hit + shared_blks_read as pages, rows from pg_stat_statements s
       join pg_database d on d.oid = s.dbid where d.datname = $1`,
      [this.#database],
    );
    const found = new Map<string, StatementCost>();
    for (const row of rows) {
      const name = row.query.replaceAll(/\s+/g, ' ').slice(0, 60);
      const before = found.get(name) ?? { calls: 0, pages: 0, rows: 0 };
      found.set(name, {
        calls: before.calls + Number(row.calls),
        pages: before.pages + Number(row.pages),
        rows: before.rows + Number(row.rows),
      });
    }
    return found;
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}
