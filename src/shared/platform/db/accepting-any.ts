/** Also accepts servers that take no writes. */
export function acceptingAny(url: string): string {
  const rest = url.replace(/([?&])target_session_attrs=[^&]*&?/, '$1').replace(/[?&]$/, '');
  return `${rest}${rest.includes('?') ? '&' : '?'}target_session_attrs=any`;
}
