import { mkdtempSync, rmSync } from 'node:fs';
import { copyFile, readFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import PQueue from 'p-queue';
import { parse } from 'yaml';
import { PassphraseCrypter } from '../src/shared/diy/passphrase-crypter.ts';
import { holdfastOutput } from '../testkit/admin-command.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { stashProgram } from '../testkit/stash-program.ts';
import { until } from '../testkit/until.ts';
import { DataFolder } from './support/footprint.ts';
import { cpuSecondsOf, loadAverage, percentile, printTable } from './support/measures.ts';
import { sendCall } from './support/send-call.ts';

/**
 * The break-glass bundle of stacks with secrets: written, used without the server, and returned.
 * Every state and configuration is decrypted and compared, and for some stacks the CLI finds no changes and updates them. Then,
 * `holdfast bundle return`, with some stacks that moved on both sides. Ends with an error if a secret or a version is lost, or a conflict is not named.
 * With --steady, the lag of a bundle that is written while so many updates a second end, evenly spread over the stacks; nothing is returned.
 * Usage: npm run bench bundle -- [--stacks 1000] [--cli 20] [--conflicts 3] [--resources 10] [--steady 2 --minutes 5]
 */
const { values } = parseArgs({
  options: {
    stacks: { type: 'string', default: '1000' },
    cli: { type: 'string', default: '20' },
    conflicts: { type: 'string', default: '3' },
    resources: { type: 'string', default: '10' },
    steady: { type: 'string', default: '0' },
    minutes: { type: 'string', default: '5' },
  },
});
const [stacks, resources] = [Number(values.stacks), Number(values.resources)];
const sampled = Math.min(Number(values.cli), stacks);
const conflicts = Math.min(Number(values.conflicts), sampled);
const [project, template, passphrase, password] = ['bundled', 'stackzero', 'correct horse battery', 'hunter2'];
const callsAtOnce = 4;
const unattended = ['--yes', '--skip-preview', '--non-interactive'];
const secretMark = '4dabf18193072939515e22adb298388d';
const maxMinutes = 120;

const programOf = (count: number) => ({
  ...stashProgram({ project, count, inputOf: (index) => (index === 0 ? `\${${project}:password}` : `input ${index}`) }),
  config: { [`${project}:password`]: { type: 'string', secret: true } },
});
const nameOf = (at: number): string => `stack-${at}`;
const all = Array.from({ length: stacks }, (_, at) => nameOf(at));
// Spread over all.
const sample = all.filter((_, at) => at % Math.ceil(stacks / sampled) === 0).slice(0, sampled);

interface Deployment {
  readonly secrets_providers: { readonly type: string; readonly state: Readonly<Record<string, unknown>> };
  readonly resources: readonly unknown[];
}

const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-bench-bundle-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
const settings = { HOLDFAST_BUNDLE_URL: `file://${directory}`, HOLDFAST_BUNDLE_PASSPHRASE: passphrase };
await using server = await startOwnHoldfast(settings);
const { organization } = server;
const root = path.join(directory, organization);
await using workspace = await server.workspace();
const agent = new Agent({ keepAlive: true, maxSockets: callsAtOnce });
const bearer = `token ${server.token}`;
const call = async (method: string, at: string, body: object, auth = bearer): Promise<Record<string, string>> => {
  const url = new URL(server.url);
  return JSON.parse(
    (await sendCall({ url, agent }, method, `/api/stacks/${organization}/${project}${at}`, body, auth)) || '{}',
  );
};
const onAll = async (names: readonly string[], work: (name: string) => Promise<unknown>): Promise<void> => {
  const queue = new PQueue({ concurrency: callsAtOnce });
  await Promise.all(names.map((name) => queue.add(() => work(name))));
};
const secondsOf = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
};
const encoded = (text: string): string => Buffer.from(text).toString('base64');
const measured: (readonly (string | number)[])[] = [];
const note = (what: string, value: string | number): void => {
  measured.push([what, value]);
  console.log(`${what}: ${typeof value === 'number' ? value.toFixed(2) : value}`);
};

note('load before', await loadAverage());

// The state of a real update. All stacks have one like it, with their own name and ciphertexts.
await workspace.writeProgram(programOf(resources));
const qualified = (name: string): string => `${organization}/${project}/${name}`;
await workspace.runOk(['stack', 'init', qualified(template)]);
await workspace.runOk(['config', 'set', '--secret', 'password', password, '--stack', qualified(template)]);
await workspace.runOk(['up', ...unattended, '--stack', qualified(template)]);
const original = JSON.stringify((await workspace.exportState({ stack: qualified(template) })).deployment);

