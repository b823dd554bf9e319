import type { NotificationKind } from '../../../shared/events/live/notification.ts';

/** The page then reloads its data. */
export interface LiveMessage {
  /** Null: all topics of the stream. */
  readonly topic: string | null;
  /**
   * `ready`: the stream has begun, and reports all later changes. `refetch`: changes may have been missed. `position`: nothing has
   * happened; the stream can be resumed from here.
   */
  readonly kind: NotificationKind | 'ready' | 'refetch' | 'position';
  /** Absent for topics of organizations, whose members may not see every stack. */
  readonly updateId?: string;
}

/** The stream resumes after this message from the position `id`. */
export interface PlacedMessage {
  readonly id: string;
  readonly message: LiveMessage;
}

export type StreamEnd = 'stopping' | 'rights' | 'slow' | 'gone';

/** The time for coalescing messages of one kind: organizations may have many. */
const collectMs = 50;
const collectOrganizationMs = 2_000;
/** More unread messages are replaced by one `refetch`. */
const maxPending = 64;

/** Messages are coalesced, so that the page gets no duplicates, and bounded. */
export class LiveStream {
  readonly #position: () => string;
  #pending = new Map<string, LiveMessage>();
  #pendingSince = 0;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = 0;
  #isDue = false;
  /** The last message that the client has read. */
  #id: string;
  #end: StreamEnd | undefined;
  #wake: (() => void) | undefined;

  /** `position`: how far this stream was notified in the notification log. */
  constructor(position: () => string) {
    this.#position = position;
    this.#id = position();
  }

  get isCurrent(): boolean {
    return this.#id === this.#position();
  }

  get size(): number {
    return this.#pending.size;
  }

  /** By `performance.now()`; infinite: no messages wait. */
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

  /** `read` then returns the reason. Unread messages are dropped. */
  end(why: StreamEnd): void {
    this.#end ??= why;
    clearTimeout(this.#timer);
    this.#wake?.();
  }

  /** Returns why the stream has ended, or null when `gone` was aborted. */
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
