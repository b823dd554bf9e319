/** Returns null for a page of a proxy, whose status is enough. */
export function refusalIn(text: string): string | null {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === 'string' ? message : null;
  } catch {
    return null;
  }
}

/** The wait in ms that a Retry-After header requests, in seconds or as a date. Null without a valid one. */
export function retryAfterMs(header: string | null): number | null {
  if (header === null) return null;
  const seconds = Number(header);
  const asked = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now();
  return asked >= 0 ? asked : null;
}
