import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { preparePostgres } from '../../testkit/cluster-postgres.ts';
import { ClusterProcess } from '../../testkit/cluster-process.ts';
import { findFixedPorts } from '../../testkit/fixed-ports.ts';
import { type Clock, ClockShop } from './support/clocks.ts';

const alarmMs = 5_000;

let shop: ClockShop;
let clock: Clock | null;
let home: string;
let server: ClusterProcess;
let client: pg.Client;
beforeAll(async () => {
  shop = await ClockShop.open();
  clock = shop.ofProgram();
  home = await mkdtemp(path.join(tmpdir(), 'holdfast-clock-'));
  await chmod(home, 0o755);
  const [port] = await findFixedPorts(1);
  const spec = await preparePostgres(home, port as number, clock?.env);
  server = new ClusterProcess(spec, () => {});
  await server.start();
  client = new pg.Client({ connectionString: spec.url });
  client.on('error', () => {});
  await client.connect();
}, 600_000);
afterAll(async () => {
  await client?.end();
  await server?.kill();
  await shop?.[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

test('the clock of Postgres is set ahead and back while it runs', async () => {
  if (clock === null) return;
  for (const seconds of [3_600, -3_600, 0]) {
    clock.set(seconds);
    const { rows } = await client.query<{ now: Date }>('select clock_timestamp() as now');
    const ahead = ((rows[0]?.now.getTime() ?? 0) - Date.now()) / 1_000;
    expect(Math.abs(ahead - seconds)).toBeLessThan(30);
  }
});

// A library that allocates memory for each reading of the clock corrupts the heap here: Postgres reads it in the handler.
test('alarms that interrupt the allocation of memory do not crash a session', async () => {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  await client.query("set statement_timeout = '200s'");
  const until = performance.now() + alarmMs;
  const alarms = async (): Promise<void> => {
    for (let next = performance.now(); next < until; next += 0.2) {
      while (performance.now() < next) await nextTurn();
      process.kill(rows[0]?.pid as number, 'SIGALRM');
    }
  };
  const allocations = async (): Promise<void> => {
    while (performance.now() < until)
      await client.query("select count(repeat('x', (random() * 20000 + 9000)::int)) from generate_series(1, 20000)");
  };
  await Promise.all([alarms(), allocations()]);
  expect(server.log).not.toContain('was terminated by signal');
});
