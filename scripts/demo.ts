import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import PQueue from 'p-queue';
import { RawClient } from '../bench/support/raw-client.ts';
import { readRunningUrl } from '../src/shared/platform/db/embedded-postgres.ts';
import { environmentOf, organizations, planStacks, type StackPlan } from './demo/plan.ts';
import { Choices } from './demo/resources.ts';
import { StackPlayer } from './demo/runs.ts';
import { startDemoServer } from './demo/server.ts';
import { type Moment, spreadTimes } from './demo/times.ts';

// `npm run demo`: a server with 20 organizations and 1,000 stacks to look at, and an update that never ceases. The data stay in
// data/demo; without them, seeding takes a minute or two.

const { values } = parseArgs({
  options: {
    stacks: { type: 'string', default: '1000' },
    port: { type: 'string', default: '9090' },
    data: { type: 'string', default: 'data/demo' },
    /** End after seeding. */
    once: { type: 'boolean', default: false },
  },
});

const home = path.resolve(values.data);
const tokensFile = path.join(home, 'tokens.json');
const list = organizations();

async function readTokens(): Promise<Record<string, string>> {
  if (existsSync(tokensFile)) return JSON.parse(await readFile(tokensFile, 'utf8')) as Record<string, string>;
  const logins = [...new Set(list.flatMap(({ people }) => people.map(({ login }) => login)))];
  const tokens = Object.fromEntries(logins.map((login) => [login, `demo-${randomBytes(24).toString('hex')}`]));
  await mkdir(home, { recursive: true });
  await writeFile(tokensFile, JSON.stringify(tokens), { mode: 0o600 });
  return tokens;
}

/** Plays the histories of all stacks, eight stacks at a time. */
async function seed(
  url: string,
  clientOf: (login: string) => RawClient,
  plans: readonly StackPlan[],
): Promise<Moment[]> {
  const moments: Moment[] = [];
  let done = 0;
  const queue = new PQueue({ concurrency: 8 });
  const playAll = async ({ program, runs, stack }: StackPlan): Promise<void> => {
    const player = new StackPlayer(clientOf('ada'), url, program, stack);
    await player.create();
    for (const { by, daysAgo, run } of runs) {
      const endedMs = Date.now() - daysAgo * 86_400_000;
      const beganMs = endedMs - run.seconds * 1000;
      moments.push({ updateId: await player.play(run, clientOf(by), beganMs), beganMs, endedMs });
    }
    if (++done % 100 === 0) console.log(`${done} of ${plans.length} stacks`);
  };
  await queue.addAll(plans.map((plan) => () => playAll(plan)));
  return moments;
}

/** Runs updates of one stack, one after the other and each for a minute or two, until the process ends. */
async function keepBusy(
  url: string,
  clientOf: (login: string) => RawClient,
  { program, stack }: StackPlan,
): Promise<never> {
  const choices = new Choices(String(Date.now()));
  const player = new StackPlayer(clientOf('ada'), url, program, { ...stack, stack: `preview-${choices.hex(6)}` });
  await player.create();
  for (let edition = 1; ; edition++) {
    const by = choices.of(['ada', 'grace', 'alan']);
    const message = edition === 1 ? 'First rollout' : `Rollout ${edition}`;
    const environment = environmentOf(choices, stack, by);
    const failure = edition % 5 === 4 ? 'timed out waiting for the resource to become ready' : null;
    const run = { kind: 'update', edition, failure, message, environment, seconds: 90 } as const;
    const live = await player.begin(run, clientOf(by));
    for (const group of live.groups) {
      // The two halves of a step, with the time that the provider takes in between.
      await live.send([group.slice(0, 1)]);
      await sleep(choices.between(200, 3_000));
      if (group.length > 1) await live.send([group.slice(1)]);
      await live.renew();
    }
    await live.end();
    await sleep(5_000);
  }
}

const tokens = await readTokens();
const server = await startDemoServer({ home, port: Number(values.port), organizations: list, tokens });
const clientOf = (login: string): RawClient => new RawClient(server.url, tokens[login] as string);
const plans = planStacks(list, Number(values.stacks));
const seededFile = path.join(home, 'seeded');
if (!existsSync(seededFile)) {
  console.log(`Seeding ${plans.length} stacks …`);
  const moments = await seed(server.url, clientOf, plans);
  await spreadTimes((await readRunningUrl(path.join(server.dataDir, 'postgres'))) as string, moments);
  await server.setPassword('ada');
  await writeFile(seededFile, `${moments.length} updates\n`);
  console.log(`${moments.length} updates of ${plans.length} stacks`);
}
console.log(`\n  ${server.url}   sign in as ada, password "${server.password}"\n`);
if (values.once) await server.stop();
else await keepBusy(server.url, clientOf, plans[0] as StackPlan);
