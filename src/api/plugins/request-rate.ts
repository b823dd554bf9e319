import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { AppError } from '../../shared/platform/errors/errors.ts';
import type { StackParams } from '../../shared/protocol/core.ts';
import { TooFastError } from '../../shared/quotas/quotas.ts';
import type { ApiServices } from '../api-services.ts';
import type { Delay } from '../rates/request-rates.ts';
import type { RateClass } from '../request.ts';

/** How long a call waits for its turn, in ms. Those that the CLI repeats, or that are only refused between updates, do not wait. */
const maxWaitMs: Readonly<Record<RateClass, number>> = { never: 0, needed: 0, repeated: 0, held: 10_000 };

/** Calls over the limit of their address that are decided on when the caller is known. */
const overAddress = new WeakMap<FastifyRequest, Delay>();

/**
 * Limits the requests of each address, before their token is looked up. The app does not start with a route that declares no class
 * (`config.rate`).
 */
export function registerAddressRate(app: FastifyInstance, { rates }: ApiServices): void {
  app.addHook('onRoute', ({ config, method, url }) => {
    if (!config?.rate)
      throw new Error(`Route ${String(method)} ${url} does not declare how it is limited (config.rate)`);
  });
  app.addHook('onRequest', (request, _reply, done) => {
    const rate = rateOf(request);
    const late = rate === 'never' ? null : rates.takeForAddress(request.raw, maxWaitMs[rate]);
    if (!late) done();
    else if (rate === 'needed') {
      overAddress.set(request, late);
      done();
    } else void waitForTurn(request, late).then(() => done(), done);
  });
}

/** Limits the requests of each token and user, and those of the members of an organization with a quota. */
export function registerCallerRate(app: FastifyInstance, services: ApiServices): void {
  const { rates } = services;
  const quota = new OrganizationRates(services);
  app.addHook('onRequest', async (request) => {
    const rate = rateOf(request);
    // Lease routes have no caller.
    if (rate === 'never' || !request.caller) return;
    const late = overAddress.get(request) ?? rates.takeForCaller(request.caller, maxWaitMs[rate]);
    const tooFast = await quota.take(request);
    if (!late && !tooFast) return;
    if (rate === 'needed' && (await services.stacks.isBusy(request.params as StackParams))) {
      late?.note('allowed');
      return;
    }
    if (tooFast) throw quota.refuse(tooFast);
    if (late) await waitForTurn(request, late);
  });
}

function rateOf(request: FastifyRequest): RateClass {
  // Unknown paths have none, and are answered before this.
  return request.routeOptions.config.rate ?? 'never';
}

/** Resolves when it is the turn of a call. Throws RequestRateError if it would have to wait too long, or its client is gone. */
async function waitForTurn({ raw }: FastifyRequest, { error, note, waitMs }: Delay): Promise<void> {
  if (waitMs !== null) await delay(waitMs);
  const isAdmitted = waitMs !== null && !raw.socket.destroyed;
  note(isAdmitted ? 'delayed' : 'rejected');
  if (!isAdmitted) throw error;
}

/** A command makes a dozen calls at once, so a burst of this many seconds' worth of calls, and at least `minBurst`, is allowed. */
const burstSeconds = 5;
const minBurst = 20;
/** All buckets are dropped when there are more than this. */
const maxBuckets = 10_000;

interface Bucket {
  tokens: number;
  at: number;
}

/** Requests of the members of organizations with a quota on requests per second, as counted by this process. */
class OrganizationRates {
  readonly #quotas: ApiServices['quotas'];
  readonly #buckets = new Map<string, Bucket>();

  constructor({ quotas }: ApiServices) {
    this.#quotas = quotas;
  }

  /** Counts a call. Returns the error if the organization makes too many; the call does not count then. */
  async take({ caller, params }: FastifyRequest): Promise<TooFastError | null> {
    const { organization } = params as { organization?: string };
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

/** Takes a token for one call from the organization's bucket. Returns the missing part of the token, 0 if there was one. */
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
