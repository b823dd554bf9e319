/**
 * Nothing of a transaction was committed, because a statement in it had failed, whose error its work has not thrown: that is the `cause`, if it is
 * known. What the work returned is void. slonik does not repeat the work, which would only conceal its error again.
 */
export class RolledBackError extends Error {
  override readonly name = 'RolledBackError';

  constructor(cause?: unknown) {
    super('The transaction was rolled back, because a statement in it had failed', { cause });
  }
}

/** Throws RolledBackError for the COMMIT of a transaction that has failed: Postgres rolls it back, and reports no error. */
export function assertCommitted(text: string, { command }: { readonly command: string }, cause?: unknown): void {
  if (command === 'ROLLBACK' && !/^\s*rollback\b/i.test(text)) throw new RolledBackError(cause);
}
