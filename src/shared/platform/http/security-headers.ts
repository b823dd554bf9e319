/**
 * Every response of every listener has these headers. Responses are meant for programs, so browsers may not use them. Without an
 * Access-Control header, pages of other sites cannot call the API. HSTS is left to the proxy, because it would apply to all ports of the
 * host.
 */
export const securityHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;
