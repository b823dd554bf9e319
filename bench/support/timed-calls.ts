import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from './measures.ts';
import { ResponseError } from './raw-client.ts';

/** The CLI waits for about as long before it sends a call again. */
const pausesMs = [250, 500, 1_000, 2_000, 4_000, 8_000];
const slowMs = 1_000;

export interface TimedCall {
  /** Under which its time is counted. */
  readonly kind: string;
  readonly method: string;
  readonly path: string;
  /** A buffer is gzip, an object is sent as JSON. */
  readonly body?: Buffer | object;
  /** Default: the token of the client. */
  readonly authorization?: string;
  /** Statuses of refusals that are no errors. */
  readonly expected?: readonly number[];
  /** The client leaves as soon as the request is sent. */
  readonly isAbandoned?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Sends calls over kept connections, sends those again that failed, and records how long each took and which failed. */
export class TimedCalls {
  readonly #url: URL;
  readonly #token: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  /** In ms, by kind. Only of those that succeeded. */
  readonly times = new Map<string, number[]>();
  /** By kind and status. */
  readonly refusals = new Map<string, number>();
  readonly errors = new Map<string, number>();

  constructor(url: string, token: string) {
    this.#url = new URL(url);
    this.#token = `token ${token}`;
  }

  /** Returns the answer, or the refusal if it is expected. Throws if the call has failed often or is refused. */
  async send(call: TimedCall): Promise<Answer> {
    for (let attempt = 0; ; attempt++) {
      const began = performance.now();
      const answer = await this.#once(call).catch((error: Error) => error);
      if (answer instanceof Error) {
        if (call.isAbandoned) return { status: 0, text: '' };
        count(this.errors, `${call.kind}: ${(answer as NodeJS.ErrnoException).code ?? answer.message}`);
      } else if (answer.status >= 200 && answer.status < 300) {
        const times = this.times.get(call.kind) ?? [];
        times.push(performance.now() - began);
        this.times.set(call.kind, times);
        return answer;
      } else if (call.expected?.includes(answer.status)) {
        count(this.refusals, `${call.kind}: ${answer.status}`);
        return answer;
      } else {
        count(this.errors, `${call.kind}: ${answer.status} ${answer.text.slice(0, 200)}`);
        const error = new ResponseError(answer.status, `${call.method} ${call.path}: ${answer.text}`);
        if (answer.status < 500 && answer.status !== 429) throw error;
      }
      const pauseMs = pausesMs[attempt];
      if (pauseMs === undefined) throw new Error(`${call.method} ${call.path} keeps failing`);
      await sleep(pauseMs);
    }
  }

  /** Kind, calls, p50, p99, longest, calls above a second. */
  rows(): (string | number)[][] {
    return [...this.times].sort().map(([kind, times]) => [
      ...[kind, String(times.length), percentile(times, 0.5), percentile(times, 0.99)],
      // Not Math.max, whose arguments are limited.
      times.reduce((longest, ms) => Math.max(longest, ms), 0),
      String(times.filter((ms) => ms > slowMs).length),
    ]);
  }

  get count(): number {
    return this.times.values().reduce((sum, times) => sum + times.length, 0);
  }

  close(): void {
    this.#agent.destroy();
  }

  #once({ authorization = this.#token, body, isAbandoned, method, path }: TimedCall): Promise<Answer> {
    const bytes = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    const headers = {
      accept: 'application/vnd.pulumi+9',
      authorization,
      ...(bytes === undefined ? {} : { 'content-type': 'application/json', 'content-length': bytes.length }),
      ...(Buffer.isBuffer(body) ? { 'content-encoding': 'gzip' } : {}),
    };
    const { hostname, port } = this.#url;
    return new Promise((resolve, reject) => {
      const sent = request({ agent: this.#agent, hostname, port, method, path, headers }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        response.on('error', reject).on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      });
      sent.on('error', reject).end(bytes, () => {
        if (isAbandoned) sent.destroy(new Error('the client has left'));
      });
    });
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
