import { randomBytes } from 'node:crypto';
import type { Notification } from '../../../shared/events/live/notification.ts';

/** All replicas share the order of positions. */
export interface LoggedNotification {
  readonly id: string;
  readonly notification: Notification;
}

/**
 * A stream can be resumed from these notifications. All replicas receive them in the same order and with the same ids, so another replica
 * that has listened since can resume a stream.
 */
export class NotificationLog {
  readonly #capacity: number;
  #entries: LoggedNotification[] = [];
  /** Number of the first entry. */
  #first = 0;
  #numbers = new Map<string, number>();
  /** The position of the last dropped entry, or one that no other log has. */
  #before = '';

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.clear();
  }

  get position(): string {
    return this.#entries.at(-1)?.id ?? this.#before;
  }

  add(entry: LoggedNotification): void {
    this.#numbers.set(entry.id, this.#first + this.#entries.length);
    this.#entries.push(entry);
    // Removed in halves, because each removal moves all other entries.
    if (this.#entries.length >= 2 * this.#capacity) this.#forget(this.#capacity);
  }

  /** Call after notifications were missed. */
  clear(): void {
    this.#first += this.#entries.length;
    this.#entries = [];
    this.#numbers.clear();
    this.#before = `start.${randomBytes(6).toString('base64url')}`;
    this.#numbers.set(this.#before, this.#first - 1);
  }

  /** Null: some of the notifications are no longer known. */
  after(id: string): readonly LoggedNotification[] | null {
    const number = this.#numbers.get(id);
    return number === undefined ? null : this.#entries.slice(number + 1 - this.#first);
  }

  #forget(count: number): void {
    this.#numbers.delete(this.#before);
    for (const { id } of this.#entries.splice(0, count)) {
      this.#numbers.delete(id);
      this.#before = id;
    }
    this.#first += count;
    this.#numbers.set(this.#before, this.#first - 1);
  }
}
