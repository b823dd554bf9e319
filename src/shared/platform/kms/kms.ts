import { OperatorError } from '../errors/errors.ts';

/** The service never reveals the key, but wraps and unwraps. */
export interface Kms {
  /** E.g. `AWS KMS key alias/holdfast`. Contains no credentials. */
  readonly name: string;
  /** Wraps up to 1 KiB. A null `context` is no binding. Throws KmsError. */
  wrap(plain: Buffer, context: string | null): Promise<Buffer>;
  /** Throws KmsError. */
  unwrap(wrapped: Buffer, context: string | null): Promise<Buffer>;
}

/**
 * `passing`: the call may work later. `refused`: it cannot work with these settings, credentials or the present state of the key.
 * `mismatch`: the bytes were wrapped by another key or for another context.
 */
export type KmsFault = 'passing' | 'refused' | 'mismatch';

/** The message names the KMS key and the reason, but never credentials or key material. */
export class KmsError extends OperatorError {
  override readonly name = 'KmsError';
  readonly fault: KmsFault;
  /** The message without the name of the key. */
  readonly reason: string;

  constructor(kms: { readonly name: string }, fault: KmsFault, reason: string, options: ErrorOptions = {}) {
    super(`${kms.name}: ${reason}`, options);
    this.fault = fault;
    this.reason = reason;
  }
}

/** The file with Vault's token does not exist yet, or is empty. */
export class VaultTokenMissingError extends OperatorError {
  override readonly name = 'VaultTokenMissingError';
}

/** What the URLs of the services do not contain. */
export interface KmsAccess {
  /** Called for each request, because agents renew the token. Null if none is set. Throws VaultTokenMissingError. */
  readonly readVaultToken: () => string | null;
  readonly timeoutMs: number;
}
