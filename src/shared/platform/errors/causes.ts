/** Returns the code of a system error, e.g. ENOENT. */
export function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
}

export function messageOf(error: unknown): string {
  // No address of a host could be reached.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** Includes causes. Omits all properties except the code: they may contain a URL with its password, or values of a statement. */
export function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = codeOf(error);
  const text = `${error.stack ?? error.message}${code === undefined ? '' : ` (${code})`}`;
  const causes = [
    ...(error.cause === undefined ? [] : [error.cause]),
    ...(error instanceof AggregateError ? error.errors : []),
  ];
  return [text, ...causes.map((cause) => `caused by ${stackOf(cause)}`)].join('\n');
}
