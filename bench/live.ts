import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { mintToken } from '../src/shared/platform/crypto/secret-token.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { engineEvents } from './support/engine-events.ts';
import { DataFolder } from './support/footprint.ts';
import { cpuSecondsOf, loadAverage, median, memoryOf, percentile, printTable } from './support/measures.ts';
import { RawClient, type Update } from './support/raw-client.ts';

/**
 * The live stream: the cost of notifications, and of many open pages.
 * First, transactions of concurrent clients that notify of a change: not at all, by a message to the client (as triggers
 * do), and by NOTIFY, which lets all commits wait for each other. Then pages with a stream each: memory, connections to the
 * database, CPU while nothing happens, the time from a call to the notification, and whether batches of events become
 * slower.
 * Usage: npm run bench live -- [--tabs 1000] [--clients 16] [--seconds 2] [--rounds 5] [--idle-seconds 20]
 */
const { values } = parseArgs({
  options: {
    tabs: { type: 'string', default: '1000' },
    clients: { type: 'string', default: '16' },
    seconds: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '5' },
    'idle-seconds': { type: 'string', default: '20' },
  },
});
const tabs = Number(values.tabs);
const clients = Number(values.clients);
const roundMs = Number(values.seconds) * 1000;
const rounds = Number(values.rounds);
const idleSeconds = Number(values['idle-seconds']);
const organization = 'dev-org';
const stackCount = 20;
/** A user may have 100 streams. */
const tabsPerUser = 100;

await using server = await startOwnHoldfast({
  HOLDFAST_LOG_LEVEL: 'warn',
  // One address may have a quarter.
  HOLDFAST_MAX_CONNECTIONS: String(4 * (tabs + 100)),
});
const folder = new DataFolder(server.dataDir);
const client = new RawClient(server.url, server.token);
console.log(`load ${await loadAverage()}\n`);
await measureCommits();
await measureTabs();

/** Rounds of each way in turn, so that all see the same load. */
async function measureCommits(): Promise<void> {
  const ways = {
    'nothing is sent': 'null;',
    'a message to the client': `raise info 'live_bench' using detail = 'update.started ' || new.id;`,
    'NOTIFY in the transaction': `perform pg_notify('live_bench', 'update.started ' || new.id);`,
  };
  const connectionString = await folder.databaseUrl();
  const connections = await Promise.all(
    Array.from({ length: clients }, async () => {
      const connection = new pg.Client({ connectionString });
      await connection.connect();
      return connection;
    }),
  );
  const [admin] = connections as [pg.Client];
  const results = new Map<string, number[]>();
  for (const [index, [way, statement]] of Object.entries(ways).entries()) {
    const name = `live_bench_${index}`;
    await admin.query(`create table ${name} (id int primary key, n int not null)`);
    await admin.query(`insert into ${name} select n, 0 from generate_series(0, ${clients - 1}) n`);
    await admin.query(
      `create function ${name}() returns trigger language plpgsql as $$ begin ${statement} return null; end $$`,
    );
    await admin.query(`create trigger ${name} after update on ${name} for each row execute function ${name}()`);
    results.set(way, []);
  }
  for (let round = 0; round < rounds; round++)
    for (const [index, way] of Object.keys(ways).entries()) {
      const end = performance.now() + roundMs;
      const counts = await Promise.all(
        connections.map(async (connection, id) => {
          let count = 0;
          for (; performance.now() < end; count++) {
            await connection.query('begin');
            await connection.query(`update live_bench_${index} set n = n + 1 where id = $1`, [id]);
            await connection.query('commit');
          }
          return count;
        }),
      );
      results.get(way)?.push((counts.reduce((sum, count) => sum + count, 0) * 1000) / roundMs);
    }
  const base = median(results.get('nothing is sent') ?? []);
  printTable(
    [`${clients} clients, medians of ${rounds} rounds`, 'transactions per second', 'ratio'],
    [...results].map(([way, counts]) => [way, median(counts), median(counts) / base]),
  );
  for (const connection of connections) await connection.end();
}

interface Heard {
  readonly kind: string;
  readonly updateId: string | undefined;
  readonly at: number;
}

