import { AppError, type AppErrorOptions } from '../../../shared/platform/errors/errors.ts';

/** Codes of RFC 6749 (5.2) and RFC 8693 (2.2.2). */
export type ExchangeErrorCode = 'invalid_request' | 'invalid_grant' | 'invalid_scope' | 'unsupported_grant_type';

/** The caller gets only the code; `reason` is for the log. */
export class ExchangeError extends AppError {
  override readonly name = 'ExchangeError';
  readonly status = 400;
  readonly code: ExchangeErrorCode;
  /** The reason is for the log and the audit log. */
  readonly reason: string;

  constructor(code: ExchangeErrorCode, reason: string, options?: AppErrorOptions) {
    super(code === 'invalid_grant' ? refusedText : reason, options);
    this.code = code;
    this.reason = reason;
  }
}

const refusedText =
  'The token was not accepted: it is not valid, or no policy of the organization allows this. See the audit log and the server log for the reason.';

export function refusedGrant(reason: string, cause?: unknown): ExchangeError {
  return new ExchangeError('invalid_grant', reason, { cause });
}
