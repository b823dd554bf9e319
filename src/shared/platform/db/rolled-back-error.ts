/**
 * A transaction committed nothing, because its work has not thrown the error of a failed statement, which is the `cause` if known. The
 * result of the work is void. slonik does not repeat the work, which would only hide its error again.
 */
export class RolledBackError extends Error {
  override readonly name = 'RolledBackError';

  constructor(cause?: unknown) {
    super('The transaction was rolled back, because a statement in it had failed', { cause });
  }
}

/** At the COMMIT of a failed transaction, Postgres rolls back without an error. */
export function assertCommitted(text: string, { command }: { readonly command: string }, cause?: unknown): void {
  if (command === 'ROLLBACK' && !/^\s*rollback\b/i.test(text)) throw new RolledBackError(cause);
}
