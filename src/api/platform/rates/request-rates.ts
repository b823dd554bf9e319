import type { IncomingMessage } from 'node:http';
import type { BlockList } from 'node:net';
import type { AppContext } from '../../../shared/context.ts';
import { createRateCounterRepository } from '../../../shared/identity/rate-counter-repository.ts';
import { TooManyRequestsError } from '../../../shared/platform/errors/errors.ts';
import { LimitedWarning } from '../../../shared/platform/logger/limited-warning.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import type { Metrics } from '../../../shared/platform/telemetry/metrics.ts';
import type { Caller } from '../http/request.ts';
import { addressGroup, clientAddress } from '../server/client-address.ts';
import { type Admission, SharedRateCounters, type Source } from './shared-rate-counters.ts';

type Subject = 'token' | 'user' | 'address';

interface RequestSource extends Source {
  readonly subject: Subject;
}

export interface RequestRatesOptions {
  /** Requests per minute; 0: no limit. */
  readonly perMinute: Readonly<Record<Subject, number>>;
  readonly trustedProxies: BlockList;
  readonly counters: SharedRateCounters;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

const phrases: Readonly<Record<Subject, string>> = {
  token: 'with this API token',
  user: 'by this user',
  address: 'from this address',
};

/** Since 3.256, the CLI repeats reads after a 429. */
export class RequestRateError extends TooManyRequestsError {
  override readonly name = 'RequestRateError';
  override readonly code = 'request-rate';

  constructor(subject: Subject, perMinute: number, retryAfterSeconds: number) {
    super(
      `Too many requests ${phrases[subject]}: at most ${perMinute} per minute. Please retry in ${retryAfterSeconds} s`,
      { retryAfterSeconds },
    );
  }
}

export interface Delay {
  /** The wait in ms; null: the request is refused. */
  readonly waitMs: number | null;
  readonly error: RequestRateError;
  note(outcome: 'delayed' | 'rejected' | 'allowed'): void;
}

/** Limits requests per token, user and address, across all replicas. */
export class RequestRates {
  readonly #options: RequestRatesOptions;
  readonly #warning: LimitedWarning;

  constructor(options: RequestRatesOptions) {
    this.#options = options;
    this.#warning = new LimitedWarning(options.logger);
  }

  /** Null: the request may proceed now. */
  takeForAddress(request: IncomingMessage, maxWaitMs: number): Delay | null {
    const { perMinute, trustedProxies } = this.#options;
    if (perMinute.address === 0) return null;
    const address = addressGroup(clientAddress(request, trustedProxies));
    return this.#take([source('address', address, perMinute.address)], maxWaitMs, { address });
  }

  /** Null: the request may proceed now. */
  takeForCaller({ login, tokenId, tokenName, userId }: Caller, maxWaitMs: number): Delay | null {
    const { perMinute } = this.#options;
    const sources: RequestSource[] = [];
    if (perMinute.token > 0) sources.push(source('token', tokenId, perMinute.token));
    if (perMinute.user > 0 && userId !== null) sources.push(source('user', userId, perMinute.user));
    return sources.length === 0 ? null : this.#take(sources, maxWaitMs, { login, tokenId, tokenName });
  }

  close(): Promise<void> {
    return this.#options.counters.close();
  }

  #take(sources: readonly RequestSource[], maxWaitMs: number, who: Readonly<Record<string, unknown>>): Delay | null {
    const admission = this.#options.counters.take(sources, maxWaitMs);
    return admission && this.#delay(admission, who);
  }

  #delay({ isCounted, source, waitMs }: Admission<RequestSource>, who: Readonly<Record<string, unknown>>): Delay {
    const { subject, perMinute } = source;
    const error = new RequestRateError(subject, perMinute, Math.ceil(waitMs / 1000));
    const note: Delay['note'] = (outcome) => {
      this.#options.metrics.requestsLimited.labels(subject, outcome).inc();
      if (outcome === 'rejected')
        this.#warning.warn(subject, { ...who, perMinute }, `too many requests per minute ${phrases[subject]}`);
    };
    return { waitMs: isCounted ? waitMs : null, error, note };
  }
}

function source(subject: Subject, id: string, perMinute: number): RequestSource {
  return { subject, name: `${subject} ${id}`, perMinute };
}

/** Closed with the context. */
export function createRequestRates({ config, db, lifecycle, logger, metrics }: AppContext): RequestRates {
  const { report } = createRateCounterRepository(db, 'requests');
  const { requestsPerMinute: perMinute, trustedProxies } = config;
  const rates = new RequestRates({
    perMinute,
    trustedProxies,
    counters: new SharedRateCounters({ report, logger }),
    metrics,
    logger,
  });
  lifecycle.onClose('work', 'request rates', () => rates.close());
  return rates;
}
