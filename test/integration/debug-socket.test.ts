import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, jest, test } from '@jest/globals';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { debugFolder, startDebugSocket } from '../../src/shared/platform/debug/debug-socket.ts';
import { Lifecycle } from '../../src/shared/platform/lifecycle/lifecycle.ts';
import { childOfProcess, createLogger } from '../../src/shared/platform/logger/logger.ts';
import { assertOutput } from '../support/outputs.ts';
import { until } from '../support/until.ts';

const folders: string[] = [];
const lifecycles: Lifecycle[] = [];
afterEach(async () => {
  for (const each of lifecycles.splice(0)) await each.close();
  for (const each of folders.splice(0)) rmSync(each, { recursive: true });
});

function newFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'hf-debug-'));
  folders.push(folder);
  return folder;
}

async function start(dataDir: string, role = 'server') {
  const lines: string[] = [];
  const logger = createLogger({ level: 'info' }, { write: (line) => void lines.push(line) });
  const lifecycle = new Lifecycle(logger, { drainMs: 0, shutdownMs: 1_000 });
  lifecycles.push(lifecycle);
  const file = await startDebugSocket({ dataDir, role, logger, lifecycle });
  return { file, lines, lifecycle, logger };
}

/** A process with little more than the socket: the heap of this one has all tests before. */
async function startSmallProcess(dataDir: string): Promise<AsyncDisposable> {
  const shared = (file: string) => JSON.stringify(new URL(`../../src/shared/platform/${file}`, import.meta.url).href);
  const script = `
    const { startDebugSocket } = await import(${shared('debug/debug-socket.ts')});
    const { createLogger } = await import(${shared('logger/logger.ts')});
    const logger = createLogger({ level: 'silent' });
    const lifecycle = { onClose() {} };
    await startDebugSocket({ dataDir: process.argv[1], role: 'server', logger, lifecycle });
    setInterval(() => {}, 60_000);
    console.log('ready');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return {
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await once(child, 'close');
    },
  };
}

/** Runs `holdfast debug` in this process. */
async function debug(dataDir: string, ...words: string[]) {
  const printed = { log: '', error: '' };
  const spies = (['log', 'error'] as const).map((stream) =>
    jest.spyOn(console, stream).mockImplementation((text: unknown) => {
      printed[stream] += `${text}\n`;
    }),
  );
  try {
    const code = await runCommandLine(['debug', ...words], () => parseConfig({ HOLDFAST_DATA_DIR: dataDir }));
    return { code, stdout: printed.log, stderr: printed.error };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

test('only the user of the process can open the socket, and its folder is made only by a server', async () => {
  const dataDir = newFolder();
  expect((await start(dataDir, 'worker')).file).toBeNull();
  expect(existsSync(debugFolder(dataDir))).toBe(false);
  const { file, lifecycle } = await start(dataDir);
  expect([statSync(file as string).mode & 0o777, statSync(debugFolder(dataDir)).mode & 0o777]).toEqual([0o600, 0o700]);
  expect(readdirSync(debugFolder(dataDir))).toEqual([`server-${process.pid}.sock`]);
  expect((await start(dataDir, 'worker')).file).toBe(path.join(debugFolder(dataDir), `worker-${process.pid}.sock`));
  await lifecycle.close();
  expect(readdirSync(debugFolder(dataDir))).toEqual([`worker-${process.pid}.sock`]);
});

test('a process without a location for the socket runs without it', async () => {
  expect((await start(path.join(newFolder(), 'x'.repeat(100)))).file).toBeNull();
  // With stores elsewhere, it has no data directory.
  const absent = path.join(newFolder(), 'data');
  expect([(await start(absent)).file, existsSync(absent)]).toEqual([null, false]);
  const dataDir = newFolder();
  writeFileSync(debugFolder(dataDir), '');
  const blocked = await start(dataDir);
  expect([blocked.file, blocked.lines.join('')]).toEqual([null, expect.stringContaining('no debug socket')]);
});

test('the log level changes for a time, also in the logger of a part', async () => {
  const dataDir = newFolder();
  const { lines, logger } = await start(dataDir);
  const part = childOfProcess(logger, { queue: 'q' });
  part.debug('before');
  const run = await debug(dataDir, 'log-level', 'debug', '--for', '3s');
  part.debug('during');
  logger.debug('during, too');
  expect([run.code, run.stdout]).toEqual([0, `server-${process.pid} logs debug for 3 s.\n`]);
  const { stdout } = await debug(dataDir, 'list', '--json');
  assertOutput(['debug', 'list'], stdout);
  await until(
    async () => lines.join('').includes('debug: log level restored'),
    'the level is that of the settings again',
  );
  part.debug('after');
  expect([logger.level, part.level]).toEqual(['info', 'info']);
  const messages = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
  expect(messages).toEqual(['debug: log level changed', 'during', 'during, too', 'debug: log level restored']);
});

test('a CPU profile and a heap snapshot are files that only their owner can read, and overwrite none', async () => {
  const dataDir = newFolder();
  await using _process = await startSmallProcess(dataDir);
  const [cpu, heap] = [path.join(dataDir, 'a.cpuprofile'), path.join(dataDir, 'a.heapsnapshot')];
  expect(await debug(dataDir, 'cpu-profile', '--seconds', '1', '-o', cpu)).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(readFileSync(cpu, 'utf8'))).toMatchObject({ nodes: expect.any(Array), samples: expect.any(Array) });
  expect(await debug(dataDir, 'heap-snapshot', '-o', heap)).toMatchObject({ code: 0, stderr: '' });
  expect(readFileSync(heap).subarray(0, 12).toString()).toBe('{"snapshot":');
  expect([cpu, heap].map((file) => statSync(file).mode & 0o777)).toEqual([0o600, 0o600]);
  const again = await debug(dataDir, 'cpu-profile', '--seconds', '1', '-o', cpu);
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('cannot be written: EEXIST')]);
});

test('a socket that a killed process has left is not listed, and several processes must be named', async () => {
  const dataDir = newFolder();
  expect(await debug(dataDir, 'log-level', 'debug')).toMatchObject({
    ...{ code: 1, stderr: `holdfast: no process listens in ${debugFolder(dataDir)}\n` },
  });
  await start(dataDir);
  const left = createServer();
  await new Promise<void>((resolve) => left.listen(path.join(debugFolder(dataDir), 'x'), resolve));
  // Its end would delete the file of its own name.
  renameSync(path.join(debugFolder(dataDir), 'x'), path.join(debugFolder(dataDir), 'x.sock'));
  await new Promise((resolve) => left.close(resolve));
  await start(dataDir, 'worker');
  const output = path.join(dataDir, 'b.cpuprofile');
  const several = await debug(dataDir, 'cpu-profile', '-o', output);
  expect([several.code, several.stderr]).toEqual([
    1,
    `holdfast: name one with --process: server-${process.pid}, worker-${process.pid}\n`,
  ]);
  expect(existsSync(output)).toBe(false);
  const named = await debug(dataDir, 'log-level', 'warn', '--process', `worker-${process.pid}`);
  expect(named.stdout).toBe(`worker-${process.pid} logs warn for 600 s.\n`);
  expect(await debug(dataDir, 'list')).toMatchObject({
    stdout: expect.stringMatching(
      /^server-\d+ {2}up \d+ s {2}log level info\nworker-\d+ {2}up \d+ s {2}log level warn\n$/,
    ),
  });
});

test('processes that do not answer are named, and a refused call leaves no file', async () => {
  const dataDir = newFolder();
  await start(dataDir);
  // Reads, so that it sees the end of a connection.
  const silent = createServer((socket) => socket.resume());
  await new Promise<void>((resolve) => silent.listen(path.join(debugFolder(dataDir), 'api-1.sock'), resolve));
  try {
    expect(await debug(dataDir, 'list')).toMatchObject({
      ...{ code: 0, stdout: expect.stringMatching(/^server-\d+ {2}up .*\napi-1 {2}does not answer\n$/) },
    });
    const { stdout } = await debug(dataDir, 'list', '--json');
    assertOutput(['debug', 'list'], stdout);
    expect(JSON.parse(stdout)).toMatchObject({ unanswered: ['api-1'] });
    expect(await debug(dataDir, 'log-level', 'warn')).toEqual({
      code: 1,
      stdout: `server-${process.pid} logs warn for 600 s.\n`,
      stderr: 'holdfast: no answer from api-1\n',
    });
    const output = path.join(dataDir, 'c.cpuprofile');
    const name = `server-${process.pid}`;
    const first = debug(dataDir, 'cpu-profile', '--seconds', '3', '--process', name, '-o', `${output}1`);
    await until(async () => existsSync(`${output}1`), 'a profile is being taken');
    const second = await debug(dataDir, 'cpu-profile', '--process', name, '-o', output);
    expect([second.code, existsSync(output)]).toEqual([1, false]);
    await first;
  } finally {
    await new Promise((resolve) => silent.close(resolve));
  }
});

test.each(['0s', '25h', 'soon', '', '5d'])('--for %j is refused', async (time) => {
  expect(await debug(newFolder(), 'log-level', 'debug', '--for', time)).toMatchObject({ code: 2 });
});
