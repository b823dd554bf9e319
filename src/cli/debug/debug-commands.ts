import { createWriteStream } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { Argument, type Command, InvalidArgumentError } from 'commander';
import {
  type DebugStatus,
  debugFolder,
  maxLevelSeconds,
  maxProfileSeconds,
} from '../../shared/platform/debug/debug-socket.ts';
import { OperatorError } from '../../shared/platform/errors/errors.ts';
import { logLevels } from '../../shared/platform/logger/logger.ts';
import type { CommandRun } from '../command-run.ts';
import { jsonOption, printResult } from '../output/outputs.ts';

class DebugError extends OperatorError {
  override readonly name = 'DebugError';
}

interface Target {
  readonly process?: string;
}

interface Found {
  readonly name: string;
  readonly socket: string;
  /** Null: the process does not answer. */
  readonly status: DebugStatus | null;
}

interface Call {
  readonly body: object | null;
  /** How long the process may be silent. */
  readonly waitSeconds: number;
}

const answerSeconds = 2;
/** Time to write the profile, or to begin a heap snapshot of some GB, in seconds. */
const profileSeconds = 15;
const snapshotSeconds = 600;

const processOption = ['--process <name>', 'as `holdfast debug list` prints it'] as const;

export function addDebugCommands(debug: Command, run: CommandRun): void {
  const folder = (): string => debugFolder(run.loadConfig().dataDir);
  debug.addHelpText(
    'after',
    `
The commands reach processes on this machine, as their system user, by sockets in the folder "run" of HOLDFAST_DATA_DIR. A server
makes the folder; API replicas and workers listen if it is there when they start.`,
  );
  debug
    .command('list')
    .description('list the processes with their log levels')
    .option(...jsonOption)
    .action(async ({ json }: { readonly json?: true }) => {
      const found = await findProcesses(folder());
      const processes = found.flatMap(({ name, status }) => (status === null ? [] : [{ name, ...status }]));
      const unanswered = found.flatMap(({ name, status }) => (status === null ? [name] : []));
      const lines = processes.map((each) => `${each.name}  up ${each.upSeconds} s  log level ${each.logLevel}`);
      lines.push(...unanswered.map((name) => `${name}  does not answer`));
      printResult('debug list', { processes, unanswered }, { json, text: lines.join('\n') });
    });
  debug
    .command('log-level')
    .description('change the log level of all processes, or of one, for a time')
    .addArgument(new Argument('<level>').choices(logLevels))
    .option('--for <time>', 'such as 90s, 10m or 2h', toSeconds, 600)
    .option(...processOption)
    .action(async (level: string, given: Target & { readonly for: number }) => {
      const unanswered: string[] = [];
      for (const { name, socket, status } of await select(folder(), given)) {
        if (status === null) {
          unanswered.push(name);
          continue;
        }
        await call(socket, 'POST /log-level', { body: { level, seconds: given.for }, waitSeconds: answerSeconds });
        console.log(`${name} logs ${level} for ${given.for} s.`);
      }
      if (unanswered.length > 0) throw new DebugError(`no answer from ${unanswered.join(', ')}`);
    });
  debug
    .command('cpu-profile')
    .description('write a CPU profile of a process, for the developer tools of Chromium')
    .requiredOption('-o, --output <file>', 'new file, such as api.cpuprofile (required)')
    .option('--seconds <count>', 'how long', toProfileSeconds, 10)
    .option(...processOption)
    .action(async ({ output, seconds, ...target }: Target & { readonly output: string; readonly seconds: number }) =>
      write(await selectOne(folder(), target), 'POST /cpu-profile', {
        output,
        body: { seconds },
        waitSeconds: seconds + profileSeconds,
      }),
    );
  debug
    .command('heap-snapshot')
    .description('write a heap snapshot, which pauses the process; the file contains secrets')
    .requiredOption('-o, --output <file>', 'new file, such as api.heapsnapshot (required)')
    .option(...processOption)
    .action(async ({ output, ...target }: Target & { readonly output: string }) =>
      write(await selectOne(folder(), target), 'POST /heap-snapshot', {
        output,
        body: null,
        waitSeconds: snapshotSeconds,
      }),
    );
}

