import { type AppErrorOptions, UnavailableError } from '../errors/errors.ts';

const retrySeconds = 60;

export interface ReadOnly {
  readonly since: Date;
  readonly reason: string;
  /** Another site has taken over. Running updates are refused, too. */
  readonly isFenced?: true;
}

/** Another site has replaced this one. */
export function fencedBy(since: Date): ReadOnly {
  return { since, reason: 'another site has taken over', isFenced: true };
}

export class ReadOnlyError extends UnavailableError {
  override readonly name = 'ReadOnlyError';
  override readonly code = 'read-only';

  constructor({ reason }: ReadOnly, options: AppErrorOptions = {}) {
    super(`This installation is read-only for now: ${reason}`, { retryAfterSeconds: retrySeconds, ...options });
  }
}

/** The watch of the database refreshes it every second. */
export class ReadOnlyMode {
  #current: ReadOnly | null = null;
  #fence = new AbortController();

  get current(): ReadOnly | null {
    return this.#current;
  }

  get isFenced(): boolean {
    return this.#current?.isFenced === true;
  }

  /** Fires when another site takes over. Get it anew for each piece of work, because this site may be promoted again. */
  get fenceSignal(): AbortSignal {
    return this.#fence.signal;
  }

  remember(current: ReadOnly | null): void {
    this.#current = current;
    if (this.isFenced) this.#fence.abort(new ReadOnlyError(current as ReadOnly));
    else if (this.#fence.signal.aborted) this.#fence = new AbortController();
  }

  assertOff(): void {
    if (this.#current) throw new ReadOnlyError(this.#current);
  }

  /** For work that continues while an operator has made the installation read-only. */
  assertNotFenced(): void {
    if (this.isFenced) this.assertOff();
  }
}
