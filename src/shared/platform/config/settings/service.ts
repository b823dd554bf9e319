import { Type } from 'typebox';
import { positive } from './integers.ts';

/** Settings of the listeners and of sign-in. */
export const serviceSettings = {
  HOLDFAST_LISTEN: Type.String({
    description:
      'Address and port of the service. The image sets `0.0.0.0:9090`. Beyond this machine, use TLS, here or in a proxy.',
    default: '127.0.0.1:9090',
    pattern: '^(\\[[0-9a-fA-F:]+\\]|[^:\\s]*):[0-9]{1,5}$',
    form: 'an address and a port, such as 0.0.0.0:9090',
  }),
  HOLDFAST_MANAGEMENT_LISTEN: Type.String({
    description:
      'Address and port for `/metrics`, `/healthz` and `/readyz` of every process. It has no login. The image sets `0.0.0.0:9092`. `same`: use the port of the service.',
    default: '127.0.0.1:9092',
    pattern: '^(same|(\\[[0-9a-fA-F:]+\\]|[^:\\s]*):[0-9]{1,5})$',
    form: '`same`, or an address and a port, such as 127.0.0.1:9092',
  }),
  HOLDFAST_TLS_CERT_FILE: Type.Optional(
    Type.String({
      description:
        'PEM file with the certificate of the service and its intermediates. The service then speaks TLS (1.2 or later) only. Reloaded when it changes.',
      minLength: 1,
    }),
  ),
  HOLDFAST_TLS_KEY_FILE: Type.Optional(
    Type.String({ description: 'PEM file with the private key of that certificate.', minLength: 1 }),
  ),
  HOLDFAST_TRUSTED_PROXIES: Type.Optional(
    Type.String({
      description:
        'Addresses and networks of the reverse proxies in front, comma separated (`10.0.0.0/8,fd00::1`). Their X-Forwarded-For is trusted, and the connection limit per address does not apply to them.',
      minLength: 1,
    }),
  ),
  HOLDFAST_MAX_CONNECTIONS: positive(
    'Maximum client connections per process; one address, or IPv6 /64 network, may have a quarter of them. Trusted proxies have the same number again for themselves. Further connections get 503.',
    4096,
    1_000_000,
  ),
  HOLDFAST_PUBLIC_URL: Type.Optional(
    Type.String({
      description:
        'URL under which users reach the service. Shown in the login hint, and part of the addresses of policy packs and secrets providers.',
      pattern: '^https?://[^\\s]+$',
      form: 'a URL that begins with http:// or https://',
    }),
  ),
  HOLDFAST_SESSION_HOURS: positive(
    'A person who is signed in by a browser must sign in again after this time, and after 12 hours without a request; in hours.',
    168,
    8760,
  ),
  HOLDFAST_OIDC_ISSUER: Type.Optional(
    Type.String({
      description:
        'Issuer of an OpenID Connect provider for signing in, such as `https://login.example.com/realms/main`. Needs HOLDFAST_PUBLIC_URL; the provider must permit the redirect to its path `/sign-in/provider/callback`.',
      pattern: '^https?://[^\\s]+$',
      form: 'a URL that begins with http:// or https://',
    }),
  ),
  HOLDFAST_OIDC_CLIENT_ID: Type.Optional(
    Type.String({ description: 'Id of this service as a client of the provider.', minLength: 1 }),
  ),
  HOLDFAST_OIDC_CLIENT_SECRET: Type.Optional(
    Type.String({ description: 'Secret of that client. Without it, a public client with PKCE.', minLength: 1 }),
  ),
  HOLDFAST_OIDC_NAME: Type.String({
    description: 'Name of the provider on the sign-in page.',
    default: 'single sign-on',
    minLength: 1,
    maxLength: 60,
  }),
  HOLDFAST_OIDC_ALLOWED_DOMAINS: Type.Optional(
    Type.String({
      description:
        'Only people with a verified e-mail address in one of these domains may sign in with the provider; comma separated.',
      minLength: 1,
    }),
  ),
  HOLDFAST_OIDC_LOGIN_CLAIM: Type.String({
    description:
      'Claim that becomes the login of a user whom the first sign-in creates. Later, the subject identifies users. With `email`, the address must be verified.',
    default: 'preferred_username',
    minLength: 1,
  }),
  HOLDFAST_OIDC_GROUPS_CLAIM: Type.String({
    description: 'Claim with the groups of a person: a list of texts.',
    default: 'groups',
    minLength: 1,
  }),
  HOLDFAST_OIDC_GROUPS_FILE: Type.Optional(
    Type.String({
      description:
        'JSON file with the roles and teams that groups of the provider give: a list of `{"group", "organization", "role", "teams"}`. Applied at each sign-in. With it, the scope `groups` is asked for if the provider lists it.',
      minLength: 1,
    }),
  ),
  HOLDFAST_OIDC_CREATE_USERS: Type.Union([Type.Literal('mapped'), Type.Literal('all'), Type.Literal('none')], {
    description:
      'For whom the first sign-in creates a user: people whose groups give them a role (`mapped`), everyone (`all`), or no one (`none`; see `holdfast admin user link`).',
    default: 'mapped',
  }),
};
