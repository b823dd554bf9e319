import { randomBytes } from 'node:crypto';
import type { Notification } from '../../../shared/events/live/notification.ts';

/** A notice at its place in the order that all replicas have. */
export interface LoggedNotification {
  readonly id: string;
  readonly notification: Notification;
}

/**
 * The last notices, so that a stream can be resumed. All replicas receive them in one order and under the same ids, so a stream that one
 * has begun can be resumed by another, as long as that has listened since.
 */
export class NotificationLog {
  readonly #capacity: number;
  #entries: LoggedNotification[] = [];
  /** Number of the first entry. */
  #first = 0;
  #numbers = new Map<string, number>();
  /** The place before the first entry: that of the last one that was forgotten, or one that no other log has. */
  #before = '';

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.clear();
  }

  /** Id of the last notice. */
  get position(): string {
    return this.#entries.at(-1)?.id ?? this.#before;
  }

  add(entry: LoggedNotification): void {
    this.#numbers.set(entry.id, this.#first + this.#entries.length);
    this.#entries.push(entry);
    // Removed by halves, because each removal moves all others.
    if (this.#entries.length >= 2 * this.#capacity) this.#forget(this.#capacity);
  }

  /** Forgets everything: something was missed. */
  clear(): void {
    this.#first += this.#entries.length;
    this.#entries = [];
    this.#numbers.clear();
    this.#before = `start.${randomBytes(6).toString('base64url')}`;
    this.#numbers.set(this.#before, this.#first - 1);
  }

  /** The notices after the one with this id; null: nobody knows any more which they are. */
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
