import type { FastifyRequest, RouteOptions } from 'fastify';
import { hashToken, sameHash } from '../../shared/platform/crypto/secret-token.ts';
import { UnauthenticatedError } from '../../shared/platform/errors/errors.ts';
import type { UpdateParams } from '../../shared/protocol/core.ts';
import { LeaseLostError } from '../../shared/updates/lease.ts';
import { isActive } from '../../shared/updates/update-state.ts';
import type { ApiContext } from '../api-context.ts';
import type { Access, Lease } from '../request.ts';
import { KnownLeases } from '../updates/known-leases.ts';
import { declaredBytes } from './body.ts';
import { credential } from './credential.ts';

const updateIdPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether the text can be the id of an update. */
export function isUpdateId(text: string): boolean {
  return updateIdPattern.test(text);
}

type LeaseRoute = Extract<Access, { kind: 'lease' }>;

/** Admits the holders of leases: 403 for every one that is dead, foreign or unknown, which the CLI takes as final (httpstate/state.go). */
export class LeaseAccess {
  readonly #context: ApiContext;
  readonly #known = new KnownLeases();
  /** Requests let in with a lease seen before. */
  readonly #assumed = new WeakSet<FastifyRequest>();

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** Throws UnauthenticatedError, LeaseLostError. */
  async admit(request: FastifyRequest, route: LeaseRoute): Promise<Lease> {
    const token = credential(request, ['update-token']);
    if (token === null) throw new UnauthenticatedError('This call needs a lease: Authorization: update-token <lease>');
    const { updateId, ...ref } = request.params as UpdateParams;
    if (!isUpdateId(updateId)) throw new LeaseLostError();
    const tokenHash = hashToken(token);
    if (this.#mayAssume(request, route)) {
      const lease = this.#known.find(updateId, ref, tokenHash);
      if (lease) {
        this.#assumed.add(request);
        return lease;
      }
    }
    const update = await this.#context.updates.findInStack(updateId, ref);
    if (!update?.leaseHash || !sameHash(update.leaseHash, tokenHash)) throw new LeaseLostError();
    const alive = update.status === 'running' && !update.expired;
    if (!alive && !(route.ended && !isActive(update.status))) throw new LeaseLostError();
    const { stackId, epoch, journalVersion, exclusive } = update;
    const lease = { updateId, stackId, epoch, journalVersion, exclusive };
    this.#known.remember(ref, tokenHash, lease);
    return lease;
  }

  /** Lets a fenced route that refuses a call say first whether the lease is dead, whatever else is wrong with the call. */
  guard(route: RouteOptions): void {
    const access = route.config?.access;
    if (access?.kind !== 'lease' || !access.fenced) return;
    const { handler } = route;
    const admit = this.admit.bind(this);
    const assumed = this.#assumed;
    route.handler = async function (request, reply) {
      try {
        return await handler.call(this, request, reply);
      } catch (error) {
        if (assumed.delete(request)) await admit(request, { kind: 'lease' });
        throw error;
      }
    };
  }

  /** A large body is not taken in, and handed over, for a lease that may be dead. */
  #mayAssume(request: FastifyRequest, route: LeaseRoute): boolean {
    const bytes = declaredBytes(request);
    return route.fenced === true && bytes !== null && bytes <= this.#context.config.limits.directBytes;
  }
}
