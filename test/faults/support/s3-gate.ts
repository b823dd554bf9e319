import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The condition of the connection to S3: `failing` answers 500, `lying` stores and still answers 500, `slow` lets a few
 * bytes through at a time, `cut` breaks requests in the middle of their body.
 */
export type Weather = 'fine' | 'failing' | 'lying' | 'slow' | 'cut';

/** A request that is held at the gate. */
export interface Held {
  readonly path: string;
  release(): void;
}

interface Hold {
  readonly text: string;
  readonly when: 'before' | 'after';
  readonly arrived: (held: Held) => void;
}

/** An HTTP proxy between one process and the S3 server. Host headers are passed on, so signatures stay valid. */
export class S3Gate implements AsyncDisposable {
  weather: Weather = 'fine';
  /** Pause before each few bytes when the weather is slow. */
  slowMs = 30;
  /** Number of requests affected by the weather. */
  hits = 0;
  readonly #server: Server;
  #target: URL | null = null;
  readonly #agent = new Agent({ keepAlive: true });
  #holds: Hold[] = [];

  private constructor() {
    this.#server = createServer((incoming, answer) => {
      this.#pass(incoming, answer).catch(() => answer.destroy());
    });
  }

  /** A gate without a target until `leadTo` is called. */
  static async open(): Promise<S3Gate> {
    const gate = new S3Gate();
    gate.#server.listen(0, '127.0.0.1');
    await once(gate.#server, 'listening');
    return gate;
  }

  leadTo(endpoint: string): void {
    this.#target = new URL(endpoint);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /**
   * Holds the next PUT whose path contains `text`: before any of it is sent to S3, or after S3 has stored it and before
   * the response is returned. Resolves when it is held.
   */
  holdPut(text: string, when: 'before' | 'after'): { held: Promise<Held>; giveUp: () => void } {
    const { promise, resolve } = Promise.withResolvers<Held>();
    const hold = { text, when, arrived: resolve };
    this.#holds.push(hold);
    return {
      held: promise,
      giveUp: () => {
        this.#holds = this.#holds.filter((each) => each !== hold);
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    this.#agent.destroy();
  }

  async #pass(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { weather } = this;
    if (weather !== 'fine') this.hits++;
    const path = incoming.url ?? '/';
    const hold = incoming.method === 'PUT' ? this.#takeHold(path) : null;
    if (hold?.when === 'before') await arrive(hold, path);
    if (weather === 'failing') {
      incoming.resume();
      await once(incoming, 'end');
      return sayInternalError(answer);
    }
    const outgoing = request({
      host: this.#target?.hostname,
      port: this.#target?.port,
      method: incoming.method ?? 'GET',
      path,
      headers: incoming.rawHeaders,
      agent: this.#agent,
    });
    const response = once(outgoing, 'response') as Promise<[IncomingMessage]>;
    response.catch(() => {});
    outgoing.on('error', () => answer.destroy());
    incoming.on('close', () => {
      if (!incoming.complete) outgoing.destroy();
    });
    if (!(await forward(incoming, outgoing, weather, this.slowMs))) return void answer.destroy();
    const [result] = await response;
    if (hold?.when === 'after') await arrive(hold, path);
    if (weather === 'lying') {
      result.resume();
      return sayInternalError(answer);
    }
    answer.writeHead(result.statusCode ?? 500, result.rawHeaders);
    answer.flushHeaders();
    result.on('error', () => answer.destroy());
    if (!(await forward(result, answer, weather, this.slowMs))) answer.destroy();
  }

  #takeHold(path: string): Hold | null {
    const hold = this.#holds.find(({ text }) => path.includes(text));
    if (!hold) return null;
    this.#holds = this.#holds.filter((each) => each !== hold);
    return hold;
  }
}

function arrive(hold: Hold, path: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  hold.arrived({ path, release: resolve });
  return promise;
}

function sayInternalError(answer: ServerResponse): void {
  answer.writeHead(500, { 'content-type': 'application/xml' });
  answer.end('<?xml version="1.0"?><Error><Code>InternalError</Code><Message>The weather is bad</Message></Error>');
}

/** Passes on a message as the weather allows; false when it was cut off. */
async function forward(from: IncomingMessage, to: Writable, weather: Weather, slowMs: number): Promise<boolean> {
  if (weather !== 'slow' && weather !== 'cut') {
    await pipeline(from, to);
    return true;
  }
  const total = Number(from.headers['content-length'] ?? 0);
  let sent = 0;
  for await (const chunk of from as AsyncIterable<Buffer>) {
    sent += chunk.length;
    if (weather === 'cut' && sent > total / 2) {
      to.destroy();
      return false;
    }
    if (weather === 'slow') await sleep(slowMs);
    to.write(chunk);
  }
  to.end();
  return true;
}
