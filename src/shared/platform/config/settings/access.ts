import { Type } from 'typebox';

/** Settings of access, rate limits, and addresses that the servers may call. */
export const accessSettings = {
  HOLDFAST_BOOTSTRAP: Type.Optional(
    Type.String({
      description: 'Path of a JSON or YAML file with organizations, members and tokens, applied at each start.',
      minLength: 1,
    }),
  ),
  HOLDFAST_ORGANIZATION_CREATION: Type.Optional(
    Type.Union([Type.Literal('anyone'), Type.Literal('site-admin')], {
      description:
        'Who may create an organization by creating its first stack: `anyone` or `site-admin`. Default `site-admin`; `anyone` with the embedded database.',
    }),
  ),
  HOLDFAST_REQUESTS_PER_MINUTE: Type.Integer({
    description:
      "Maximum requests per minute with one API token, across all replicas, in bursts of up to a minute's worth. A user may make twice as many, an address (IPv6: a /64 network) four times. Further ones wait or get 429, except calls of running updates. 0: no limit.",
    default: 30_000,
    minimum: 0,
    maximum: 2 ** 40,
  }),
  HOLDFAST_OUTGOING_ALLOW: Type.Optional(
    Type.String({
      description:
        'Where the server may call on behalf of users (issuers of CI tokens, webhooks), besides public addresses over HTTPS; comma separated. Networks (`10.20.0.0/16`), host names with any address (`gitlab.internal`), and origins without TLS (`http://ci.internal:8080`).',
      minLength: 1,
    }),
  ),
};
