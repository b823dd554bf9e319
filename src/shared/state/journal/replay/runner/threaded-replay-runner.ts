import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { type ReplayReply, type ReplayRequest, type ReplayStep, transferable } from './replay-messages.ts';
import { InvalidJournalError, type OpenReplay, ReplayEndedError, type ReplayRunner } from './replay-runner.ts';
import {
  DamagedStartError,
  type ReplayedDocument,
  type ReplayedText,
  type ReplayProgress,
  type ReplayStart,
} from './replay-work.ts';

// In this file's directory, with the same extension: .ts, or .js after a build.
const threadFile = new URL(`./replay-thread${path.extname(import.meta.url)}`, import.meta.url);

/**
 * The thread is started for the first replay and reused. If it dies, its pending calls are rejected with ReplayEndedError, and the next
 * replay starts a new thread.
 */
export class ThreadedReplayRunner implements ReplayRunner {
  readonly #file: URL;
  #thread: ReplayThread | null = null;
  #replays = 0;

  constructor(file: URL = threadFile) {
    this.#file = file;
  }

  async open(start: ReplayStart): Promise<OpenReplay> {
    if (!this.#thread?.isAlive) this.#thread = new ReplayThread(this.#file);
    const thread = this.#thread;
    const replay = ++this.#replays;
    const call = <T>(step: ReplayStep, ...bytes: (Uint8Array | null | undefined)[]): Promise<T> =>
      thread.call(replay, step, transferable(...bytes)) as Promise<T>;
    const initialProgress = await call<ReplayProgress>(
      { name: 'open', start },
      start.base?.bytes,
      start.snapshot?.document.bytes,
    );
    return {
      initialProgress,
      apply: (page) => call<ReplayProgress>({ name: 'apply', page }, page.text),
      progress: () => call<ReplayProgress>({ name: 'progress' }),
      write: (manifest) => call<ReplayedText>({ name: 'write', manifest }),
      encode: (manifest) => call<ReplayedDocument>({ name: 'encode', manifest }),
      snapshot: () => call<ReplayedDocument['document']>({ name: 'snapshot' }),
      close: () => void call({ name: 'close' }).catch(() => {}),
    };
  }

  /** Does not wait for pending calls. */
  async close(): Promise<void> {
    await this.#thread?.end();
  }
}

interface Call {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

class ReplayThread {
  readonly #worker: Worker;
  readonly #calls = new Map<number, Call>();
  #lastCall = 0;
  #death: ReplayEndedError | null = null;

  constructor(file: URL) {
    this.#worker = new Worker(file, { name: 'replay' });
    this.#worker.unref();
    this.#worker.on('message', (reply: ReplayReply) => this.#settleCall(reply));
    this.#worker.on('messageerror', (error) => this.#die(error));
    this.#worker.on('error', (error) => this.#die(error));
    this.#worker.on('exit', () => this.#die());
  }

  get isAlive(): boolean {
    return this.#death === null;
  }

  call(replay: number, step: ReplayStep, transfer: ArrayBuffer[]): Promise<unknown> {
    if (this.#death) return Promise.reject(this.#death);
    const request: ReplayRequest = { call: ++this.#lastCall, replay, step };
    return new Promise((resolve, reject) => {
      this.#worker.postMessage(request, transfer);
      this.#calls.set(request.call, { resolve, reject });
    });
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  #settleCall(reply: ReplayReply): void {
    const call = this.#calls.get(reply.call);
    this.#calls.delete(reply.call);
    if ('result' in reply) call?.resolve(reply.result);
    else if ('invalid' in reply) call?.reject(new InvalidJournalError(reply.invalid));
    else if ('damaged' in reply) call?.reject(new DamagedStartError(reply.damaged.part, reply.damaged.message));
    else call?.reject(reply.fault);
  }

  #die(cause?: unknown): void {
    this.#death ??= new ReplayEndedError('The thread that replays journals has ended; please retry', {
      cause,
    });
    for (const { reject } of this.#calls.values()) reject(this.#death);
    this.#calls.clear();
    void this.#worker.terminate();
  }
}
