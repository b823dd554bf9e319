import type { NotificationKind } from '../../../shared/events/live/notification.ts';

/** A notification to a page, which then reloads its data. */
export interface LiveMessage {
  /** The topic as requested; null: all topics of the stream. */
  readonly topic: string | null;
  /**
   * `ready`: the stream has begun, and reports all later changes. `refetch`: changes may have been missed. `position`: nothing has
   * happened; the stream can be resumed from here.
   */
  readonly kind: NotificationKind | 'ready' | 'refetch' | 'position';
  /** Absent for topics of organizations, whose members may not see every stack. */
  readonly updateId?: string;
}

/** A message, and the position in the notification log from which a stream resumes after this message. */
export interface PlacedMessage {
  readonly id: string;
  readonly message: LiveMessage;
}

/** Why a stream ends. */
export type StreamEnd = 'stopping' | 'rights' | 'slow' | 'gone';

/** How long messages of one kind are coalesced, in ms: organizations may have many. */
const collectMs = 50;
const collectOrganizationMs = 2_000;
/** Maximum number of unread messages of a stream; more are replaced by one `refetch`. */
const maxPending = 64;

/** The messages for one page: coalesced, so that the page gets no duplicates, and bounded. */
export class LiveStream {
  readonly #position: () => string;
  #pending = new Map<string, LiveMessage>();
  #pendingSince = 0;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = 0;
  #isDue = false;
  /** Id of the last message that the client has read. */
  #id: string;
  #end: StreamEnd | undefined;
  #wake: (() => void) | undefined;

  /** `position` is the position in the notification log up to which this stream was notified. */
  constructor(position: () => string) {
    this.#position = position;
    this.#id = position();
  }

  /** Whether the client has received the newest position. */
  get isCurrent(): boolean {
    return this.#id === this.#position();
  }

  /** Messages that wait for the client. */
  get size(): number {
    return this.#pending.size;
  }

  /** Since when messages wait for the client, by `performance.now()`; infinite: none wait. */
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

  /** Announces that anything may have changed. */
  refetch(): void {
    if (this.#end) return;
    if (this.#pending.size === 0) this.#pendingSince = performance.now();
    this.#pending = new Map([['', { topic: null, kind: 'refetch' }]]);
    this.#dueIn(0);
  }

  /** Ends the stream: `read` then returns the reason. Unread messages are dropped. */
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
    // A client that has received only some of the messages gets all of them again.
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
