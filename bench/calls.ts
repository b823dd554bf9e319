import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { DataFolder } from './support/footprint.ts';
import { cpuSecondsOf, loadAverage, median, printTable } from './support/measures.ts';
import { type Form, type Script, scriptOf } from './support/pipeline-bodies.ts';
import { postgresCpuSeconds } from './support/process-cpu.ts';
import { RawClient } from './support/raw-client.ts';
import { releasesOf, thisRelease } from './support/releases.ts';
import { sendCall } from './support/send-call.ts';

/**
 * The CPU time of each call of an update.
 * Makes all creates of a round, then all starts, saves and completes, one kind at a time, and waits for the work that
 * follows. Prints the CPU time of server and Postgres per call, and with `--statements` what Postgres did for it. Several
 * releases alternate, kind by kind.
 * Usage: npm run bench calls -- [--forms whole,journal] [--stacks 100] [--state-kb 20] [--steps 10] [--changes 4]
 *   [--rounds 4] [--at-once 1] [--statements 12] [--node-flags='…']
 *   [--entries before=/path/to/bin/holdfast.js,now=bin/holdfast.js]
 */
const { values } = parseArgs({
  options: {
    forms: { type: 'string', default: 'whole,journal' },
    stacks: { type: 'string', default: '100' },
    'state-kb': { type: 'string', default: '20' },
    steps: { type: 'string', default: '10' },
    changes: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '4' },
    'at-once': { type: 'string', default: '1' },
    statements: { type: 'string' },
    'node-flags': { type: 'string' },
    entries: { type: 'string', default: thisRelease },
  },
});

const kinds = ['create', 'start', 'save', 'complete', 'afterwards'] as const;
type Kind = (typeof kinds)[number];

/** How long the work that follows the last complete is waited for. */
const afterwardsMs = 3_000;

interface Cost {
  readonly server: number;
  readonly postgres: number;
  readonly ms: number;
}

interface Pipeline {
  readonly stack: string;
  path: string;
  lease: string;
}

interface Measured {
  readonly name: string;
  readonly server: OwnHoldfastServer;
  readonly data: DataFolder;
  readonly agent: Agent;
  readonly pipelines: Map<Form, Pipeline[]>;
  readonly costs: Map<string, Cost[]>;
}

function send(of: Measured, method: string, path: string, body: Buffer | object, authorization: string) {
  return sendCall({ url: new URL(of.server.url), agent: of.agent }, method, path, body, authorization);
}

/** Makes the calls of one kind for all pipelines and returns how many there were. */
async function run(kind: Kind, of: Measured, form: Form, script: Script): Promise<number> {
  const pipelines = of.pipelines.get(form) as Pipeline[];
  const token = `token ${of.server.token}`;
  const call = async (pipeline: Pipeline): Promise<void> => {
    const { stack, path, lease } = pipeline;
    if (kind === 'create') {
      const { updateID } = JSON.parse(await send(of, 'POST', `${stack}/update`, {}, token)) as { updateID: string };
      pipeline.path = `${stack}/update/${updateID}`;
    } else if (kind === 'start') {
      const started = await send(of, 'POST', path, form === 'journal' ? { journalVersion: 1 } : {}, token);
      pipeline.lease = `update-token ${(JSON.parse(started) as { token: string }).token}`;
    } else if (kind === 'save') {
      for (const step of script.steps) await send(of, 'PATCH', `${path}/${step.call}`, step.body, lease);
    } else await send(of, 'POST', `${path}/complete`, { status: 'succeeded' }, lease);
  };
  if (kind === 'afterwards') await sleep(afterwardsMs);
  else {
    const waiting = [...pipelines];
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next; next = waiting.shift()) await call(next);
    };
    await Promise.all(Array.from({ length: Number(values['at-once']) }, work));
  }
  return pipelines.length * (kind === 'save' ? script.steps.length : 1);
}

async function costOf(of: Measured, work: () => Promise<number>): Promise<Cost> {
  const usage = async (): Promise<[number, number]> => [
    await cpuSecondsOf(of.server.pid()),
    await postgresCpuSeconds(of.server.dataDir),
  ];
  const before = await usage();
  const began = performance.now();
  const calls = await work();
  const ms = performance.now() - began;
  const after = await usage();
  const each = (part: 0 | 1): number => ((after[part] - before[part]) / calls) * 1000;
  return { server: each(0), postgres: each(1), ms: ms / calls };
}

