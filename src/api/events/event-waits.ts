import { parsePayload } from '../../shared/events/live/notification.ts';
import type { NotificationChannel } from '../../shared/platform/db/notification-channel.ts';

/** Repeating `end` is harmless. */
interface EventWait {
  readonly changed: Promise<void>;
  end(): void;
}

/** Calls of this process that wait for events. All its data is in memory. */
export class EventWaits {
  readonly #channel: NotificationChannel;
  /** Functions that wake waiting calls, by update. */
  readonly #waiting = new Map<string, Set<() => void>>();
  #isDraining = false;

  constructor(channel: NotificationChannel) {
    this.#channel = channel;
    channel.listen({ onMessage: (payload) => this.#hear(payload), onOpen: () => {}, onLost: () => {} });
  }

  /**
   * Waits for at most `ms`, until `gone` is aborted, or until this process is about to stop. Call before reading, so that no change is
   * missed, and call `end` afterwards.
   */
  next(updateId: string, ms: number, gone: AbortSignal): EventWait {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.#isDraining || gone.aborted) resolve();
    else this.#channel.open();
    const wake = (): void => resolve();
    const waiting = this.#waiting.get(updateId) ?? new Set();
    this.#waiting.set(updateId, waiting.add(wake));
    const timer = setTimeout(wake, ms);
    gone.addEventListener('abort', wake, { once: true });
    const end = (): void => {
      clearTimeout(timer);
      gone.removeEventListener('abort', wake);
      waiting.delete(wake);
      if (waiting.size === 0 && this.#waiting.get(updateId) === waiting) this.#waiting.delete(updateId);
    };
    return { changed: promise, end };
  }

  /** Future calls do not wait, either. */
  drain(): void {
    this.#isDraining = true;
    for (const updateId of this.#waiting.keys()) this.#wake(updateId);
  }

  #hear(payload: string): void {
    if (this.#waiting.size === 0) return;
    const heard = parsePayload(payload);
    if (heard === null || 'of' in heard) return;
    for (const { updateId } of heard.notifications) if (updateId !== null) this.#wake(updateId);
  }

  #wake(updateId: string): void {
    for (const wake of this.#waiting.get(updateId) ?? []) wake();
  }
}
