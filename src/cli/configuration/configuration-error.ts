import { OperatorError } from '../../shared/platform/errors/errors.ts';

/** The message is enough to fix the configuration. */
export class ConfigurationError extends OperatorError {}

/** The server refuses one call. */
export class CallRefusedError extends ConfigurationError {
  readonly status: number;
  /** An earlier attempt got no response, and may have made the change. */
  mayBeMade = false;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
