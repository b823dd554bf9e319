import { OperatorError } from '../errors/errors.ts';

/** A key in a key management service. The service never hands it out: it wraps and unwraps. */
export interface Kms {
  /** For messages, such as `AWS KMS key alias/holdfast`. Contains no credentials. */
  readonly name: string;
  /** Wraps up to 1 KiB, bound to `context`; null: to nothing. Throws KmsError. */
  wrap(plain: Buffer, context: string | null): Promise<Buffer>;
  /** Reverses `wrap`. Throws KmsError. */
  unwrap(wrapped: Buffer, context: string | null): Promise<Buffer>;
}

/**
 * What a failed call of a KMS means: it may work later (`passing`), not with these settings, credentials or this state of
 * the key (`refused`), or the bytes were wrapped by another key or for another context (`mismatch`).
 */
export type KmsFault = 'passing' | 'refused' | 'mismatch';

/** A call of a KMS failed. The message names the KMS key and the reason, never credentials or key material. */
export class KmsError extends OperatorError {
  override readonly name = 'KmsError';
  readonly fault: KmsFault;
  /** The part of the message that follows the name of the key. */
  readonly reason: string;

  constructor(kms: { readonly name: string }, fault: KmsFault, reason: string, options: ErrorOptions = {}) {
    super(`${kms.name}: ${reason}`, options);
    this.fault = fault;
    this.reason = reason;
  }
}

/** The file with the token of Vault is not there yet, or empty. */
export class VaultTokenMissingError extends OperatorError {
  override readonly name = 'VaultTokenMissingError';
}

/** Options that the services need besides their URLs. */
export interface KmsAccess {
  /** Reads the token of Vault; called for each request, because agents renew it. Null: none is set. Throws VaultTokenMissingError. */
  readonly readVaultToken: () => string | null;
  /** Maximum time of one request, in ms. */
  readonly timeoutMs: number;
}
