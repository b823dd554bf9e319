/** Returns the database URL with servers that accept no writes included. */
export function acceptingAny(url: string): string {
  const rest = url.replace(/([?&])target_session_attrs=[^&]*&?/, '$1').replace(/[?&]$/, '');
  return `${rest}${rest.includes('?') ? '&' : '?'}target_session_attrs=any`;
}