/** Processes that listen, or one of them. Sockets of killed processes stay behind, so all are queried at once. */
async function findProcesses(folder: string, only?: string): Promise<Found[]> {
  const names = await readdir(folder).catch(() => []);
  const sockets = names.filter((each) => each.endsWith('.sock') && (only === undefined || each === `${only}.sock`));
  const found = await Promise.all(
    sockets.sort().map(async (file): Promise<Found[]> => {
      const socket = path.join(folder, file);
      const name = file.slice(0, -'.sock'.length);
      try {
        return [{ name, socket, status: await ask(socket) }];
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        return code === 'ECONNREFUSED' || code === 'ENOENT' ? [] : [{ name, socket, status: null }];
      }
    }),
  );
  return found.flat();
}

async function select(folder: string, { process: name }: Target): Promise<Found[]> {
  const found = await findProcesses(folder, name);
  if (found.length === 0)
    throw new DebugError(
      name === undefined ? `no process listens in ${folder}` : `no process ${name} listens in ${folder}`,
    );
  return found;
}

async function selectOne(folder: string, target: Target): Promise<Found> {
  const [first, ...others] = await select(folder, target);
  if (first === undefined || others.length > 0)
    throw new DebugError(`name one with --process: ${[first, ...others].map((each) => each?.name).join(', ')}`);
  return first;
}

async function ask(socket: string): Promise<DebugStatus> {
  const answer = await call(socket, 'GET /', { body: null, waitSeconds: answerSeconds });
  return JSON.parse(await text(answer)) as DebugStatus;
}

/** Only the owner may read the file, because a heap contains secrets. */
async function write(
  { name, socket }: Found,
  what: string,
  { output, ...request }: Call & { readonly output: string },
): Promise<void> {
  // Opened first, so that an unusable name is refused at once.
  const file = createWriteStream(output, { flags: 'wx', mode: 0o600 });
  await new Promise<void>((resolve, reject) => {
    file.once('open', () => resolve());
    file.once('error', (error) => reject(new DebugError(`${output} cannot be written: ${error.message}`)));
  });
  try {
    await pipeline(await call(socket, what, request), file);
  } catch (error) {
    file.destroy();
    await rm(output, { force: true });
    throw error;
  }
  console.log(`${output} is of ${name}.`);
}

async function call(socketPath: string, what: string, { body, waitSeconds }: Call): Promise<IncomingMessage> {
  const [method, url] = what.split(' ');
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request({ socketPath, method, path: url, timeout: waitSeconds * 1_000 }, resolve);
    sent.once('error', reject);
    sent.once('timeout', () => sent.destroy(new DebugError(`no answer from ${path.basename(socketPath, '.sock')}`)));
    sent.end(body === null ? '' : JSON.stringify(body));
  });
  if (response.statusCode !== 200) throw new DebugError(await text(response));
  return response;
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

function toSeconds(given: string): number {
  const [, count = '', unit = 's'] = /^(\d{1,6})([smh]?)$/.exec(given) ?? [];
  const seconds = Number(count) * (unitSeconds[unit || 's'] as number);
  if (count === '' || seconds < 1 || seconds > maxLevelSeconds)
    throw new InvalidArgumentError('Expected a duration of up to 24 hours, for example 90s, 10m or 2h.');
  return seconds;
}

function toProfileSeconds(given: string): number {
  const seconds = /^\d{1,3}$/.test(given) ? Number(given) : 0;
  if (seconds < 1 || seconds > maxProfileSeconds)
    throw new InvalidArgumentError(`It must be a number of seconds from 1 to ${maxProfileSeconds}.`);
  return seconds;
}