/** Leaves the state of the template, and as many more updates of the last resource. */
async function update(name: string, message: string, more = 0): Promise<void> {
  const encrypt = async (text: string): Promise<string> =>
    (await call('POST', `/${name}/encrypt`, { plaintext: encoded(text) }))['ciphertext'] as string;
  const [ofState, ofConfig] = [await encrypt(JSON.stringify(password)), await encrypt(password)];
  const state = JSON.parse(
    original.replaceAll(template, name).replace(/"ciphertext":"[^"]*"/g, `"ciphertext":"${ofState}"`),
  ) as { resources: { urn: string }[] };
  const last = state.resources.at(-1) as { urn: string };
  for (let at = 1; at <= more; at++) state.resources.push({ ...last, urn: `${last.urn}-${at}` });
  const config = { [`${project}:password`]: { string: ofConfig, secret: true, object: false } };
  const { updateID } = await call('POST', `/${name}/update`, { config, metadata: { message, environment: {} } });
  const at = `/${name}/update/${updateID}`;
  const lease = `update-token ${(await call('POST', at, {}))['token']}`;
  await call('PATCH', `${at}/checkpoint`, { isInvalid: false, version: 3, deployment: state }, lease);
  await call('POST', `${at}/complete`, { status: 'succeeded' }, lease);
}

const cpuBefore = await cpuSecondsOf(server.pid());
const made = await secondsOf(() =>
  onAll(all, async (name) => {
    await call('POST', '', { stackName: name });
    await update(name, 'first');
  }),
);
note('stacks made, s', made);
let lags: number[] = [];
const isWritten = async (): Promise<boolean> => {
  const found = JSON.parse(await holdfastOutput(server, settings, 'bundle', 'status', '--json').catch(() => '{}'));
  if (found.errors?.length > 0) throw new Error(JSON.stringify(found.errors));
  if (found.behindSeconds !== undefined) lags.push(found.behindSeconds);
  return found.behind === 0 && found.stacks === stacks + 1;
};
const written = await secondsOf(() =>
  until(isWritten, 'the bundle is written', { timeoutMs: maxMinutes * 60_000, everyMs: 5_000 }),
);
note('bundle written after that, s', written);
note('longest lag, s', percentile(lags, 1));
note('CPU of the server until then, s', (await cpuSecondsOf(server.pid())) - cpuBefore);
if (Number(values.steady) > 0) await runSteadily(Number(values.steady), Number(values.minutes));

/** Runs updates at this rate, and notes how far the bundle is behind meanwhile. */
async function runSteadily(perSecond: number, minutes: number): Promise<void> {
  lags = [];
  const busy = new Map<string, Promise<void>>();
  const began = performance.now();
  let [started, late] = [0, 0];
  const watching = { isOver: false };
  const watch = (async () => {
    while (!watching.isOver) {
      await isWritten();
      await sleep(2_000);
    }
  })();
  while (performance.now() - began < minutes * 60_000) {
    const name = all[started % stacks] as string;
    if (busy.has(name)) late++;
    await busy.get(name);
    const running = update(name, 'steady').finally(() => busy.delete(name));
    busy.set(name, running);
    started++;
    await sleep(Math.max(0, began + (started * 1000) / perSecond - performance.now()));
  }
  await Promise.all(busy.values());
  watching.isOver = true;
  await watch;
  note('updates', String(started));
  note('updates a second', started / ((performance.now() - began) / 1000));
  note('updates that waited for the one before', String(late));
  for (const [label, at] of [
    ['p50', 0.5],
    ['p99', 0.99],
    ['longest', 1],
  ] as const)
    note(`lag in steady work, ${label}, s`, percentile(lags, at));
  note('load', await loadAverage());
}

/** A document with the plaintext of each secret, as the crypter gives it. */
function decrypted(value: unknown, decrypt: (ciphertext: string) => string): unknown {
  if (Array.isArray(value)) return value.map((each) => decrypted(each, decrypt));
  if (typeof value !== 'object' || value === null) return value;
  if (secretMark in value && 'ciphertext' in value) return { secret: decrypt(String(value.ciphertext)) };
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, decrypted(each, decrypt)]));
}

const crypters = new Map<string, Promise<PassphraseCrypter | null>>();
async function decrypterOf(salt: string): Promise<(ciphertext: string) => string> {
  if (!crypters.has(salt)) crypters.set(salt, PassphraseCrypter.open(passphrase, salt));
  const crypter = await crypters.get(salt);
  if (!crypter) throw new Error('the salt belongs to another passphrase');
  return (ciphertext) => {
    const text = crypter.decrypt(ciphertext);
    if (text === null) throw new Error('a secret cannot be decrypted');
    return text.toString();
  };
}

