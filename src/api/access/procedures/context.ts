import type { FastifyRequest } from 'fastify';
import PQueue from 'p-queue';
import type { AuditAction } from '../../../shared/audit/audit-actions.ts';
import { type AuditEvent, type AuditSource, requestSource } from '../../../shared/audit/audit-event.ts';
import type { Config } from '../../../shared/platform/config/config.ts';
import type { ReadOnlyMode } from '../../../shared/platform/read-only/read-only-mode.ts';
import type { Metrics } from '../../../shared/platform/telemetry/metrics.ts';
import type { StateScan, StateScans } from '../../platform/admission/state-scans.ts';
import { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import { whoCalls } from '../../platform/audit-trail/calling-source.ts';
import type { Refusals } from '../../platform/audit-trail/refusals.ts';
import type { Caller } from '../../platform/http/request.ts';
import { maxWaitMs, waitForRate } from '../../platform/http/request-rate.ts';
import type { RequestMemory } from '../../platform/http/response-memory.ts';
import type { OrganizationRates } from '../../platform/rates/organization-rates.ts';
import type { RequestRates } from '../../platform/rates/request-rates.ts';
import { clientAddress } from '../../platform/server/client-address.ts';
import { assertAuthorized, type CallerAccess, type CallTarget } from '../authorize-call.ts';

export const nowhere: CallTarget = { organization: null, project: null, stack: null };

/** The number is limited, because other requests also need connections to Postgres. */
const callsAtOnce = 4;

/** The holder of a token, or the user of a session. */
export interface Holder {
  /** The holder as a caller without a target. */
  readonly caller: Caller;
  /** Throws UnauthenticatedError. */
  findAt(target: CallTarget): Promise<Caller>;
  /** Throws UnauthenticatedError if the session or the token has ended since the request arrived. */
  confirm(): Promise<void>;
}

export interface Answering {
  readonly memory: RequestMemory;
  readonly gone: AbortSignal;
}

/** Each domain adds its services next to its procedures. */
export interface ProcedureServices {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly rates: RequestRates;
  readonly organizationRates: OrganizationRates;
  readonly scans: StateScans;
  readonly readOnly: ReadOnlyMode;
}

export interface ProcedureContext {
  readonly services: ProcedureServices;
  readonly request: RequestCalls;
}

/** One request; its calls may concern different organizations. */
export class RequestCalls {
  readonly #services: ProcedureServices;
  readonly #holder: Holder;
  readonly #request: FastifyRequest;
  readonly #refusals: Refusals;
  readonly #answering: Answering | null;
  readonly #calls = new PQueue({ concurrency: callsAtOnce });
  #scan: StateScan | null = null;

  /** `answering`: null if the response is a stream. */
  constructor(
    services: ProcedureServices,
    request: FastifyRequest,
    holder: Holder,
    refusals: Refusals,
    answering: Answering | null = null,
  ) {
    this.#answering = answering;
    this.#services = services;
    this.#request = request;
    this.#holder = holder;
    this.#refusals = refusals;
  }

  get log(): FastifyRequest['log'] {
    return this.#request.log;
  }

  /** Waits until the other calls of the request leave capacity. */
  whenAdmitted<T>(call: () => Promise<T>): Promise<T> {
    return this.#calls.add(call);
  }

  /** Counts the call. Throws UnauthenticatedError, NotFoundError, ForbiddenError, RequestRateError, TooFastError. */
  async admit(access: CallerAccess, target: CallTarget, action: AuditAction | null = null): Promise<Caller> {
    const { organizationRates, rates } = this.#services;
    const { organization } = target;
    const caller = organization === null ? this.#holder.caller : await this.#holder.findAt(target);
    const late = rates.takeForCaller(caller, maxWaitMs.held);
    const tooFast = await organizationRates.take(caller, organization ?? undefined);
    if (tooFast) throw organizationRates.refuse(tooFast);
    if (late) await waitForRate(this.#request, late);
    try {
      assertAuthorized(caller, access, target, action);
    } catch (error) {
      if (action !== null) await this.recordRefusal(caller, { access, action, target, error });
      throw error;
    }
    return caller;
  }

  /** Does not count the call. */
  get holder(): Holder {
    return this.#holder;
  }

  /** Disconnects a client that does not read its response. */
  disconnect(): void {
    this.#request.raw.socket.destroy();
  }

  scanOf(caller: Caller, organization: string): StateScan {
    const answering = this.#answering;
    if (answering === null) throw new Error('Streams cannot read whole states');
    const { gone: signal, memory } = answering;
    this.#scan ??= this.#services.scans.open({
      ...{ caller, organization, signal },
      reserveMemory: (bytes, organization) => memory.hold(bytes, organization),
    });
    return this.#scan;
  }

  /** Null if this is not known. */
  get gone(): AbortSignal | null {
    return this.#answering?.gone ?? null;
  }

  /** Call when all calls are answered. */
  end(): void {
    this.#scan?.end();
  }

  trail(caller: Caller, access: CallerAccess, action: AuditAction): AuditTrail {
    return new AuditTrail(this.#sourceOf(caller, access), action, this.#services.readOnly);
  }

  /** Records refused calls of members only. */
  async recordRefusal(
    caller: Caller,
    refused: {
      readonly access: CallerAccess;
      readonly action: AuditAction;
      readonly target: CallTarget;
      readonly error: unknown;
    },
  ): Promise<void> {
    const { access, action, error, target } = refused;
    const { organization, project, stack } = target;
    if (organization === null || !caller.belongs || !isForbidden(error)) return;
    const object = [organization, project, stack].filter((part) => part !== null).join('/');
    const event: AuditEvent = { action, organization, object, details: { reason: error.message } };
    await this.#refusals.record(this.#sourceOf(caller, access), caller, event, this.log);
  }

  #sourceOf(caller: Caller, access: CallerAccess): AuditSource {
    const { headers, id, raw } = this.#request;
    const address = clientAddress(raw, this.#services.config.trustedProxies);
    return requestSource(whoCalls(caller, access), { address, userAgent: headers['user-agent'], id });
  }
}

function isForbidden(error: unknown): error is Error {
  return error instanceof Error && (error as { status?: number }).status === 403;
}
