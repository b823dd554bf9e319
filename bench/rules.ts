import { parseArgs } from 'node:util';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { loadAverage, median, percentile, printTable } from './support/measures.ts';
import { RawClient, type Update } from './support/raw-client.ts';

/**
 * What rules and webhooks cost an update.
 * Where updates are created, started and send what they begin: stacks without any, with rules that are not about them, with
 * rules of each kind, and with a webhook alternate in one run.
 * Usage: npm run bench rules -- [--rounds 200] [--batches 5]
 */
const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '200' }, batches: { type: 'string', default: '5' } },
});
const rounds = Number(values.rounds);
const batches = Number(values.batches);
const environment = { 'git.head': 'ab12'.repeat(10), 'git.dirty': 'false', 'git.headName': 'refs/heads/main' };

await using server = await startOwnHoldfast({
  HOLDFAST_LOG_LEVEL: 'warn',
  HOLDFAST_OUTGOING_ALLOW: 'http://127.0.0.1:9',
});
const { organization } = server;
const client = new RawClient(server.url, server.token);

type Step = 'create' | 'start' | 'append' | 'complete';
const steps: readonly Step[] = ['create', 'start', 'append', 'complete'];

/** Stacks that are set up in one way. */
interface Variant {
  readonly name: string;
  readonly path: string;
  /** In ms. */
  readonly times: Record<Step, number[]>;
}

async function variant(name: string, project: string, rules: readonly object[] = []): Promise<Variant> {
  const path = await client.createStack(organization, project, 'dev');
  for (const rule of rules)
    await client.once('POST', `/api/orgs/${organization}/update-rules`, { project, stack: 'dev', ...rule });
  return { name, path, times: { create: [], start: [], append: [], complete: [] } };
}

const waits = { kind: 'lock-wait', settings: { seconds: 60 } };
const changeLimit = { kind: 'change-limit', settings: { changes: 100_000 } };
const frozen = { kind: 'freeze', settings: { until: '2020-01-01T00:00:00Z' } };
const limited = { kind: 'concurrency', settings: { most: 1000 } };
const previewed = { kind: 'require-preview', settings: { mode: 'warn' } };
const variants: Variant[] = [
  await variant('no rules', 'none'),
  await variant('lock-wait, an ended freeze', 'waits', [waits, frozen]),
  await variant('change limit, protected types', 'guarded', [
    changeLimit,
    { kind: 'protected-types', settings: { types: ['aws:rds/*'] } },
  ]),
  await variant('concurrency', 'limited', [limited]),
  await variant('require-preview, with a preview', 'previewed', [previewed]),
  await variant('a webhook', 'hooked'),
];
const hooked = variants.at(-1) as Variant;
await client.once('POST', `${hooked.path}/hooks`, {
  ...{ displayName: 'bench', payloadUrl: 'http://127.0.0.1:9/', active: true, filters: ['update_failed'] },
});

async function timed<T>({ times }: Variant, step: Step, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const result = await work();
  times[step].push(performance.now() - began);
  return result;
}

const created = async (path: string, kind: string): Promise<string> => {
  const body = { metadata: { message: '', environment } };
  return (JSON.parse(await client.once('POST', `${path}/${kind}`, body)) as { updateID: string }).updateID;
};

async function started(path: string, id: string): Promise<Update> {
  const update = `${path}/update/${id}`;
  const { token, version } = JSON.parse(await client.once('POST', update, { journalVersion: 1 })) as {
    token: string;
    version: number;
  };
  return { id, path: update, lease: `update-token ${token}`, version };
}

/** A batch that begins the deletion of a resource, and says that it has failed: nothing is left of it in the state. */
function batch(at: number): object {
  const [first, second] = [2 * at - 1, 2 * at];
  const none = { version: 1, operationID: first, removeOld: null, removeNew: null };
  const resource = { urn: `urn:pulumi:dev::p::a:b:C::r${at}`, type: 'a:b:C', custom: true };
  return {
    entries: [
      { ...none, kind: 0, sequenceID: first, operation: { type: 'deleting', resource } },
      { ...none, kind: 2, sequenceID: second },
    ],
  };
}

async function round(of: Variant): Promise<void> {
  if (of.path.includes('/previewed/')) await client.complete(await started(of.path, await created(of.path, 'preview')));
  const id = await timed(of, 'create', () => created(of.path, 'update'));
  const update = await timed(of, 'start', () => started(of.path, id));
  for (let at = 1; at <= batches; at++) {
    const options = { auth: update.lease };
    await timed(of, 'append', () => client.once('PATCH', `${update.path}/journalentries`, batch(at), options));
  }
  await timed(of, 'complete', () => client.complete(update));
}

for (let at = 0; at < rounds; at++) {
  for (const of of variants) await round(of);
  // The first ones load code.
  if (at === 9) for (const { times } of variants) for (const step of steps) times[step].length = 0;
}

console.log(`load ${await loadAverage()}; ${rounds} updates of each, ${batches} batches in each\n`);
const [none] = variants as [Variant];
printTable(
  ['median in ms (ratio to none)', ...steps],
  variants.map(({ name, times }) => [
    name,
    ...steps.map((step) => {
      const own = median(times[step]);
      return `${own.toFixed(1)} (${(own / median(none.times[step])).toFixed(2)})`;
    }),
  ]),
);
printTable(
  ['p95 in ms', ...steps],
  variants.map(({ name, times }) => [name, ...steps.map((step) => percentile(times[step], 0.95).toFixed(1))]),
);
