/** A user-supplied address, if it is an HTTP URL that a page may link to; otherwise null. */
export function httpUrl(address: string | null): string | null {
  if (address === null || address.length > 2_000 || !URL.canParse(address)) return null;
  const url = new URL(address);
  return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : null;
}
