import { Agent, type IncomingHttpHeaders, request } from 'node:http';

/** Source address of attackers, different from the innocent tenant's. */
export const strangeAddress = '127.0.0.2';

export interface Call {
  readonly method?: string;
  readonly path: string;
  readonly auth?: string;
  readonly body?: Buffer | object;
  /** The body is gzip. */
  readonly gzip?: boolean;
  readonly timeoutMs?: number;
}

/** `status` is null when the connection ended without a response, or the call took too long. */
export interface Answer {
  readonly status: number | null;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: number;
  /** The first KiB. */
  readonly text: string;
}

const keptChars = 1024;

/** Calls a server over its own connections and from its own address. Nothing is repeated. */
export class Caller {
  readonly #url: string;
  readonly #agent: Agent;

  constructor(url: string, { localAddress, connections = 16 }: { localAddress?: string; connections?: number } = {}) {
    this.#url = url;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections, ...(localAddress ? { localAddress } : {}) });
  }

  call({ method = 'GET', path, auth, body, gzip, timeoutMs = 60_000 }: Call): Promise<Answer> {
    const payload = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    const { promise, resolve } = Promise.withResolvers<Answer>();
    const lost: Answer = { status: null, headers: {}, bytes: 0, text: '' };
    const outgoing = request(`${this.#url}${path}`, {
      agent: this.#agent,
      method,
      timeout: timeoutMs,
      headers: {
        accept: 'application/vnd.pulumi+9',
        ...(auth === undefined ? {} : { authorization: auth }),
        ...(payload === undefined ? {} : { 'content-type': 'application/json', 'content-length': payload.length }),
        ...(gzip ? { 'content-encoding': 'gzip' } : {}),
      },
    });
    outgoing.on('timeout', () => outgoing.destroy());
    outgoing.on('error', () => resolve(lost));
    outgoing.on('response', (response) => {
      let bytes = 0;
      let text = '';
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (text.length < keptChars) text += chunk.toString('utf8', 0, keptChars);
      });
      response.on('end', () =>
        resolve({ status: response.statusCode as number, headers: response.headers, bytes, text }),
      );
      response.on('error', () => resolve(lost));
    });
    outgoing.end(payload);
    return promise;
  }

  /** The JSON of a response that must be a 2xx of up to 1 KiB. */
  async json<T>(call: Call): Promise<T> {
    const { status, text } = await this.call(call);
    if (status === null || status > 299) throw new Error(`${call.method ?? 'GET'} ${call.path}: ${status} ${text}`);
    return (text === '' ? {} : JSON.parse(text)) as T;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Number of responses by status; `none` is no response. */
export class Statuses {
  readonly #counts = new Map<string, number>();

  add({ status }: Pick<Answer, 'status'>): void {
    const name = String(status ?? 'none');
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  addAll(others: Statuses): void {
    for (const [name, count] of others.#counts) this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
  }

  count(status: number | 'none'): number {
    return this.#counts.get(String(status)) ?? 0;
  }

  toString(): string {
    return [...this.#counts].map(([name, count]) => `${name} × ${count}`).join(', ');
  }
}
