import { AppError, type AppErrorOptions } from '../../../shared/platform/errors/errors.ts';

/** Keywords of RFC 7644, section 3.12. */
type ScimType =
  | 'invalidFilter'
  | 'invalidPath'
  | 'invalidSyntax'
  | 'invalidValue'
  | 'mutability'
  | 'noTarget'
  | 'tooMany'
  | 'uniqueness';

export class ScimError extends AppError {
  override readonly name = 'ScimError';
  readonly code = 'scim';
  readonly status: number;
  readonly scimType: ScimType;

  constructor(scimType: ScimType, message: string, options: AppErrorOptions = {}) {
    super(message, options);
    this.scimType = scimType;
    this.status = scimType === 'uniqueness' ? 409 : 400;
  }
}
