import { ConflictError, TooManyRequestsError, UnavailableError } from '../../platform/errors/errors.ts';

export const quotaNames = ['stacks', 'keptBytes', 'inFlightBytes', 'updates', 'requestsPerSecond'] as const;
export type QuotaName = (typeof quotaNames)[number];

/** Limits set for one organization. Null uses the settings, 0 means no limit. */
export type QuotaOverrides = Readonly<Record<QuotaName, number | null>>;

/** Null for no limit. */
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

/** Overrides win over the settings (`defaults`, where 0 means no limit). */
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

/** Nothing was changed. The CLI prints a 409 unchanged and does not retry the call. */
export class QuotaReachedError extends ConflictError {
  override readonly name = 'QuotaReachedError';
  override readonly code = 'quota-reached';
}

/**
 * When creating a stack, the CLI searches the message for `you are using` (pkg/backend/httpstate/backend.go) and then prints only the
 * message.
 */
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
    `Organization ${organization} may store ${limit} bytes, and you are using ${used}: remove stacks or versions of policy packs for good, or ${whoToAsk(organization, 'keptBytes')}`,
  );
}

/** The organization's bodies in flight stayed at their limit for the longest wait of a call. The CLI retries writes. */
export class TooManyInFlightError extends UnavailableError {
  override readonly name = 'TooManyInFlightError';
  override readonly code = 'quota-in-flight';
  constructor(organization: string, limit: number, used: number) {
    super(
      `Organization ${organization} may have ${limit} body bytes in flight at once, and ${used} are: please retry, or ${whoToAsk(organization, 'inFlightBytes')}`,
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
