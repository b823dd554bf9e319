import type { Quotas } from '../../../shared/access/quotas/quota-service.ts';
import { TooFastError } from '../../../shared/access/quotas/quotas.ts';
import type { AppError } from '../../../shared/platform/errors/errors.ts';
import type { Caller } from '../http/request.ts';

/** A command makes a dozen calls at once, so a burst of this many seconds' worth, and at least `minBurst`, is allowed. */
const burstSeconds = 5;
const minBurst = 20;
/** All buckets are dropped when there are more than this. */
const maxBuckets = 10_000;

interface Bucket {
  tokens: number;
  at: number;
}

/** Counts the requests of organizations with a quota on requests per second, in this process. */
export class OrganizationRates {
  readonly #quotas: Quotas;
  readonly #buckets = new Map<string, Bucket>();

  constructor({ quotas }: { readonly quotas: Quotas }) {
    this.#quotas = quotas;
  }

  /** A refused call is not counted. */
  async take(caller: Pick<Caller, 'belongs'>, organization: string | undefined): Promise<TooFastError | null> {
    // Non-members must not use up the members' limit.
    if (organization === undefined || !caller.belongs) return null;
    const { requestsPerSecond: limit } = await this.#quotas.limitsOf(organization);
    if (limit === null) return null;
    const missing = takeToken(this.#buckets, organization, limit);
    return missing === 0 ? null : new TooFastError(organization, limit, Math.max(Math.ceil(missing / limit), 1));
  }

  refuse(error: TooFastError): AppError {
    this.#quotas.refused('requestsPerSecond');
    return error;
  }
}

/** Returns the missing part of a token; 0 if one was available. */
function takeToken(buckets: Map<string, Bucket>, organization: string, perSecond: number): number {
  const now = performance.now();
  const maxTokens = Math.max(perSecond * burstSeconds, minBurst);
  if (buckets.size > maxBuckets) buckets.clear();
  const bucket = buckets.get(organization) ?? { tokens: maxTokens, at: now };
  bucket.tokens = Math.min(bucket.tokens + ((now - bucket.at) / 1000) * perSecond, maxTokens);
  bucket.at = now;
  buckets.set(organization, bucket);
  if (bucket.tokens < 1) return 1 - bucket.tokens;
  bucket.tokens -= 1;
  return 0;
}
