import { type AppErrorOptions, UnavailableError } from '../errors/errors.ts';

/** Clients that wait for the end of the mode ask again after this time. */
const retrySeconds = 60;

/** Since when an installation is read-only, and why. */
export interface ReadOnly {
  readonly since: Date;
  readonly reason: string;
}

/** A write is refused because the installation is read-only. */
export class ReadOnlyError extends UnavailableError {
  override readonly name = 'ReadOnlyError';
  override readonly code = 'read-only';

  constructor({ reason }: ReadOnly, options: AppErrorOptions = {}) {
    super(`This installation is read-only for now: ${reason}`, { retryAfterSeconds: retrySeconds, ...options });
  }
}

/** What this process knows about the read-only mode. The watch of the database refreshes it every second. */
export class ReadOnlyMode {
  #current: ReadOnly | null = null;

  /** Null: the installation accepts all writes. */
  get current(): ReadOnly | null {
    return this.#current;
  }

  remember(current: ReadOnly | null): void {
    this.#current = current;
  }

  /** Throws ReadOnlyError. */
  assertOff(): void {
    if (this.#current) throw new ReadOnlyError(this.#current);
  }
}
