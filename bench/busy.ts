import { Agent } from 'node:http';
import { parseArgs } from 'node:util';
import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import {
  cpuSecondsOf,
  loadAverage,
  loopDelayOf,
  memoryOf,
  percentile,
  printTable,
  resetPeak,
} from './support/measures.ts';
import { type Form, type Script, scriptOf } from './support/pipeline-bodies.ts';
import { postgresCpuSeconds } from './support/process-cpu.ts';
import { RawClient } from './support/raw-client.ts';
import { releasesOf, thisRelease } from './support/releases.ts';
import { type CallTarget, sendCall } from './support/send-call.ts';

/**
 * A busy server: many pipelines at once.
 * Each creates an update, starts it, saves its state after each step and completes it, in one round per form in which the
 * state is sent. Prints requests per second, latencies of each kind of call, and the CPU time of server, Postgres and load
 * generator per request. Bodies are built and compressed beforehand. Several releases serve their pipelines at the same
 * time, `--pipelines` each; the CPU time of the load generator is then that of all.
 * Usage: npm run bench busy -- [--forms whole,delta,journal] [--pipelines 50] [--state-kb 256] [--steps 40] [--changes 4]
 *   [--rounds 1] [--node-flags='--max-semi-space-size=8'] [--entries before=/path/to/bin/holdfast.js,now=bin/holdfast.js]
 *   [--other name=url,token,pid,dataDir]
 *   --node-flags replaces the flags of `npm start`; an entry may have its own: name=path|--flag --flag
 *   --other takes the place of the entries: a server of any kind that speaks the protocol and runs already; its Postgres
 *   has its data in the folder postgres/cluster of dataDir.
 */
const { values } = parseArgs({
  options: {
    forms: { type: 'string', default: 'whole,delta,journal' },
    pipelines: { type: 'string', default: '50' },
    'state-kb': { type: 'string', default: '256' },
    steps: { type: 'string', default: '40' },
    changes: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '1' },
    'node-flags': { type: 'string' },
    other: { type: 'string' },
    entries: { type: 'string', default: thisRelease },
  },
});

const organization = 'dev-org';
/** Another server keeps the stacks of earlier runs. */
const project = `bench-${Date.now()}`;
const pipelines = Number(values.pipelines);
const steps = Number(values.steps);
const stateBytes = Number(values['state-kb']) * 1024;
const callNames = ['create', 'start', 'save', 'complete'] as const;
type CallName = (typeof callNames)[number];

/** Holdfast or another server. */
interface MeasuredServer extends Pick<OwnHoldfastServer, 'url' | 'token' | 'pid' | 'dataDir'> {
  readonly managementUrl: string | null;
}

/** Kept connections cost little. Times are in ms. */
class LoadClient {
  readonly #target: CallTarget;
  readonly #token: string;
  readonly latencies: Record<CallName, number[]> = { create: [], start: [], save: [], complete: [] };

  constructor(server: MeasuredServer) {
    this.#target = { url: new URL(server.url), agent: new Agent({ keepAlive: true }) };
    this.#token = `token ${server.token}`;
  }

