import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { StackParams } from '../protocol/core.ts';
import type { OrganizationRates } from '../rates/organization-rates.ts';
import type { Delay, RequestRates } from '../rates/request-rates.ts';
import type { Caller, RateClass } from './request.ts';

export interface Services {
  readonly organizationRates: OrganizationRates;
  readonly rates: RequestRates;
  readonly stacks: { isBusy(ref: StackParams, caller: Caller): Promise<boolean> };
}

/** How long a call may be delayed. A call does not wait if the CLI repeats it, or if it is only refused between updates. */
export const maxWaitMs: Readonly<Record<RateClass, number>> = { never: 0, needed: 0, repeated: 0, held: 10_000 };

/** Calls over the limit of their address; whether they proceed is decided once the caller is known. */
const overAddress = new WeakMap<FastifyRequest, Delay>();

/** Limits requests before the lookup of their token. The app does not start if a route declares no class (`config.rate`). */
export function registerAddressRate(app: FastifyInstance, { rates }: Services): void {
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
    } else void waitForRate(request, late).then(() => done(), done);
  });
}

/** Limits the requests of each token and user, and of the members of an organization with a quota. */
export function registerCallerRate(app: FastifyInstance, services: Services): void {
  const { organizationRates: quota, rates } = services;
  app.addHook('onRequest', async (request) => {
    const rate = rateOf(request);
    // Lease routes have no caller.
    if (rate === 'never' || !request.caller) return;
    const late = overAddress.get(request) ?? rates.takeForCaller(request.caller, maxWaitMs[rate]);
    const tooFast = await quota.take(request.caller, (request.params as Partial<StackParams>).organization);
    if (!late && !tooFast) return;
    if (rate === 'needed' && (await services.stacks.isBusy(request.params as StackParams, request.caller))) {
      late?.note('allowed');
      return;
    }
    if (tooFast) throw quota.refuse(tooFast);
    if (late) await waitForRate(request, late);
  });
}

function rateOf(request: FastifyRequest): RateClass {
  // Unknown paths have no rate, and are answered earlier.
  return request.routeOptions.config.rate ?? 'never';
}

/** Resolves when the call may proceed. Throws RequestRateError if it would have to wait too long, or its client is gone. */
export async function waitForRate({ raw }: Pick<FastifyRequest, 'raw'>, { error, note, waitMs }: Delay): Promise<void> {
  if (waitMs !== null) await delay(waitMs);
  const isAdmitted = waitMs !== null && !raw.socket.destroyed;
  note(isAdmitted ? 'delayed' : 'rejected');
  if (!isAdmitted) throw error;
}
