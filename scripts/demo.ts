import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import PQueue from 'p-queue';
import { RawClient } from '../bench/support/raw-client.ts';
import { readRunningUrl } from '../src/shared/platform/db/embedded-postgres.ts';
import { buildWeb } from '../testkit/web-build.ts';
import { callsWith } from './demo/calls.ts';
import { seedIncidents } from './demo/incidents.ts';
import { environmentOf, organizations, planStacks, type StackPlan } from './demo/plan.ts';
import { startReceiver } from './demo/receiver.ts';
import { Choices } from './demo/resources.ts';
import { type LiveRun, StackPlayer } from './demo/runs.ts';
import { startDemoServer } from './demo/server.ts';
import { seedSettings } from './demo/settings.ts';
import { type Moment, spreadRefusals, spreadTimes } from './demo/times.ts';

// `npm run demo`: a server with 20 organizations and 1,000 stacks to explore, and pipelines that update one stack by turns. The first
// organization also has examples of everything else. The data stays in data/demo; the first start takes a minute or two to create it.

const { values } = parseArgs({
  options: {
    /** The minimum is 16. */
    stacks: { type: 'string', default: '1000' },
    port: { type: 'string', default: '9090' },
    data: { type: 'string', default: 'data/demo' },
    /** Ends after seeding. */
    once: { type: 'boolean', default: false },
  },
});

const home = path.resolve(values.data);
const tokensFile = path.join(home, 'tokens.json');
const list = organizations();
const first = list[0]?.name as string;
const port = Number(values.port);

async function readTokens(): Promise<Record<string, string>> {
  if (existsSync(tokensFile)) return JSON.parse(await readFile(tokensFile, 'utf8')) as Record<string, string>;
  const logins = [...new Set(list.flatMap(({ people }) => people.map(({ login }) => login)))];
  const tokens = Object.fromEntries(logins.map((login) => [login, `demo-${randomBytes(24).toString('hex')}`]));
  await mkdir(home, { recursive: true });
  await writeFile(tokensFile, JSON.stringify(tokens), { mode: 0o600 });
  return tokens;
}

type Played = Map<string, { readonly plan: StackPlan; readonly player: StackPlayer }>;

/** Eight stacks at a time. Returns the intended times of the updates, and the stacks of the first organization. */
async function seed(
  url: string,
  clientOf: (login: string) => RawClient,
  plans: readonly StackPlan[],
): Promise<{ readonly moments: Moment[]; readonly played: Played }> {
  const moments: Moment[] = [];
  const played: Played = new Map();
  let done = 0;
  const queue = new PQueue({ concurrency: 8 });
  const playAll = async (plan: StackPlan): Promise<void> => {
    const { program, runs, stack } = plan;
    const player = new StackPlayer(clientOf('ada'), url, program, stack);
    if (stack.organization === first) played.set(`${stack.project}/${stack.stack}`, { plan, player });
    await player.create();
    for (const { by, daysAgo, run } of runs) {
      const endedMs = Date.now() - daysAgo * 86_400_000;
      const beganMs = endedMs - run.seconds * 1000;
      moments.push({ updateId: await player.play(run, clientOf(by), beganMs), beganMs, endedMs });
    }
    if (++done % 100 === 0) console.log(`${done} of ${plans.length} stacks`);
  };
  await queue.addAll(plans.map((plan) => () => playAll(plan)));
  return { moments, played };
}

/** Each update takes a minute or two, until the process ends. Three pipelines take turns, so that two wait. */
async function keepBusy(
  url: string,
  clientOf: (login: string) => RawClient,
  { program, stack }: StackPlan,
): Promise<void> {
  const choices = new Choices(String(Date.now()));
  const player = new StackPlayer(clientOf('ada'), url, program, { ...stack, stack: `preview-${choices.hex(6)}` });
  await player.create();
  let edition = 0;
  const pipeline = async (by: string): Promise<never> => {
    for (;;) {
      edition++;
      const message = edition === 1 ? 'First rollout' : `Rollout ${edition}`;
      const environment = environmentOf(choices, stack, by);
      const failure = edition % 5 === 4 ? choices.fraction() : null;
      const run = { kind: 'update', edition, failure, message, environment, seconds: 90 } as const;
      // The wait may be over before the turn of the run has come.
      const live = await player.begin(run, clientOf(by)).catch(() => null);
      if (live) await follow(live);
      await sleep(2_000);
    }
  };
  await Promise.all(['ada', 'grace', 'alan'].map(pipeline));
}

/** Sends events at their times, and ends the run. */
async function follow(live: LiveRun): Promise<void> {
  let doneMs = 0;
  for (const { atMs, payload } of live.timeline) {
    if (atMs - doneMs > 200) {
      await sleep(atMs - doneMs);
      await live.renew();
      doneMs = atMs;
    }
    await live.send([{ atMs: Date.now(), payload }]);
  }
  await live.end();
}

const seededFile = path.join(home, 'seeded');
if (existsSync(tokensFile) && !existsSync(seededFile)) {
  console.error(`Seeding ${home} was interrupted, or has not ended. Remove that directory, and start again.`);
  process.exit(1);
}
// A fresh checkout has no build of the web UI yet.
await buildWeb();
const tokens = await readTokens();
const receiver = await startReceiver(port + 1);
const server = await startDemoServer({ home, port, organizations: list, tokens, receiver });
const clientOf = (login: string): RawClient => new RawClient(server.url, tokens[login] as string);
const callsOf = (login: string) => callsWith(server.url, tokens[login] as string);
const plans = planStacks(list, Number(values.stacks));
if (!existsSync(seededFile)) {
  console.log(`Seeding ${plans.length} stacks …`);
  const { moments, played } = await seed(server.url, clientOf, plans);
  const databaseUrl = (await readRunningUrl(path.join(server.dataDir, 'postgres'))) as string;
  await spreadTimes(databaseUrl, moments);
  await seedSettings(first, { calls: callsOf('ada'), client: clientOf('ada'), receiver });
  const latest: Moment[] = [];
  await seedIncidents({ organization: first, clientOf, callsOf, played, url: server.url, moments: latest });
  await spreadTimes(databaseUrl, latest);
  await spreadRefusals(databaseUrl);
  await server.setPassword('ada');
  await writeFile(seededFile, `${moments.length} updates\n`);
  console.log(`${moments.length} updates of ${plans.length} stacks`);
}
console.log(`\n  ${server.url}   sign in as ada, password "${server.password}"\n`);
if (values.once) await server.stop();
else await keepBusy(server.url, clientOf, plans[0] as StackPlan);
