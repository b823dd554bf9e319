import { TooManyRequestsError } from '../../../shared/platform/errors/errors.ts';

/** A tenant may have up to this multiple of the free streams. */
const shareOfFree = 3;
const retryAfterSeconds = 30;

class TooManyStreamsError extends TooManyRequestsError {
  override readonly name = 'TooManyStreamsError';
  override readonly code = 'too-many-streams';
}

/**
 * A tenant is a user or an organization. A single tenant gets three quarters of all streams, two get three sevenths each; for any number of
 * tenants, some streams are left for the next one.
 */
export class StreamShares {
  readonly #capacity: number;
  readonly #byTenant = new Map<string, number>();
  #count = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  open(): StreamShare {
    if (this.#count >= this.#capacity) throw tooMany('this server has');
    this.#count++;
    const tenants = new Set<string>();
    let isOpen = true;
    return {
      take: (tenant, { most = Number.POSITIVE_INFINITY, who }) => {
        if (!isOpen || tenants.has(tenant)) return;
        const own = this.#byTenant.get(tenant) ?? 0;
        // This stream has already been counted.
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

export interface StreamShare {
  /**
   * `most`: the absolute maximum of a tenant; `who`: the beginning of the error's sentence, for example `you have`. Throws
   * TooManyRequestsError.
   */
  take(tenant: string, options: { readonly most?: number; readonly who: string }): void;
  /** Repeating it is harmless. */
  end(): void;
}

function tooMany(who: string): TooManyStreamsError {
  return new TooManyStreamsError(
    `There are too many notification streams: ${who} the maximum number. Close pages that you do not need, or try again later`,
    { retryAfterSeconds },
  );
}
