import { setTimeout as sleep } from 'node:timers/promises';
import { ResponseError, type Update } from '../../../bench/support/raw-client.ts';
import { creation } from '../../support/journal-entries.ts';
import { documentOf, sha256 } from './documents.ts';
import { Pipeline, type Target } from './pipelines.ts';

/** How an update ended for its client. Times are those of this process, in ms. */
type End =
  | { readonly kind: 'succeeded'; readonly at: number }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }
  | { readonly kind: 'unanswered'; readonly message: string };

/** An update as its client knows it. */
export interface WatchedUpdate {
  readonly id: string;
  /** Names of resources, or hashes of documents. */
  readonly attempted: string[];
  readonly acknowledged: string[];
  end: End | null;
}

/** Longer than a database is away in these tests, in ms. */
const patienceMs = 400_000;

/** A pipeline whose client learns every outcome: it repeats each call of a running update until it gets a response. */
export abstract class WatchedPipeline extends Pipeline {
  readonly updates: WatchedUpdate[] = [];

  protected async watch(
    options: { journal: boolean },
    write: (update: Update, watched: WatchedUpdate) => Promise<void>,
  ) {
    const update = await this.client.startUpdate(this.stackPath, options);
    const watched: WatchedUpdate = { id: update.id, attempted: [], acknowledged: [], end: null };
    this.updates.push(watched);
    try {
      const writes = 3 + Math.floor(Math.random() * 6);
      for (let at = 0; at < writes; at++) {
        await write(update, watched);
        await this.pause();
      }
      await this.rest();
      await patiently(() => this.client.complete(update));
      watched.end = { kind: 'succeeded', at: Date.now() };
    } catch (error) {
      const { message } = error as Error;
      watched.end =
        error instanceof ResponseError
          ? { kind: 'refused', status: error.status, message }
          : { kind: 'unanswered', message };
      throw error;
    }
  }

  /** Between the last write and the end. */
  protected async rest(): Promise<void> {}

  /** The audit checks the responses to the clients. */
  protected override note(error: unknown): void {
    this.counts.failedCalls.push(`${this.name}: ${(error as Error).message}`);
  }
}

export class WatchedJournal extends WatchedPipeline {
  readonly kind = 'journal';
  readonly #resourcesPerBatch: number;
  #resource = 0;

  constructor(target: Target, name: string, resourcesPerBatch: number) {
    super(target, name);
    this.#resourcesPerBatch = resourcesPerBatch;
  }

  protected override once(): Promise<void> {
    let sequence = 1;
    return this.watch({ journal: true }, async (update, { acknowledged, attempted }) => {
      const names = Array.from({ length: this.#resourcesPerBatch }, () => `r${++this.#resource}`);
      const entries = names.flatMap((name) => {
        const made = creation(sequence, name, { project: this.project, stack: this.name });
        sequence += made.length;
        return made;
      });
      attempted.push(...names);
      const options = { auth: update.lease, gzip: true };
      await patiently(() => this.client.call('PATCH', `${update.path}/journalentries`, { entries }, options));
      acknowledged.push(...names);
      this.counts.acknowledged += names.length;
    });
  }
}

/** Whoever loses its last entries notices no gap in them. */
export class SlowJournal extends WatchedJournal {
  protected override pause(): Promise<void> {
    return sleep(400 + Math.random() * 400);
  }

  protected override rest(): Promise<void> {
    return sleep(3_000);
  }
}

export class WatchedDocuments extends WatchedPipeline {
  readonly kind = 'documents';
  readonly #bytes: number;
  #mark = 0;

  constructor(target: Target, name: string, bytes: number) {
    super(target, name);
    this.#bytes = bytes;
  }

  protected override once(): Promise<void> {
    return this.watch({ journal: false }, async (update, { acknowledged, attempted }) => {
      const document = documentOf(this.#bytes, `${this.name} ${++this.#mark}`);
      attempted.push(sha256(document));
      await patiently(() => this.client.checkpoint(update, document));
      acknowledged.push(sha256(document));
      this.counts.acknowledged++;
    });
  }
}

export type AnyWatched = WatchedJournal | WatchedDocuments;

/** Small and large writes of both kinds. */
export function watchedMix(target: Target, prefix: string): AnyWatched[] {
  return [
    ...[1, 1, 2, 25].map((size, at) => new WatchedJournal(target, `${prefix}-journal-${at}-${size}`, size)),
    ...[1, 2, 3].map((at) => new SlowJournal(target, `${prefix}-slow-${at}`, 2)),
    ...[2_000, 60_000].map((bytes) => new WatchedDocuments(target, `${prefix}-full-${bytes}`, bytes)),
  ];
}

/** Like the CLI, but for longer. */
async function patiently<T>(call: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const isFinal = error instanceof ResponseError && error.status < 500 && error.status !== 429;
      if (isFinal || Date.now() > deadline) throw error;
      await sleep(250);
    }
  }
}