  async call(name: CallName, method: string, path: string, body: Buffer | object, auth?: string): Promise<string> {
    const began = performance.now();
    const text = await sendCall(this.#target, method, path, body, auth ?? this.#token);
    this.latencies[name].push(performance.now() - began);
    return text;
  }

  close(): void {
    this.#target.agent.destroy();
  }
}

async function runPipeline(client: LoadClient, stack: string, { steps: list }: Script, form: Form): Promise<void> {
  const created = JSON.parse(await client.call('create', 'POST', `${stack}/update`, {})) as { updateID: string };
  const path = `${stack}/update/${created.updateID}`;
  const options = form === 'journal' ? { journalVersion: 1 } : {};
  const { token } = JSON.parse(await client.call('start', 'POST', path, options)) as { token: string };
  const lease = `update-token ${token}`;
  for (const { call, body } of list) await client.call('save', 'PATCH', `${path}/${call}`, body, lease);
  await client.call('complete', 'POST', `${path}/complete`, { status: 'succeeded' }, lease);
}

interface Usage {
  readonly server: number;
  readonly postgres: number;
  readonly client: number;
}

async function usageOf(server: MeasuredServer): Promise<Usage> {
  const { user, system } = process.cpuUsage();
  return {
    server: await cpuSecondsOf(server.pid()),
    postgres: await postgresCpuSeconds(server.dataDir),
    client: (user + system) / 1e6,
  };
}

async function round(server: MeasuredServer, form: Form, script: Script, label: string, pipelines: number) {
  const setUp = new RawClient(server.url, server.token);
  const stacks: string[] = [];
  for (let at = 0; at < pipelines; at++) {
    const stack = await setUp.createStack(organization, project, `${form}-${label}-${at}`);
    await setUp.once('POST', `${stack}/import`, script.base, { gzip: true });
    stacks.push(stack);
  }
  const client = new LoadClient(server);
  const loopMaxMs = async (): Promise<number> =>
    server.managementUrl ? (await loopDelayOf(server.managementUrl)).max : Number.NaN;
  await loopMaxMs();
  await resetPeak(server.pid());
  const before = await usageOf(server);
  const began = performance.now();
  await Promise.all(stacks.map((stack) => runPipeline(client, stack, script, form)));
  const seconds = (performance.now() - began) / 1000;
  const after = await usageOf(server);
  const loopMax = await loopMaxMs();
  const { peak } = await memoryOf(server.pid());
  client.close();
  for (const stack of [stacks[0], stacks.at(-1)]) assertState(await setUp.export(stack as string), script);
  const requests = Object.values(client.latencies).reduce((sum, list) => sum + list.length, 0);
  const msPerRequest = (part: keyof Usage): number => ((after[part] - before[part]) / requests) * 1000;
  return {
    latencies: client.latencies,
    costs: [
      requests / seconds,
      msPerRequest('server'),
      msPerRequest('postgres'),
      msPerRequest('client'),
      loopMax,
      peak,
    ],
  };
}

/** Throws unless the exported state has the resources that the pipeline wrote. */
function assertState(text: string, { resources }: Script): void {
  const { deployment } = JSON.parse(text) as { deployment: { resources: object[] } };
  const found = deployment.resources.map((resource) => JSON.stringify(resource)).sort();
  if (found.join() !== [...resources].sort().join()) throw new Error('the final state is not what was written');
}

await using resources = new AsyncDisposableStack();
const servers = new Map<string, MeasuredServer>();
if (values.other) {
  const [name = '', rest = ''] = values.other.split('=');
  const [url = '', token = '', pid = '', dataDir = ''] = rest.split(',');
  servers.set(name, { url, token, pid: () => Number(pid), dataDir, managementUrl: null });
}
for (const { name, ...options } of values.other ? [] : releasesOf(values.entries, values['node-flags'])) {
  servers.set(name, resources.use(await startOwnHoldfast({}, options)));
}
const forms = values.forms.split(',') as Form[];
const scripts = new Map(
  forms.map((form) => [form, scriptOf(form, stateBytes, steps, Number(values.changes))] as const),
);
async function roundOfAll(form: Form, script: Script, label: string, pipelines: number) {
  const all = [...servers].map(async ([name, server]) => ({
    name,
    ...(await round(server, form, script, label, pipelines)),
  }));
  return Promise.all(all);
}
// Only warms up the servers.
for (const [form, script] of scripts) await roundOfAll(form, script, 'warm-up', 4);
const costs: (string | number)[][] = [];
const latencies: (string | number)[][] = [];
for (let at = 1; at <= Number(values.rounds); at++) {
  for (const [form, script] of scripts) {
    for (const measured of await roundOfAll(form, script, String(at), pipelines)) {
      costs.push([form, measured.name, ...measured.costs]);
      const shown = callNames.flatMap((name) =>
        [0.5, 0.99].map((share) => percentile(measured.latencies[name], share)),
      );
      latencies.push([form, measured.name, ...shown]);
    }
  }
}
console.log(`${pipelines} pipelines, ${values['state-kb']} KB, ${steps} steps; load ${await loadAverage()}\n`);
printTable(
  [
    'form',
    'release',
    'requests/s',
    'server CPU ms/request',
    'Postgres CPU',
    'client CPU',
    'loop max ms',
    'RSS peak MB',
  ],
  costs,
);
console.log();
printTable(['form', 'release', ...callNames.flatMap((name) => [`${name} p50 ms`, 'p99'])], latencies);
