import { randomBytes } from 'node:crypto';
import type { Notice } from '../../shared/live/notice.ts';

/** A notice at its place in the order that all replicas have. */
export interface LoggedNotice {
  readonly id: string;
  readonly notice: Notice;
}

/**
 * The last notices, so that a stream can be resumed. All replicas receive them in one order and under the same ids, so a stream that one
 * has begun can be resumed by another, as long as that has listened since.
 */
export class NoticeLog {
  readonly #capacity: number;
  #entries: LoggedNotice[] = [];
  /** Number of the first entry. */
  #first = 0;
  #numbers = new Map<string, number>();
  /** Stands for the place before the first notice of this log: no other has it. */
  #start = '';

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.clear();
  }

  /** Id of the last notice. */
  get position(): string {
    return this.#entries.at(-1)?.id ?? this.#start;
  }

  add(entry: LoggedNotice): void {
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
    this.#start = `start.${randomBytes(6).toString('base64url')}`;
    this.#numbers.set(this.#start, this.#first - 1);
  }

  /** The notices after the one with this id; null: nobody knows any more which they are. */
  after(id: string): readonly LoggedNotice[] | null {
    const number = this.#numbers.get(id);
    return number === undefined ? null : this.#entries.slice(number + 1 - this.#first);
  }

  #forget(count: number): void {
    const [last] = this.#entries.slice(count - 1, count);
    for (const { id } of this.#entries.splice(0, count)) this.#numbers.delete(id);
    this.#numbers.delete(this.#start);
    this.#first += count;
    // What follows the last of those that are forgotten is still known.
    if (last) this.#numbers.set(last.id, this.#first - 1);
  }
}