interface StatementRow {
  readonly top: boolean;
  readonly calls: string;
  readonly plans: string;
  readonly planning: number;
  readonly ms: number;
  readonly wal: string;
  readonly query: string;
}

async function printStatements(of: Measured, form: Form, kind: Kind, calls: number): Promise<void> {
  const rows = (await of.data.query(
    `select toplevel as top, calls, plans, total_plan_time as planning, total_exec_time as ms, wal_bytes as wal, query from pg_stat_statements
       order by total_exec_time + total_plan_time desc limit $1`,
    [Number(values.statements)],
  )) as unknown as StatementRow[];
  await of.data.query('select pg_stat_statements_reset()');
  console.log(`\n${of.name}, ${form}, ${kind}: statements per call\n`);
  printTable(
    ['calls', 'plans', 'planning µs', 'running µs', 'WAL bytes', 'statement'],
    rows.map((row) => [
      Number(row.calls) / calls,
      Number(row.plans) / calls,
      (row.planning * 1000) / calls,
      (row.ms * 1000) / calls,
      Number(row.wal) / calls,
      `${row.top ? '' : '(inner) '}${row.query.replaceAll(/\s+/g, ' ').slice(0, 150)}`,
    ]),
  );
}

const forms = values.forms.split(',') as Form[];
const scripts = new Map(
  forms.map((form) => [
    form,
    scriptOf(form, Number(values['state-kb']) * 1024, Number(values.steps), Number(values.changes)),
  ]),
);
await using resources = new AsyncDisposableStack();
const servers: Measured[] = [];
for (const { name, ...options } of releasesOf(values.entries, values['node-flags'])) {
  const server = resources.use(await startOwnHoldfast({}, options));
  const data = new DataFolder(server.dataDir);
  if (values.statements) {
    await data.query(`alter system set shared_preload_libraries = 'pg_stat_statements'`);
    await data.query(`alter system set pg_stat_statements.track = 'all'`);
    await data.query(`alter system set pg_stat_statements.track_planning = 'on'`);
    await server.stop();
    await server.restart();
    await data.query('create extension pg_stat_statements');
  }
  const setUp = new RawClient(server.url, server.token);
  const pipelines = new Map<Form, Pipeline[]>();
  for (const [form, script] of scripts) {
    const list: Pipeline[] = [];
    for (let at = 0; at < Number(values.stacks); at++) {
      const stack = await setUp.createStack(server.organization, 'bench', `${form}-${at}`);
      await setUp.once('POST', `${stack}/import`, script.base, { gzip: true });
      list.push({ stack, path: '', lease: '' });
    }
    pipelines.set(form, list);
  }
  servers.push({ name, server, data, agent: new Agent({ keepAlive: true }), pipelines, costs: new Map() });
}
console.error(`pids: ${servers.map(({ name, server }) => `${name} ${server.pid()}`).join(', ')}`);
// The first round only warms up the servers.
for (let round = 0; round <= Number(values.rounds); round++) {
  for (const [form, script] of scripts) {
    for (const kind of kinds) {
      for (const of of round % 2 === 0 ? servers : servers.toReversed()) {
        if (values.statements) await of.data.query('select pg_stat_statements_reset()');
        let calls = 0;
        const cost = await costOf(of, async () => {
          calls = await run(kind, of, form, script);
          return calls;
        });
        if (round === 0) continue;
        if (values.statements && round === Number(values.rounds)) await printStatements(of, form, kind, calls);
        const key = `${form} ${kind} ${of.name}`;
        of.costs.set(key, [...(of.costs.get(key) ?? []), cost]);
      }
    }
  }
}
console.log(
  `\n${values.stacks} stacks, ${values['state-kb']} KB, ${values.steps} saves, ${values['at-once']} at once; load ${await loadAverage()}\n`,
);
const rows = forms.flatMap((form) =>
  kinds.flatMap((kind) =>
    servers.map(({ name, costs }) => {
      const list = costs.get(`${form} ${kind} ${name}`) as Cost[];
      const of = (part: keyof Cost): number => median(list.map((cost) => cost[part]));
      return [form, kind, name, of('server'), of('postgres'), of('ms')];
    }),
  ),
);
printTable(['form', 'call', 'release', 'server CPU ms/call', 'Postgres CPU ms/call', 'wall ms/call'], rows);
for (const { agent } of servers) agent.destroy();
