import { type Queryable, type SqlFragment, sql } from '../../../shared/platform/db/sql.ts';
import type { FindingKind } from '../finding.ts';
import { CheckedRow, problems, type RowPage } from '../row-check-repository.ts';

/** A condition that no row may fulfil. */
interface RowProblem {
  readonly kind: FindingKind;
  readonly when: SqlFragment;
  /** The statements run in one transaction and repair the row if it is still wrong then; without them, the row is left alone. */
  readonly repair?: (id: string) => readonly SqlFragment[];
}

/** The schema does not enforce these invariants. */
export interface TableCheck {
  /** The report counts the rows under this name. */
  readonly name: string;
  readonly from: SqlFragment;
  /** Indexed: rows are read in its order. */
  readonly id: SqlFragment;
  readonly idType: SqlFragment;
  /** The name of the row in a finding. */
  readonly object: SqlFragment;
  readonly problems: readonly RowProblem[];
}

export const active = sql.fragment`('not started', 'running')`;

export const idTypes = {
  uuid: sql.fragment`uuid`,
  bigint: sql.fragment`bigint`,
  text: sql.fragment`text`,
} as const;

/** Makes a repair wait for transactions that change the stack. */
export const lockStack = (id: string): SqlFragment =>
  sql.fragment`select 1 from stacks where id = ${id}::uuid for update`;

/** Each page is one statement, so a transaction is never seen half. */
export function createTableCheckRepository(db: Queryable) {
  return {
    page:
      ({ from, id, idType, object, problems: found }: TableCheck): RowPage =>
      (after, limit) =>
        db.any(sql.rows(CheckedRow)`
          /* tableChecks.page */
          select (${id})::text as id, ${object} as object, ${problems(...found.map(({ kind, when }) => [kind, when] as const))}
          from ${from} where ${after}::text is null or ${id} > (${after}::text)::${idType} order by ${id} limit ${limit}`),

    repair: async (statements: readonly SqlFragment[]): Promise<void> => {
      for (const statement of statements) await db.query(sql.nothing`/* tableChecks.repair */ ${statement}`);
    },
  };
}