const configOf = (name: string): string => path.join(root, 'config', project, `Pulumi.${name}.yaml`);

/** Throws unless state and configuration are the stack's, with its secrets. */
async function compare(name: string): Promise<void> {
  const state = path.join(root, '.pulumi/stacks', project, `${name}.json`);
  const { latest } = JSON.parse(await readFile(state, 'utf8')).checkpoint as { latest: Deployment };
  const decrypt = await decrypterOf(String(latest.secrets_providers.state['salt']));
  const expected = JSON.parse(original.replaceAll(template, name)) as Deployment;
  const plain = decrypted(expected.resources, () => JSON.stringify(password));
  if (!isDeepStrictEqual(decrypted(latest.resources, decrypt), plain)) throw new Error(`${name} has another state`);
  const config = parse(await readFile(configOf(name), 'utf8'));
  const ofConfig = await decrypterOf(config.encryptionsalt);
  if (ofConfig(config.config[`${project}:password`].secure) !== password)
    throw new Error(`${name} has another configuration`);
}

await server.stop();
note(`${stacks} states and configurations decrypted and equal, s`, await secondsOf(() => onAll(all, compare)));
if (Number(values.steady) > 0) {
  printTable(['figure', 'value'], measured);
  agent.destroy();
  await workspace[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  process.exit();
}

const env = {
  PULUMI_BACKEND_URL: `file://${root}`,
  PULUMI_ACCESS_TOKEN: undefined,
  PULUMI_CONFIG_PASSPHRASE: passphrase,
};
const [previews, ups]: [number[], number[]] = [[], []];
for (const name of sample) {
  await copyFile(configOf(name), path.join(workspace.programDir, `Pulumi.${name}.yaml`));
  previews.push(await secondsOf(() => workspace.runOk(['preview', '--expect-no-changes', '--stack', name], { env })));
}
await workspace.writeProgram(programOf(resources + 1));
for (const name of sample)
  ups.push(
    await secondsOf(() => workspace.runOk(['up', ...unattended, '--message', 'emergency', '--stack', name], { env })),
  );
note(`${sample.length} previews without changes, s each at most`, percentile(previews, 1));
note(`${sample.length} updates, s each at most`, percentile(ups, 1));

await server.restart();
const both = sample.slice(0, conflicts);
await onAll(both, (name) => update(name, 'meanwhile', 2));
let printed = '';
const returned = await secondsOf(async () => {
  // It exits with 1 for the stacks that it refuses.
  printed = await holdfastOutput(server, settings, 'bundle', 'return', '--apply', '--json').catch((error: Error) =>
    error.message.slice(error.message.indexOf('\n') + 1),
  );
});
note('bundle return, s', returned);

interface Returned {
  readonly stack: string;
  readonly action: string;
  readonly reason: string;
}
const { stacks: results } = JSON.parse(printed.slice(0, printed.lastIndexOf('}') + 1)) as { stacks: Returned[] };
const named = (action: string): string[] =>
  results.filter((each) => each.action === action).map(({ stack }) => stack.split('/').at(-1) as string);
const newest = await new DataFolder(server.dataDir).query(`
  select s.name, u.stack_version::int as version, u.message from stacks s join lateral (
    select stack_version, message from updates where stack_id = s.id and stack_version is not null order by stack_version desc limit 1) u on true`);
const expectedOf = (name: string): string =>
  both.includes(name) ? '2 meanwhile' : sample.includes(name) ? '2 emergency' : '1 first';
const found = new Map(newest.map((row) => [String(row['name']), `${row['version']} ${row['message']}`]));
const lost = all.filter((name) => found.get(name) !== expectedOf(name));
const unnamed = both.filter((name) => !named('refused').includes(name));
const missing = sample.filter((name) => !both.includes(name) && !named('returned').includes(name));
note('stacks returned', String(named('returned').length));
note('stacks unchanged', String(named('unchanged').length));
note('conflicts named', String(both.length - unnamed.length));
note('versions lost', String(lost.length));
note('load after', await loadAverage());
printTable(['figure', 'value'], measured);
agent.destroy();
if (lost.length + unnamed.length + missing.length > 0)
  throw new Error(
    JSON.stringify({
      lost: lost.slice(0, 20),
      unnamed,
      missing,
      refused: results.filter(({ action }) => action === 'refused'),
    }),
  );
