import { Type } from 'typebox';

/** Settings of access, rate limits, and the addresses that servers may call. */
export const accessSettings = {
  HOLDFAST_BOOTSTRAP: Type.Optional(
    Type.String({
      description:
        'JSON or YAML [file](administration.md#bootstrap-file) with organizations, members and tokens, applied at each start.',
      minLength: 1,
    }),
  ),
  HOLDFAST_ORGANIZATION_CREATION: Type.Optional(
    Type.Union([Type.Literal('anyone'), Type.Literal('site-admin')], {
      description:
        'Who may create an organization by creating its first stack: `anyone` (default with the embedded database) or `site-admin` (default otherwise).',
    }),
  ),
  HOLDFAST_REQUESTS_PER_MINUTE: Type.Integer({
    description:
      'Maximum requests per minute with one API token, across all replicas; for a user twice as many, for an address (IPv6: a /64 network) four times. Further calls wait or get 429, except calls of running updates. 0: no limit.',
    default: 30_000,
    minimum: 0,
    maximum: 2 ** 40,
  }),
  HOLDFAST_OUTGOING_ALLOW: Type.Optional(
    Type.String({
      description:
        'Targets that the server may call for users (issuers of CI tokens, webhooks), besides HTTPS at public addresses: networks (`10.20.0.0/16`), host names (`gitlab.internal`) and origins without TLS (`http://ci.internal:8080`), comma-separated.',
      minLength: 1,
    }),
  ),
};
