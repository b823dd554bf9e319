import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/shared/platform/db/embedded-postgres.ts';
import type { Logger } from '../../src/shared/platform/logger/logger.ts';
import { busiestScan, type PlanNode, planCost } from '../../testkit/query-plan.ts';

/** One run of a statement. */
export interface RunStatement {
  /** From the comment with which it begins, such as `stacks.list`. */
  readonly name: string;
  readonly ms: number;
  readonly read: number;
  readonly returned: number;
  readonly pages: number;
  readonly busiest: string;
}

const flags = {
  shared_preload_libraries: 'auto_explain',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_buffers': 'on',
  'auto_explain.log_format': 'json',
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  max_connections: '60',
};

/** A Postgres that can log the plan of every statement. */
export class PlanLog {
  readonly postgres: EmbeddedPostgres;
  readonly #output: { text: string };

  private constructor(postgres: EmbeddedPostgres, output: { text: string }) {
    this.postgres = postgres;
    this.#output = output;
  }

  static async start(directory: string): Promise<PlanLog> {
    const output = { text: '' };
    const ignore = (): void => {};
    const debug = (fields: { postgres?: string }): void => {
      output.text += `${fields.postgres ?? ''}\n`;
      // Plans are read right after the statements that they belong to.
      if (output.text.length > 64e6) output.text = output.text.slice(-32e6);
    };
    const logger = { debug, info: ignore, warn: ignore, error: ignore } as unknown as Logger;
    const args = Object.entries(flags).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    return new PlanLog(await startEmbeddedPostgres(directory, logger, { flags: args }), output);
  }

  /** Returns what the statements that ran during `work` cost, with their triggers and those of other sessions. */
  async during(work: () => Promise<unknown>): Promise<RunStatement[]> {
    await this.#setThreshold('0');
    this.#output.text = '';
    try {
      await work();
      await sleep(100);
    } finally {
      await this.#setThreshold('-1');
    }
    return readPlans(this.#output.text);
  }

  /** -1 logs nothing. Sessions that are open notice the change before their next statement. */
  async #setThreshold(value: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.postgres.url });
    await client.connect();
    try {
      await client.query(`alter system set auto_explain.log_min_duration = ${value}`);
      await client.query('select pg_reload_conf()');
    } finally {
      await client.end();
    }
    await sleep(200);
  }
}

function readPlans(log: string): RunStatement[] {
  const found: RunStatement[] = [];
  for (const part of log.split(/duration: (?=[\d.]+ ms {2}plan:)/).slice(1)) {
    const ms = Number.parseFloat(part);
    const json = part.slice(part.indexOf('{'));
    const end = json.search(/\n\s?\}\n/);
    if (end < 0) continue;
    let parsed: { 'Query Text'?: string; Plan?: PlanNode };
    try {
      // Postgres begins the lines of a message with a tab.
      parsed = JSON.parse(`${json.slice(0, end).replaceAll('\n\t', '\n')}\n}`) as typeof parsed;
    } catch {
      continue;
    }
    const name = /\/\*\s*([\w.]+)\s*\*\//.exec(parsed['Query Text'] ?? '')?.[1];
    if (name === undefined || !parsed.Plan) continue;
    found.push({ name, ms, ...planCost(parsed.Plan), busiest: busiestScan(parsed.Plan) });
  }
  return found;
}
