import {
  liveChannel,
  type Notification,
  type NotificationBatch,
  parsePayload,
  type RightsNotification,
} from '../../../shared/events/live/notification.ts';
import type { NotificationChannel } from '../../../shared/platform/db/notification-channel.ts';
import { outsideCalls } from '../../../shared/platform/lifecycle/outside-calls.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import { type LiveMessage, LiveStream } from './live-stream.ts';
import { NotificationLog } from './notification-log.ts';

/** At least this many notifications can be replayed to reconnecting clients. */
const logged = 10_000;
/** The wait of subscriptions until this process listens. */
const openMs = 3_000;
const checkMs = 5_000;
/** How long a client may leave messages unread, in ms. */
const defaultUnreadMs = 60_000;
/** Limits the age of the id that resumes a stream. */
const checksPerPosition = 4;

export interface LiveTopic {
  readonly of: 'organization' | 'stack' | 'update';
  readonly id: string;
  /** The topic as the client sent it. */
  readonly name: string;
}

interface Subscriber {
  readonly topics: readonly LiveTopic[];
  /** Closes the connection if the client does not read. */
  readonly cut: () => void;
}

/**
 * Receives the notifications of all replicas on one connection, and passes them to the streams of this process by topic. All its data is in
 * memory.
 */
export class LiveHub {
  readonly #channel: NotificationChannel;
  readonly #logger: Logger;
  readonly #maxUnreadMs: number;
  readonly #log = new NotificationLog(logged);
  /** Streams by topic, with the topic as each client sent it. */
  readonly #watchers = new Map<string, Map<LiveStream, LiveTopic>>();
  readonly #subscribers = new Map<LiveStream, Subscriber>();
  readonly #onRights: (notification: RightsNotification | null) => void;
  readonly #opened = Promise.withResolvers<void>();
  #isOpen = false;
  #timer: NodeJS.Timeout | undefined;
  #checks = 0;
  #isDraining = false;

  /**
   * `onRights` gets null if a change of permissions may have been missed. A client that leaves messages unread for `maxUnreadMs` is
   * disconnected.
   */
  constructor(
    { channel, logger }: { readonly channel: NotificationChannel; readonly logger: Logger },
    onRights: (notification: RightsNotification | null) => void,
    { maxUnreadMs = defaultUnreadMs }: { readonly maxUnreadMs?: number } = {},
  ) {
    this.#maxUnreadMs = maxUnreadMs;
    this.#channel = channel;
    this.#logger = logger;
    this.#onRights = onRights;
    // Before the first stream begins, so that streams of other processes can be resumed here.
    channel.listen({
      onMessage: (payload) => this.#hear(payload),
      onOpen: (isAgain) => this.#open(isAgain),
      onLost: () => {
        this.#isOpen = false;
      },
    });
  }

  get streams(): number {
    return this.#subscribers.size;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /**
   * Call with permitted topics. `after`: the id of the last message that the client has received on an earlier stream; null: none. `cut`
   * closes the client's connection.
   */
  async subscribe(topics: readonly LiveTopic[], after: string | null, cut: () => void): Promise<LiveStream> {
    this.#channel.open();
    if (!this.#isDraining) this.#timer ??= outsideCalls(() => setInterval(() => this.#check(), checkMs).unref());
    // Without a database, the stream asks for a full refetch once the database is back.
    const wait = setTimeout(this.#opened.resolve, openMs);
    await this.#opened.promise;
    clearTimeout(wait);
    const stream = new LiveStream(() => this.#log.position);
    const missed = after === null || !this.#isOpen ? null : this.#log.after(after);
    if (this.#isDraining) stream.end('stopping');
    this.#subscribers.set(stream, { topics, cut });
    for (const topic of topics) this.#watch(stream, topic);
    if (after !== null && missed === null) stream.refetch();
    else stream.add({ topic: null, kind: 'ready' }, { isSlow: false });
    for (const { notification } of missed ?? []) this.#notify(notification, stream);
    return stream;
  }

  leave(stream: LiveStream): void {
    for (const topic of this.#subscribers.get(stream)?.topics ?? []) {
      const watchers = this.#watchers.get(keyOf(topic));
      watchers?.delete(stream);
      if (watchers?.size === 0) this.#watchers.delete(keyOf(topic));
    }
    this.#subscribers.delete(stream);
    stream.end('gone');
  }

  /** Also ends future streams, because this process is about to stop. Clients resume elsewhere. */
  drain(): void {
    this.#isDraining = true;
    clearInterval(this.#timer);
    this.#opened.resolve();
    for (const stream of this.#subscribers.keys()) stream.end('stopping');
  }

  #watch(stream: LiveStream, topic: LiveTopic): void {
    const watchers = this.#watchers.get(keyOf(topic)) ?? new Map<LiveStream, LiveTopic>();
    watchers.set(stream, topic);
    this.#watchers.set(keyOf(topic), watchers);
  }

  #open(isAgain: boolean): void {
    this.#isOpen = true;
    this.#opened.resolve();
    // The first time, too, because streams may have begun before.
    if (!isAgain && this.#subscribers.size === 0) return;
    this.#log.clear();
    for (const stream of this.#subscribers.keys()) stream.refetch();
    this.#onRights(null);
  }

  #hear(payload: string): void {
    const heard = parsePayload(payload);
    if (heard === null) this.#logger.debug({ channel: liveChannel }, 'live: notification of an unknown kind');
    else if ('of' in heard) this.#onRights(heard);
    else this.#hearBatch(heard);
  }

  #hearBatch({ id, isPartial, notifications }: NotificationBatch): void {
    if (isPartial) {
      this.#log.clear();
      for (const stream of this.#subscribers.keys()) stream.refetch();
    }
    notifications.forEach((notification, index) => {
      this.#log.add({ id: `${id}.${index}`, notification });
      this.#notify(notification, null);
    });
  }

  /** `only`: notifies one stream instead of all. */
  #notify(notification: Notification, only: LiveStream | null): void {
    const { kind, organizationId, stackId, updateId } = notification;
    const isFrequent = kind === 'events.appended';
    const topics: readonly (readonly [LiveTopic['of'], string | null])[] = [
      ['update', updateId],
      ['stack', isFrequent ? null : stackId],
      ['organization', isFrequent ? null : organizationId],
    ];
    for (const [of, id] of topics) {
      if (id === null) continue;
      for (const [stream, topic] of this.#watchers.get(keyOf({ of, id })) ?? []) {
        if (only !== null && stream !== only) continue;
        const isSlow = topic.of === 'organization';
        const message: LiveMessage = { topic: topic.name, kind, ...(isSlow || updateId === null ? {} : { updateId }) };
        stream.add(message, { isSlow });
      }
    }
  }

  #check(): void {
    const isTime = ++this.#checks % checksPerPosition === 0;
    const now = performance.now();
    for (const [stream, { cut }] of this.#subscribers) {
      if (now - stream.unreadSince > this.#maxUnreadMs) {
        stream.end('slow');
        cut();
      } else if (isTime && !stream.isCurrent) stream.add({ topic: null, kind: 'position' }, { isSlow: true });
    }
  }
}

function keyOf({ id, of }: Pick<LiveTopic, 'of' | 'id'>): string {
  return `${of} ${id}`;
}
