import type { FastifyRequest, RouteOptions } from 'fastify';
import { hashToken, sameHash, tokenForm } from '../../../shared/platform/crypto/secret-token.ts';
import { AppError, UnauthenticatedError } from '../../../shared/platform/errors/errors.ts';
import { isUuid } from '../../../shared/platform/schema/uuid.ts';
import { describeUnknown, isLeaseLoss, LeaseLostError, leaseLostCode } from '../../../shared/updates/lease-loss.ts';
import { checkTogether } from '../../../shared/updates/rollback-detection/rollback-monitor.ts';
import { isActive } from '../../../shared/updates/update-state.ts';
import type { ApiContext } from '../../platform/api-context.ts';
import type { Access, Lease } from '../../platform/http/request.ts';
import { declaredBytes } from '../../platform/http/request-body.ts';
import type { UpdateParams } from '../../platform/protocol/core.ts';
import { revokedLeaseError } from '../../updates/revoked-lease-error.ts';
import { credential } from '../plugins/credential.ts';
import type { Authenticator } from './authenticator.ts';
import { LeaseCache } from './lease-cache.ts';

const elsewhereMessage = 'This lease is for another update or stack than the one at this URL';

type LeaseRoute = Extract<Access, { kind: 'lease' }>;

/** Dead, foreign and unknown leases all get 403, which the CLI treats as final (httpstate/state.go). */
export class LeaseAccess {
  readonly #context: ApiContext;
  readonly #credentials: Authenticator;
  readonly #known = new LeaseCache();
  /** Requests admitted by the lease cache alone. */
  readonly #assumed = new WeakSet<FastifyRequest>();

  constructor(context: ApiContext, credentials: Authenticator) {
    this.#context = context;
    this.#credentials = credentials;
  }

  /** Throws UnauthenticatedError, LeaseLostError. */
  async admit(request: FastifyRequest, route: LeaseRoute): Promise<Lease> {
    const token = credential(request, ['update-token']);
    if (token === null) throw new UnauthenticatedError('This call needs a lease: Authorization: update-token <lease>');
    const { updateId, ...ref } = request.params as UpdateParams;
    const form = tokenForm(token, 'lease-');
    if (!isUuid(updateId) || form === 'faulty' || form === 'other') {
      this.#credentials.refuseLease(request.raw);
      throw new LeaseLostError();
    }
    const hash = hashToken(token);
    const known = this.#known.find(updateId, ref, hash);
    if (known && this.#mayAssume(request, route)) {
      this.#assumed.add(request);
      return known;
    }
    const path = `${ref.organization}/${ref.project}/${ref.stack}/${updateId}`;
    const attempt = { updateId, hash, path, isKnown: known !== null };
    const update = await this.#credentials.findByLease(request.raw, attempt, async () => {
      const { updates } = this.#context;
      const found = await updates.findInStack(updateId, ref);
      if (found?.leaseHash && sameHash(found.leaseHash, hash)) return found;
      if (await updates.isLease(hash)) return 'elsewhere';
      // The cached lease may come from an earlier database, which has not been checked yet.
      await checkTogether(this.#context);
      return null;
    });
    // The same error whether or not anything exists at this address.
    if (update === 'elsewhere') throw new LeaseLostError(elsewhereMessage);
    if (!update) {
      if (known) this.#known.forget(updateId);
      throw this.#notValid();
    }
    if (isLeaseLoss(update.endReason)) throw await revokedLeaseError(this.#context, update, update.endReason);
    const isAlive = update.status === 'running' && !update.expired;
    if (!isAlive && !(route.ended && !isActive(update.status))) throw this.#notValid();
    const { stackId, epoch, journalVersion, exclusive, dryRun, baseBytes } = update;
    const lease = { updateId, stackId, epoch, journalVersion, exclusive, dryRun, baseBytes };
    this.#known.remember(ref, hash, lease);
    return { ...lease, hasPendingEntries: isAlive && update.hasPendingEntries };
  }

  /**
   * If a call of a fenced route fails, a dead lease and its reason are reported before any other fault. After a success that ends the
   * update, the lease is looked up again.
   */
  explainLosses(route: RouteOptions): void {
    const access = route.config?.access;
    if (access?.kind !== 'lease' || !access.fenced) return;
    const { fenced: _, ...lookedUp } = access;
    const { handler } = route;
    const admit = this.admit.bind(this);
    const known = this.#known;
    const assumed = this.#assumed;
    route.handler = async function (request, reply) {
      try {
        const result = await handler.call(this, request, reply);
        if (access.ended) known.forget(request.lease.updateId);
        return result;
      } catch (error) {
        // Compared by code, because the error may come from a worker.
        const isLost = error instanceof AppError && error.code === leaseLostCode;
        if (isLost) known.forget(request.lease.updateId);
        const isAssumed = assumed.delete(request);
        // Writes do not report why a lease is lost; a call that ends an update does.
        if (isLost ? !access.ended : isAssumed) await admit(request, lookedUp);
        throw error;
      }
    };
    // Handles errors found before the handler. An error that it throws goes to the error handler of the app.
    route.errorHandler = async (error, request) => {
      if (assumed.delete(request)) await admit(request, lookedUp);
      throw error;
    };
  }

  /** The same error for all leases, except for a note if the database may have lost some. */
  #notValid(): LeaseLostError {
    return new LeaseLostError(describeUnknown(this.#context.rollbackState.lostAt));
  }

  /** Large bodies are not received and stored for a lease that may be dead. */
  #mayAssume(request: FastifyRequest, route: LeaseRoute): boolean {
    const bytes = declaredBytes(request);
    return route.fenced === true && bytes !== null && bytes <= this.#context.config.limits.directBytes;
  }
}
