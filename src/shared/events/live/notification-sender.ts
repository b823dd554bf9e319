import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../platform/db/database.ts';
import type { NotificationChannel } from '../../platform/db/notification-channel.ts';
import type { Logger } from '../../platform/logger/logger.ts';
import {
  formatBatch,
  formatNotification,
  liveChannel,
  type Notification,
  type NotificationKind,
  parseNotification,
  raisedName,
} from './notification.ts';

/** How long notifications are collected. The first one after a silence is sent after the shorter time. */
const firstMs = 20;
const gapMs = 100;
/** The collection time for kinds that a running update may cause in large numbers. */
const frequentMs = 250;
const retryMs = 1_000;
const closeMs = 1_000;
/** Kept while the database fails. Beyond it, one notification of the loss replaces all of them. */
const maxPending = 5_000;
/** Each notification has at most 128 bytes, and a payload at most 8,000. */
const perPayload = 60;

const frequent: ReadonlySet<NotificationKind> = new Set(['events.appended']);

/**
 * Notifies all replicas of the commits of this process. Notifications are collected in memory and sent in the background; a process that
 * dies loses them. Pages must therefore also poll from time to time.
 */
export class NotificationSender {
  readonly #channel: NotificationChannel;
  readonly #logger: Logger;
  readonly #name = randomBytes(6).toString('base64url');
  readonly #collected = { soon: new Map<string, Notification>(), later: new Map<string, Notification>() };
  readonly #timers: { soon?: NodeJS.Timeout; later?: NodeJS.Timeout } = {};
  #payloads = 0;
  #hasLost = false;
  #sending: Promise<void> = Promise.resolve();
  #sentAt = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  #isClosed = false;

  constructor({ db, logger }: { readonly db: Database; readonly logger: Logger }) {
    this.#channel = db.channel(liveChannel);
    this.#logger = logger;
    db.onRaised(({ detail, message }) => {
      const notification = message === raisedName ? parseNotification(detail) : null;
      if (notification) this.notify(notification);
    });
  }

  /** A listener can share the channel's connection. */
  get channel(): NotificationChannel {
    return this.#channel;
  }

  /** Call this after the commit. Returns at once. */
  notify(notification: Notification): void {
    if (this.#isClosed) return;
    const speed = frequent.has(notification.kind) ? 'later' : 'soon';
    const collected = this.#collected[speed];
    if (collected.size >= maxPending) {
      collected.clear();
      this.#hasLost = true;
    }
    collected.set(formatNotification(notification), notification);
    this.#flushIn(speed, speed === 'later' ? frequentMs : firstMs);
  }

  /** Sends the collected notifications only if that takes no wait. */
  async close(): Promise<void> {
    const flushed = Promise.all([this.#flush('later'), this.#flush('soon')]);
    await Promise.race([flushed, sleep(closeMs, undefined, { ref: false })]);
    this.#isClosed = true;
    clearTimeout(this.#timers.soon);
    clearTimeout(this.#timers.later);
    await this.#channel.close();
  }

  #flushIn(speed: 'soon' | 'later', ms: number): void {
    if (this.#isClosed || this.#timers[speed]) return;
    const waitMs = Math.max(ms, this.#sentAt + gapMs - performance.now());
    this.#timers[speed] = setTimeout(() => void this.#flush(speed), waitMs).unref();
  }

  /** One flush at a time, in the order of the calls. Never rejects. */
  #flush(speed: 'soon' | 'later'): Promise<void> {
    this.#sending = this.#sending.then(() => this.#send(speed));
    return this.#sending;
  }

  async #send(speed: 'soon' | 'later'): Promise<void> {
    clearTimeout(this.#timers[speed]);
    delete this.#timers[speed];
    const collected = this.#collected[speed];
    const notifications = [...collected.values()];
    const isPartial = this.#hasLost;
    if (notifications.length === 0 && !isPartial) return;
    collected.clear();
    this.#hasLost = false;
    const payloads: string[] = [];
    for (let at = 0; at === 0 || at < notifications.length; at += perPayload) {
      const id = `${this.#name}.${++this.#payloads}`;
      payloads.push(
        formatBatch({ id, isPartial: isPartial && at === 0, notifications: notifications.slice(at, at + perPayload) }),
      );
    }
    try {
      this.#sentAt = performance.now();
      await this.#channel.send(payloads);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) this.#logger.debug({ err: error }, 'live: notifications could not be sent yet');
      this.#hasFailed = true;
      this.#hasLost ||= isPartial;
      for (const notification of notifications) this.notify(notification);
      clearTimeout(this.#timers[speed]);
      delete this.#timers[speed];
      this.#flushIn(speed, retryMs);
    }
  }
}
