import { ConflictError, TooManyRequestsError, UnavailableError } from '../platform/errors/errors.ts';

/** What an organization may be limited in. */
export const quotaNames = ['stacks', 'keptBytes', 'inFlightBytes', 'updates', 'requestsPerSecond'] as const;
export type QuotaName = (typeof quotaNames)[number];

/** Limits as they are set: null is as the settings have it, 0 is no limit. */
export type QuotaOverrides = Readonly<Record<QuotaName, number | null>>;

/** Limits as they hold; null is no limit. */
export type QuotaLimits = Readonly<Record<QuotaName, number | null>>;

/** The options of `holdfast admin set-quota`. */
export const quotaOptions: Readonly<Record<QuotaName, string>> = {
  stacks: 'stacks',
  keptBytes: 'bytes',
  inFlightBytes: 'in-flight-bytes',
  updates: 'updates',
  requestsPerSecond: 'requests-per-second',
};

export const noOverrides: QuotaOverrides = {
  stacks: null,
  keptBytes: null,
  inFlightBytes: null,
  updates: null,
  requestsPerSecond: null,
};

/** The limits that hold by the settings (`defaults`, where 0 is no limit) and by what was set for an organization. */
export function limitsBy(defaults: Readonly<Record<QuotaName, number>>, overrides: QuotaOverrides): QuotaLimits {
  const limit = (name: QuotaName): number | null => (overrides[name] ?? defaults[name]) || null;
  return {
    stacks: limit('stacks'),
    keptBytes: limit('keptBytes'),
    inFlightBytes: limit('inFlightBytes'),
    updates: limit('updates'),
    requestsPerSecond: limit('requestsPerSecond'),
  };
}

function whoToAsk(organization: string, quota: QuotaName): string {
  return `ask the operator of this server for more (holdfast admin set-quota ${organization} --${quotaOptions[quota]} <number>)`;
}

/** The organization has as much as it may. Nothing was done. 409, which the CLI prints as it is and does not repeat. */
export class QuotaReachedError extends ConflictError {
  override readonly name = 'QuotaReachedError';
  override readonly code = 'quota-reached';
}

/** When a stack is created, the CLI looks for the words `you are using` (pkg/backend/httpstate/backend.go), and prints the sentence alone. */
export function tooManyStacks(organization: string, limit: number, used: number): QuotaReachedError {
  return new QuotaReachedError(
    `Organization ${organization} may have ${limit} stacks, and you are using ${used}: remove one, or ${whoToAsk(organization, 'stacks')}`,
  );
}

export function tooManyUpdates(organization: string, limit: number, used: number): QuotaReachedError {
  return new QuotaReachedError(
    `Organization ${organization} may run ${limit} updates at once, and ${used} are running: retry when one has ended, or ${whoToAsk(organization, 'updates')}`,
  );
}

export function tooManyBytes(organization: string, limit: number, used: number): QuotaReachedError {
  return new QuotaReachedError(
    `Organization ${organization} may store ${limit} bytes, and you are using ${used}: remove stacks, or ${whoToAsk(organization, 'keptBytes')}`,
  );
}

/** The organization's bodies in flight are as many as they may be, and have been for as long as a call waits. The CLI repeats writes. */
export class TooManyInFlightError extends UnavailableError {
  override readonly name = 'TooManyInFlightError';
  override readonly code = 'quota-in-flight';
  constructor(organization: string, limit: number) {
    super(
      `Organization ${organization} may have ${limit} body bytes in flight at once, and other bodies are in flight: please retry, or ${whoToAsk(organization, 'inFlightBytes')}`,
      { retryAfterSeconds: 1 },
    );
  }
}

export class TooFastError extends TooManyRequestsError {
  override readonly name = 'TooFastError';
  override readonly code = 'quota-requests';
  constructor(organization: string, limit: number, retryAfterSeconds: number) {
    super(
      `Organization ${organization} may make ${limit} requests per second: please retry later, or ${whoToAsk(organization, 'requestsPerSecond')}`,
      { retryAfterSeconds },
    );
  }
}
