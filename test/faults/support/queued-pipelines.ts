import { setTimeout as sleep } from 'node:timers/promises';
import type { Update } from '../../../bench/support/raw-client.ts';
import { documentOf } from './documents.ts';
import { DocumentLedger } from './ledger.ts';
import { Pipeline, type Target } from './pipelines.ts';

const lookMs = 200;
/** Two looks that are further apart say nothing about the time between them. */
const gapMs = 1_000;
/** How long a stack is held by an update that no pipeline knows before it is cancelled. */
const strayMs = 3_000;

/** A stack that several pipelines update, each in its turn. */
export class QueuedStack {
  readonly name: string;
  readonly ledger = new DocumentLedger();
  /** Updates whose pipeline knows of them. */
  readonly known = new Set<string>();
  /** The longest time for which a call was first in line while the stack was free, as far as looks can tell, in ms. */
  longestIdleMs = 0;
  #first: { id: string; since: number; seen: number } | null = null;
  #mark = 0;
  #watching: Promise<void> | null = null;
  #isWatching = true;

  constructor(name: string) {
    this.name = name;
  }

  nextDocument(): Buffer {
    return documentOf(10_000, `${this.name} ${++this.#mark}`);
  }

  /** `findFirst` returns the place that is first in line while the stack is free. */
  watch(findFirst: (stack: string) => Promise<string | null>): void {
    this.#watching ??= this.#watch(findFirst);
  }

  async stopWatching(): Promise<void> {
    this.#isWatching = false;
    await this.#watching;
  }

  async #watch(findFirst: (stack: string) => Promise<string | null>): Promise<void> {
    while (this.#isWatching) {
      await sleep(lookMs);
      this.#note(await findFirst(this.name).catch(() => null));
    }
  }

  #note(first: string | null): void {
    const now = performance.now();
    const before = this.#first;
    const isSame = before !== null && before.id === first && now - before.seen < gapMs;
    this.#first = first === null ? null : { id: first, since: isSame ? before.since : now, seen: now };
    if (this.#first) this.longestIdleMs = Math.max(this.longestIdleMs, now - this.#first.since);
  }
}

/** Updates a stack together with other pipelines: waits in line for it each time. */
export class QueuedPipeline extends Pipeline {
  readonly stack: QueuedStack;
  #update: Update | null = null;

  constructor(target: Target, name: string, stack: QueuedStack) {
    super(target, name);
    this.stack = stack;
  }

  get ledger(): DocumentLedger {
    return this.stack.ledger;
  }

  protected override createStack(): Promise<string> {
    return super.createStack({ stackName: this.stack.name, tags: { 'lock-wait': '1h' } }, this.stack.name);
  }

  protected override async once(): Promise<void> {
    // fetch follows redirects as the CLI does.
    const created = JSON.parse(await this.client.once('POST', `${this.stackPath}/update`, {})) as { updateID: string };
    const path = `${this.stackPath}/update/${created.updateID}`;
    this.#update = { id: created.updateID, path, lease: '', version: 0 };
    this.stack.known.add(created.updateID);
    const started = JSON.parse(await this.client.once('POST', path, {})) as { token: string; version: number };
    const update = { ...this.#update, lease: `update-token ${started.token}`, version: started.version };
    const document = this.stack.nextDocument();
    this.ledger.attempt(document);
    await this.client.checkpoint(update, document);
    this.ledger.acknowledge(document);
    this.counts.acknowledged++;
    await this.client.complete(update);
    this.#update = null;
  }

  /** Cancels its own update; one that nobody knows was created by a call whose response was lost. */
  protected override async free(): Promise<void> {
    const own = this.#update;
    this.#update = null;
    if (own) {
      await this.client.call('POST', `${own.path}/cancel`).catch(() => {});
      return;
    }
    const before = await this.#stray();
    if (before === null) return;
    await sleep(strayMs);
    if ((await this.#stray()) === before)
      await this.client.call('POST', `${this.stackPath}/update/${before}/cancel`).catch(() => {});
  }

  async #stray(): Promise<string | null> {
    const text = await this.client.call('GET', this.stackPath).catch(() => '{}');
    const { activeUpdate = '' } = JSON.parse(text) as { activeUpdate?: string };
    return activeUpdate === '' || this.stack.known.has(activeUpdate) ? null : activeUpdate;
  }
}
