import { TooManyRequestsError } from '../../../shared/platform/errors/errors.ts';

/** A tenant may have so many times the streams that are free. */
const shareOfFree = 3;
const retryAfterSeconds = 30;

/** The user or the organization has their share of the streams, or there are none left. */
class TooManyStreamsError extends TooManyRequestsError {
  override readonly name = 'TooManyStreamsError';
  override readonly code = 'too-many-streams';
}

/**
 * Counts the streams of a process, and those of each tenant: of a user, of an organization. One that is alone gets three quarters of all, two get
 * three sevenths each; however many there are, some are left for whoever comes next.
 */
export class StreamShares {
  readonly #capacity: number;
  readonly #byTenant = new Map<string, number>();
  #count = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Begins a stream. Throws TooManyRequestsError. */
  open(): StreamShare {
    if (this.#count >= this.#capacity) throw tooMany('this server has');
    this.#count++;
    const tenants = new Set<string>();
    let isOpen = true;
    return {
      take: (tenant, { most = Number.POSITIVE_INFINITY, who }) => {
        if (!isOpen || tenants.has(tenant)) return;
        const own = this.#byTenant.get(tenant) ?? 0;
        // This stream is counted already.
        const free = this.#capacity - this.#count + 1;
        if (own >= most || own >= shareOfFree * free) throw tooMany(who);
        tenants.add(tenant);
        this.#byTenant.set(tenant, own + 1);
      },
      end: () => {
        if (!isOpen) return;
        isOpen = false;
        this.#count--;
        for (const tenant of tenants) this.#leave(tenant);
      },
    };
  }

  #leave(tenant: string): void {
    const left = (this.#byTenant.get(tenant) ?? 1) - 1;
    if (left === 0) this.#byTenant.delete(tenant);
    else this.#byTenant.set(tenant, left);
  }
}

/** One stream, and whose it is. */
export interface StreamShare {
  /** Counts it as one of the tenant. `most`: what a tenant may have in any case; `who` begins a sentence: `you have`. Throws TooManyRequestsError. */
  take(tenant: string, options: { readonly most?: number; readonly who: string }): void;
  /** The stream has ended. Can be called again. */
  end(): void;
}

function tooMany(who: string): TooManyStreamsError {
  return new TooManyStreamsError(
    `There are too many streams of notices: ${who} as many as possible. Close pages that you do not need, or ask again later`,
    { retryAfterSeconds },
  );
}
