/** From `explain (analyze, buffers, format json)`. */
export interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Shared Hit Blocks'?: number;
  readonly 'Shared Read Blocks'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Independent of the load of the machine. */
export interface PlanCost {
  /** By scans of tables and indexes, including filtered rows. */
  readonly read: number;
  /** Rows that the statement returned. */
  readonly returned: number;
  /** Pages touched, in memory or not. */
  readonly pages: number;
}

/** These nodes pass on the rows of other nodes, or count them a second time. */
const passingScans = new Set(['Subquery Scan', 'CTE Scan', 'Function Scan', 'Values Scan', 'Bitmap Index Scan']);

/** Returns the cost of an executed plan. */
export function planCost(root: PlanNode): PlanCost {
  const pages = (root['Shared Hit Blocks'] ?? 0) + (root['Shared Read Blocks'] ?? 0);
  return { read: rowsRead(root), returned: Math.round(root['Actual Rows'] ?? 0), pages };
}

function rowsRead(node: PlanNode): number {
  const below = (node.Plans ?? []).reduce((sum, each) => sum + rowsRead(each), 0);
  if (!node['Node Type'].endsWith('Scan') || passingScans.has(node['Node Type'])) return below;
  const each =
    (node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
  return below + Math.round(each * (node['Actual Loops'] ?? 0));
}

/** The node that reads the most rows, such as `Seq Scan on stacks`. */
export function busiestScan(root: PlanNode): string {
  let [most, name] = [-1, ''];
  const visit = (node: PlanNode): void => {
    const own = rowsRead({ ...node, Plans: [] });
    if (node['Node Type'].endsWith('Scan') && !passingScans.has(node['Node Type']) && own > most) {
      most = own;
      name = `${node['Node Type']} on ${node['Index Name'] ?? node['Relation Name'] ?? '?'}`;
    }
    for (const child of node.Plans ?? []) visit(child);
  };
  visit(root);
  return name;
}

/** An object that runs SQL, such as a `pg.Client`. */
interface Client {
  query(text: string, values: unknown[]): Promise<{ rows: readonly unknown[] }>;
}

/** The plan of one statement that a repository ran. */
export interface ExplainedStatement extends PlanCost {
  /** In the comment with which the statement begins. */
  readonly name: string;
  readonly ms: number;
  readonly plan: PlanNode;
}

/**
 * Takes the place of a repository's pool: runs its statements with `explain analyze` and keeps the plans. Statements return no rows; `one`
 * returns an empty row.
 */
export function explainingPool(client: Client): { readonly pool: unknown; readonly statements: ExplainedStatement[] } {
  const statements: ExplainedStatement[] = [];
  const explain = async ({ sql, values }: { sql: string; values: unknown[] }): Promise<void> => {
    const text = sql.replace(/\$slonik_(\d+)/g, '$$$1');
    const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, values);
    const [row] = rows as { 'QUERY PLAN': [{ Plan: PlanNode; 'Execution Time': number; 'Planning Time': number }] }[];
    if (!row) throw new Error('Postgres returned no plan');
    const [{ Plan: plan, 'Execution Time': execution, 'Planning Time': planning }] = row['QUERY PLAN'];
    const name = /\/\*\s*([\w.]+)\s*\*\//.exec(sql)?.[1] ?? '';
    statements.push({ name, ms: execution + planning, plan, ...planCost(plan) });
  };
  const answering =
    <T>(answer: T) =>
    async (query: { sql: string; values: unknown[] }): Promise<T> => {
      await explain(query);
      return answer;
    };
  const pool = {
    any: answering([]),
    query: answering({ rows: [], rowCount: 0 }),
    one: answering({}),
    maybeOne: answering(null),
    exists: answering(false),
  };
  return { pool, statements };
}
