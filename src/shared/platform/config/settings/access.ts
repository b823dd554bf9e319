import { Type } from 'typebox';
import { positive } from './integers.ts';

const requests = (source: string, defaultValue: number) =>
  Type.Integer({
    description: `Maximum requests per minute ${source}, across all replicas, in bursts of up to a minute's worth. Further ones wait or get 429. What running updates need is never rejected. 0: no limit.`,
    default: defaultValue,
    minimum: 0,
    maximum: 2 ** 40,
  });

/** Who may do what, how often, and where the servers may call. */
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
  HOLDFAST_INVALID_TOKENS_PER_MINUTE: positive(
    'Invalid tokens and leases per minute from one address (IPv6: a /64 network), across all replicas, before unknown ones are looked up in batches. All addresses together have ten times as many. Valid tokens are always accepted.',
    60,
    1_000_000,
  ),
  HOLDFAST_TOKEN_REQUESTS_PER_MINUTE: requests('with one API token', 30_000),
  HOLDFAST_USER_REQUESTS_PER_MINUTE: requests('by one user with all their tokens', 60_000),
  HOLDFAST_ADDRESS_REQUESTS_PER_MINUTE: requests('from one address (IPv6: a /64 network)', 120_000),
  HOLDFAST_OUTGOING_ALLOW: Type.Optional(
    Type.String({
      description:
        'Where the server may call on behalf of users (issuers of CI tokens, webhooks), besides public addresses over HTTPS; comma separated. Networks (`10.20.0.0/16`), host names that may have any address (`gitlab.internal`), and origins that may be called without TLS (`http://ci.internal:8080`).',
      minLength: 1,
    }),
  ),
  HOLDFAST_ISSUER_OUTAGE_SECONDS: Type.Integer({
    description:
      'How long tokens of a CI issuer that cannot be reached are checked with the keys that it had before, in seconds.',
    default: 3600,
    minimum: 0,
    maximum: 604_800,
  }),
};