async function measureTabs(): Promise<void> {
  const connectionString = await folder.databaseUrl();
  const stacks: string[] = [];
  for (let at = 0; at < stackCount; at++) stacks.push(await client.createStack(organization, 'bench', `s${at}`));
  const tokens = await createTokens(Math.ceil(tabs / tabsPerUser), connectionString);
  const update = await client.startUpdate(stacks[0] as string);
  const quiet = await appendTimes(update, 0);
  const [memoryBefore, sessionsBefore] = [(await memoryOf(server.pid())).now, await sessions()];

  const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });
  const heard: Heard[] = [];
  const opening = Array.from({ length: tabs }, (_, at) => at);
  const openSome = async (): Promise<void> => {
    for (let at = opening.shift(); at !== undefined; at = opening.shift()) {
      const topics = [
        `organization:${organization}`,
        `stack:${organization}/bench/s${at % stackCount}`,
        ...(at % stackCount === 0 ? [`update:${update.id}`] : []),
      ];
      await openTab(agent, tokens[at % tokens.length] as string, topics, (message) => heard.push(message));
    }
  };
  await Promise.all(Array.from({ length: 20 }, openSome));
  await sleep(5_000);
  const cpuBefore = await cpuSecondsOf(server.pid());
  await sleep(idleSeconds * 1000);
  const idleCpu = ((await cpuSecondsOf(server.pid())) - cpuBefore) / idleSeconds;
  const [memoryOpen, sessionsOpen] = [(await memoryOf(server.pid())).now, await sessions()];

  const delays: number[] = [];
  const [heardBefore, busyBefore] = [heard.length, await cpuSecondsOf(server.pid())];
  for (let at = 1; at < stackCount; at++) {
    const begun = await client.startUpdate(stacks[at] as string);
    const notified = performance.now();
    const starts = (): Heard[] =>
      heard.filter(({ kind, updateId }) => kind === 'update.started' && updateId === begun.id);
    while (starts().length < Math.floor(tabs / stackCount) && performance.now() < notified + 10_000) await sleep(100);
    delays.push(...starts().map(({ at: heardAt }) => Math.max(0, heardAt - notified)));
  }
  await sleep(2_000);
  const cpuPerNotification = ((await cpuSecondsOf(server.pid())) - busyBefore) / (heard.length - heardBefore);
  const busy = await appendTimes(update, 1_000_000);
  const memoryLater = (await memoryOf(server.pid())).now;

  console.log('');
  printTable(
    [`${tabs} tabs of ${tokens.length} users, each with 2 or 3 topics`, ''],
    [
      ['memory of the server before, MB', memoryBefore],
      ['with the tabs, MB', memoryOpen],
      ['after many notifications, MB', memoryLater],
      ['memory per tab, kB', ((memoryOpen - memoryBefore) * 1024) / tabs],
      ['database connections before, with them', `${sessionsBefore}, ${sessionsOpen}`],
      ['CPU of the server while nothing happens, ms per second', idleCpu * 1000],
      ['notifications of starts received', String(delays.length)],
      ['from the response to the notification, ms: p50', percentile(delays, 0.5)],
      ['p99', percentile(delays, 0.99)],
      [
        'CPU of the server per notification sent to a tab, with the calls that caused them, µs',
        cpuPerNotification * 1e6,
      ],
      ['batch of 50 events, ms: without tabs', median(quiet)],
      ['with the tabs, 50 of which watch the update', median(busy)],
    ],
  );
  agent.destroy();
}

/** Returns the time of each of 100 batches, in ms. */
async function appendTimes(update: Update, from: number): Promise<number[]> {
  const events = engineEvents(2_000, update.id).slice(0, 50);
  const times: number[] = [];
  for (let at = 0; at < 100; at++) {
    const numbered = events.map((text, index) => ({ ...JSON.parse(text), sequence: from + at * 50 + index }));
    const began = performance.now();
    await client.call('POST', `${update.path}/events/batch`, { events: numbered }, { auth: update.lease });
    times.push(performance.now() - began);
  }
  return times;
}

async function sessions(): Promise<number> {
  const [row] = await folder.query(`select count(*)::int as count from pg_stat_activity where usename = 'holdfast'`);
  return row?.['count'] as number;
}

/** Tokens of as many users. */
async function createTokens(count: number, connectionString: string): Promise<string[]> {
  const connection = new pg.Client({ connectionString });
  await connection.connect();
  const tokens: string[] = [];
  for (let at = 0; at < count; at++) {
    const { hash, token } = mintToken('pul-');
    await connection.query(
      `with u as (insert into users (login) values ($1) returning id),
        m as (insert into memberships (organization_id, user_id, role) select o.id, u.id, 'member' from organizations o, u where o.name = $2)
       insert into api_tokens (user_id, token_hash) select id, $3 from u`,
      [`watcher${at}`, organization, hash],
    );
    tokens.push(token);
  }
  await connection.end();
  return tokens;
}

/** Waits for the first message. */
function openTab(agent: Agent, token: string, topics: readonly string[], hear: (heard: Heard) => void): Promise<void> {
  const path = `/trpc/live.subscribe?input=${encodeURIComponent(JSON.stringify({ topics }))}`;
  const { hostname, port } = new URL(server.url);
  const headers = { accept: 'text/event-stream', authorization: `token ${token}` };
  return new Promise((resolve, reject) => {
    const sent = request({ agent, hostname, port, path, headers }, (response) => {
      let text = '';
      response.on('error', () => {});
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
          const line = /^data: (\{"topic".*)$/m.exec(text.slice(0, end))?.[1];
          if (text.startsWith('event: serialized-error')) reject(new Error(text));
          text = text.slice(end).trimStart();
          if (line === undefined) continue;
          resolve();
          const { kind, updateId } = JSON.parse(line) as { kind: string; updateId?: string };
          hear({ kind, updateId, at: performance.now() });
        }
      });
    });
    sent.on('error', reject).end();
  });
}
