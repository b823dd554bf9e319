import type { NotificationKind } from '../../../shared/events/live/notification.ts';

/** What a page is told. It then asks for what it shows. */
export interface LiveMessage {
  /** As it was asked for; null: all topics of the stream. */
  readonly topic: string | null;
  /**
   * `ready`: the stream has begun, and says what happens from now on. `refetch`: something may have been missed. `position`: nothing has
   * happened; the stream is resumed from here.
   */
  readonly kind: NotificationKind | 'ready' | 'refetch' | 'position';
  /** Not said for topics of organizations, whose members may not see every stack. */
  readonly updateId?: string;
}

/** A message, and the place in the order of notices from which a stream is resumed once this message has arrived. */
export interface PlacedMessage {
  readonly id: string;
  readonly message: LiveMessage;
}

/** Why a stream ends. */
export type StreamEnd = 'stopping' | 'rights' | 'slow' | 'gone';

/** How long messages of one kind are collected, in ms: about organizations there may be many. */
const collectMs = 50;
const collectOrganizationMs = 2_000;
/** A stream whose client does not read has at most so many messages; more are replaced by one `refetch`. */
const maxPending = 64;

/** The messages for one page: collected, so that a page is not told the same thing twice, and bounded. */
export class LiveStream {
  readonly #position: () => string;
  #pending = new Map<string, LiveMessage>();
  #pendingSince = 0;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = 0;
  #isDue = false;
  /** Of the last message that was read. */
  #id: string;
  #end: StreamEnd | undefined;
  #wake: (() => void) | undefined;

  /** `position` is the place in the order of notices up to which this stream was told. */
  constructor(position: () => string) {
    this.#position = position;
    this.#id = position();
  }

  /** Whether its client has been told of the newest place. */
  get isCurrent(): boolean {
    return this.#id === this.#position();
  }

  /** Messages that wait for the client. */
  get size(): number {
    return this.#pending.size;
  }

  /** Since when, by `performance.now()`, messages wait for the client; infinite: none do. */
  get unreadSince(): number {
    return this.#isDue && !this.#wake ? this.#pendingSince : Number.POSITIVE_INFINITY;
  }

  add(message: LiveMessage, { isSlow }: { readonly isSlow: boolean }): void {
    if (this.#end) return;
    if (this.#pending.size === 0) this.#pendingSince = performance.now();
    if (this.#pending.size >= maxPending) this.refetch();
    else this.#pending.set(`${message.kind} ${message.topic} ${message.updateId}`, message);
    this.#dueIn(isSlow ? collectOrganizationMs : collectMs);
  }

  /** Says that anything may have changed. */
  refetch(): void {
    if (this.#end) return;
    if (this.#pending.size === 0) this.#pendingSince = performance.now();
    this.#pending = new Map([['', { topic: null, kind: 'refetch' }]]);
    this.#dueIn(0);
  }

  /** Ends the stream: `read` then returns the reason. Messages that were not read are dropped. */
  end(why: StreamEnd): void {
    this.#end ??= why;
    clearTimeout(this.#timer);
    this.#wake?.();
  }

  /** Waits for messages and takes them. Returns why the stream has ended, or null when `gone` was aborted. */
  async read(gone: AbortSignal): Promise<readonly PlacedMessage[] | StreamEnd | null> {
    while (!this.#end && !this.#isDue && !gone.aborted) await this.#wait(gone);
    if (gone.aborted) return null;
    if (this.#end) return this.#end;
    this.#isDue = false;
    const messages = [...this.#pending.values()];
    this.#pending.clear();
    const before = this.#id;
    this.#id = this.#position();
    // A client that has only got some of them is told all of them again.
    return messages.map((message, index) => ({ message, id: index === messages.length - 1 ? this.#id : before }));
  }

  async #wait(gone: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    gone.addEventListener('abort', resolve as () => void, { once: true });
    await promise;
    gone.removeEventListener('abort', resolve as () => void);
    this.#wake = undefined;
  }

  #dueIn(ms: number): void {
    const at = performance.now() + ms;
    if (this.#isDue || (this.#timer && this.#timerAt <= at)) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#isDue = true;
      this.#wake?.();
    }, ms).unref();
  }
}
