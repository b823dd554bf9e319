import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import { type CliLogin, findCliLogin } from '../../shared/platform/config/cli-login.ts';
import { holdfastVersion } from '../../shared/platform/config/config.ts';
import { OperatorError } from '../../shared/platform/errors/errors.ts';
import { unreachableReason } from '../../shared/platform/kms/kms-requests.ts';
import { exitCodeOf, onEndSignal } from '../../shared/platform/lifecycle/end-signals.ts';
import { tlsFaultOf } from '../../shared/platform/tls/certificates.ts';
import { toCount } from '../option-values.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import { drawInstallation, type Installation } from './installation-view.ts';

class TopError extends OperatorError {
  override readonly name = 'TopError';
}

interface TopOptions {
  readonly url?: string;
  readonly token?: string;
  readonly every: number;
  readonly once?: true;
  readonly json?: true;
}

const timeoutMs = 10_000;
const maxUpdates = 100;
const esc = '\u001b';
/** The terminal's alternate screen, so that the main screen comes back unchanged. */
const openScreen = `${esc}[?1049h${esc}[?25l`;
const closeScreen = `${esc}[?25h${esc}[?1049l`;
const fromTopLeft = `${esc}[H${esc}[J`;
const keysThatEnd = new Set(['q', 'Q', '\u0003']);

export function addTopCommand(command: Command): void {
  command
    .option('--url <url>', 'server; by default HOLDFAST_URL, PULUMI_BACKEND_URL, or the login of the Pulumi CLI')
    .option(
      '--token <token>',
      "a site admin's API token; by default PULUMI_ACCESS_TOKEN, or the login of the Pulumi CLI",
    )
    .option('--every <seconds>', 'time between two views', toCount, 2)
    .option('--once', 'print one view, as without a terminal')
    .option(...jsonOption)
    .action(async ({ every, json, once, ...server }: TopOptions) => {
      const login = findCliLogin(server);
      const { stdout } = process;
      if (json || once || !stdout.isTTY) {
        const installation = await readInstallation(login);
        const size = { columns: stdout.columns ?? Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY };
        const text = drawInstallation(installation, { at: new Date(), origin: login.origin, ...size });
        return printResult('top', installation, { json, text });
      }
      await watch(login, every * 1000);
    });
}

/** Redraws the view until a key ends it. Failures are shown, and the read is repeated. */
async function watch(login: CliLogin, everyMs: number): Promise<void> {
  const ended = new AbortController();
  const { stdin, stdout } = process;
  const end = (): void => ended.abort();
  const onKeys = (keys: Buffer): void => {
    if ([...keys.toString()].some((key) => keysThatEnd.has(key))) end();
  };
  if (stdin.isTTY) stdin.setRawMode(true).on('data', onKeys);
  const closeView = (): void => {
    stdout.write(closeScreen);
    if (stdin.isTTY) stdin.off('data', onKeys).setRawMode(false).pause();
  };
  const forget = onEndSignal(end, {
    second: (signal) => {
      closeView();
      process.exit(exitCodeOf(signal));
    },
  });
  stdout.write(openScreen);
  try {
    // With a wrong token or address, the command ends with the message.
    let installation = await readInstallation(login, ended.signal);
    let problem = '';
    while (!ended.signal.aborted) {
      const size = { columns: stdout.columns, rows: stdout.rows - 2 };
      const view = drawInstallation(installation, { at: new Date(), origin: login.origin, ...size });
      stdout.write(`${fromTopLeft}${view}\n\n${problem || 'Press q to quit'}`);
      await wait(everyMs, undefined, { signal: ended.signal }).catch(() => {});
      try {
        if (!ended.signal.aborted) installation = await readInstallation(login, ended.signal);
        problem = '';
      } catch (error) {
        if (!(error instanceof TopError)) throw error;
        problem = error.message;
      }
    }
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    closeView();
    forget();
  }
}

/** Calls the procedures that the operator's pages use. Throws TopError. */
async function readInstallation(login: CliLogin, signal?: AbortSignal): Promise<Installation> {
  const call = (name: string, input?: object) => callProcedure(login, name, input, signal);
  const [health, queues, locks, slow] = await Promise.all([
    call('operator.health'),
    call('operator.queues'),
    call('operator.locks', { limit: maxUpdates }),
    call('operator.slow'),
  ]);
  return {
    parts: {
      database: partOf(health.database),
      blobs: partOf(health.blobs),
      queue: health.queue && partOf(health.queue),
    },
    processes: health.processes.map(
      ({ cpu, host, isLate, loopMs, pid, role, rssBytes, version }: Installation['processes'][number]) => ({
        ...{ role, host, pid, version, isLate, cpu, rssBytes, loopMs },
      }),
    ),
    queues: queues.queues.map(
      ({ active, failed, name, oldestWaitingMs, waiting, workers }: Installation['queues'][number]) => ({
        ...{ name, active, waiting, failed, oldestWaitingMs, workers },
      }),
    ),
    updates: locks.items.map(
      ({
        by,
        isExpired,
        kind,
        organization,
        project,
        since,
        stack,
        updateId,
        waiting,
      }: Installation['updates'][number]) => ({
        ...{ updateId, organization, project, stack, kind, by, since, isExpired, waiting },
      }),
    ),
    hasMoreUpdates: locks.next !== null,
    slow: slow.items.map(
      ({ endedAt, kind, lastedMs, organization, project, stack, status, updateId }: Installation['slow'][number]) => ({
        ...{ updateId, organization, project, stack, kind, status, lastedMs, endedAt },
      }),
    ),
  };
}

function partOf({ isUp, latencyMs }: Installation['parts']['database']): Installation['parts']['database'] {
  return { isUp, latencyMs };
}

/** A redirect would send the token elsewhere. */
async function callProcedure(
  { origin, token }: CliLogin,
  name: string,
  input: object | undefined,
  signal: AbortSignal | undefined,
  // biome-ignore lint/suspicious/noExplicitAny: the types of the server's procedures belong to the API.
): Promise<any> {
  const query = input ? `?input=${encodeURIComponent(JSON.stringify(input))}` : '';
  const limits = [AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])];
  let response: Response;
  let text: string;
  try {
    response = await fetch(`${origin}/trpc/${name}${query}`, {
      headers: { authorization: `token ${token}`, 'user-agent': `holdfast/${holdfastVersion}` },
      ...{ redirect: 'manual', signal: AbortSignal.any(limits) },
    });
    text = await response.text();
  } catch (cause) {
    throw new TopError(`${origin}: ${tlsFaultOf(cause) ?? unreachableReason(cause)}`, { cause });
  }
  if (response.status === 401) throw new TopError(`${origin} does not accept the token`);
  const answer = parse(text);
  if (response.ok && answer?.result) return answer.result.data;
  if (response.status === 403 || response.status === 404)
    throw new TopError('Only site admins see the whole installation: use the token of one, without scopes');
  throw new TopError(answer?.error?.message ?? `${origin} answers with status ${response.status}`);
}

interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly result?: { readonly data: any };
  readonly error?: { readonly message?: string };
}

function parse(text: string): Answer | null {
  try {
    return JSON.parse(text) as Answer;
  } catch {
    // A page of a proxy; its status is enough.
    return null;
  }
}
