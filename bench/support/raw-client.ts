import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

/** The server responded with an error status. */
export class ResponseError extends Error {
  override readonly name = 'ResponseError';
  readonly status: number;
  constructor(status: number, text: string) {
    super(`${status}: ${text.slice(0, 300)}`);
    this.status = status;
  }
}

export interface Update {
  readonly id: string;
  readonly path: string;
  readonly lease: string;
  readonly version: number;
}

interface CallOptions {
  readonly auth?: string;
  /** `done`: the body is already compressed. */
  readonly gzip?: boolean | 'done';
}

/** Whether the CLI retries after this status. It also retries after network errors. */
const retryable = (status: number): boolean => status >= 500 || status === 429;
const pausesMs = [250, 500, 1_000, 2_000, 4_000, 8_000];

/** Sends requests as the CLI does, including retries, without the CLI's own cost. */
export class RawClient {
  readonly #url: string;
  readonly #token: string;
  readonly #timeoutMs: number | null;
  /** Number of retries. */
  retries = 0;

  /** Calls that take longer than `timeoutMs` are aborted. */
  constructor(url: string, token: string, options: { timeoutMs?: number } = {}) {
    this.#url = url;
    this.#token = token;
    this.#timeoutMs = options.timeoutMs ?? null;
  }

  /**
   * Sends one request without retries. Returns the body of a 2xx response. Throws ResponseError, or the error of fetch.
   */
  async once(method: string, path: string, body?: Buffer | object, options: CallOptions = {}): Promise<string> {
    const bytes = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    const payload = bytes && options.gzip === true ? gzipSync(bytes, { level: 1 }) : bytes;
    const response = await fetch(`${this.#url}${path}`, {
      method,
      headers: {
        accept: 'application/vnd.pulumi+9',
        authorization: options.auth ?? `token ${this.#token}`,
        'content-type': 'application/json',
        ...(options.gzip ? { 'content-encoding': 'gzip' } : {}),
      },
      ...(payload === undefined ? {} : { body: payload }),
      ...(this.#timeoutMs === null ? {} : { signal: AbortSignal.timeout(this.#timeoutMs) }),
    });
    const text = await response.text();
    if (!response.ok) throw new ResponseError(response.status, text);
    return text;
  }

  /** As `once`, with retries as the CLI does for idempotent calls. */
  async call(method: string, path: string, body?: Buffer | object, options: CallOptions = {}): Promise<string> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.once(method, path, body, options);
      } catch (error) {
        const final = error instanceof ResponseError && !retryable(error.status);
        if (final || attempt === pausesMs.length) throw error;
        this.retries++;
        await sleep(pausesMs[attempt]);
      }
    }
  }

  async createStack(organization: string, project: string, stack: string): Promise<string> {
    await this.once('POST', `/api/stacks/${organization}/${project}`, { stackName: stack });
    return `/api/stacks/${organization}/${project}/${stack}`;
  }

  async startUpdate(stackPath: string, options: { journal?: boolean } = {}): Promise<Update> {
    const { updateID } = JSON.parse(await this.once('POST', `${stackPath}/update`, {})) as { updateID: string };
    const path = `${stackPath}/update/${updateID}`;
    const started = JSON.parse(await this.once('POST', path, options.journal ? { journalVersion: 1 } : {})) as {
      token: string;
      version: number;
    };
    return { id: updateID, path, lease: `update-token ${started.token}`, version: started.version };
  }

  checkpoint(update: Update, document: Buffer): Promise<string> {
    return this.call('PATCH', `${update.path}/checkpoint`, document, { auth: update.lease, gzip: true });
  }

  verbatim(update: Update, document: Buffer, sequenceNumber: number): Promise<string> {
    return this.verbatimGzipped(update, gzipSync(verbatimBody(document, sequenceNumber), { level: 1 }));
  }

  /** As `verbatim`, with a compressed body. */
  verbatimGzipped(update: Update, body: Buffer): Promise<string> {
    return this.call('PATCH', `${update.path}/checkpointverbatim`, body, { auth: update.lease, gzip: 'done' });
  }

  complete(update: Update, status = 'succeeded'): Promise<string> {
    return this.call('POST', `${update.path}/complete`, { status }, { auth: update.lease });
  }

  export(stackPath: string): Promise<string> {
    return this.call('GET', `${stackPath}/export`);
  }

  /** SHA-256, without buffering the document. */
  async exportDigest(stackPath: string): Promise<string> {
    const response = await fetch(`${this.#url}${stackPath}/export`, {
      headers: { accept: 'application/vnd.pulumi+9', authorization: `token ${this.#token}` },
    });
    if (!response.ok || !response.body) throw new ResponseError(response.status, await response.text());
    const hash = createHash('sha256');
    for await (const chunk of response.body) hash.update(chunk);
    return hash.digest('hex');
  }
}

/** Returns the body of a verbatim checkpoint. */
export function verbatimBody(document: Buffer, sequenceNumber: number): Buffer {
  const [head, tail] = ['{"version":3,"untypedDeployment":', `,"sequenceNumber":${sequenceNumber}}`];
  return Buffer.concat([Buffer.from(head), document, Buffer.from(tail)]);
}

const letters = Buffer.from('0123456789abcdefghijklmnopqrstuvwxyz');

/** Does not compress too well. */
export function deploymentOf(bytes: number, seed = 1): Buffer {
  const resources: string[] = [];
  const value = Buffer.alloc(Math.min(1_500, bytes));
  let size = 100;
  let random = seed;
  for (let index = 0; size < bytes; index++) {
    for (let at = 0; at < value.length; at++) {
      random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0;
      // The low bits of such a sequence repeat soon.
      value[at] = letters[(random >>> 16) % letters.length] as number;
    }
    const resource = `{"urn":"urn:pulumi:dev::proj::pulumi:index:Stash::r${index}","custom":true,"type":"pulumi:index:Stash","inputs":{"input":"${value.toString('latin1')}"},"outputs":{"output":"${index}"}}`;
    resources.push(resource);
    size += resource.length + 1;
  }
  return Buffer.from(
    `{"version":3,"deployment":{"manifest":{"time":"2026-01-01T00:00:00Z","magic":"","version":""},"resources":[${resources.join(',')}]}}`,
  );
}
