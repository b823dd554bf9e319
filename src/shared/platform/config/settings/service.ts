import { Type } from 'typebox';
import { positive } from './integers.ts';

/** Settings of the listeners and of sign-in. */
export const serviceSettings = {
  HOLDFAST_LISTEN: Type.String({
    description: 'Address and port of the service. The image sets `0.0.0.0:9090`.',
    default: '127.0.0.1:9090',
    pattern: '^(\\[[0-9a-fA-F:]+\\]|[^:\\s]*):[0-9]{1,5}$',
    form: 'an address and a port, such as 0.0.0.0:9090',
  }),
  HOLDFAST_MANAGEMENT_LISTEN: Type.String({
    description:
      'Address and port of `/metrics`, `/healthz` and `/readyz`, without a login. The image sets `0.0.0.0:9092`. `same`: the port of the service.',
    default: '127.0.0.1:9092',
    pattern: '^(same|(\\[[0-9a-fA-F:]+\\]|[^:\\s]*):[0-9]{1,5})$',
    form: '`same`, or an address and a port, such as 127.0.0.1:9092',
  }),
  HOLDFAST_TLS_CERT_FILE: Type.Optional(
    Type.String({
      description:
        'PEM file with the certificate of the service and its intermediates; turns on TLS (1.2 or later). Reloaded after a change.',
      minLength: 1,
    }),
  ),
  HOLDFAST_TLS_KEY_FILE: Type.Optional(
    Type.String({ description: 'PEM file with the private key of the certificate.', minLength: 1 }),
  ),
  HOLDFAST_TRUSTED_PROXIES: Type.Optional(
    Type.String({
      description:
        'Addresses and networks of reverse proxies whose X-Forwarded-For is trusted, comma-separated (`10.0.0.0/8,fd00::1`).',
      minLength: 1,
    }),
  ),
  HOLDFAST_MAX_CONNECTIONS: positive(
    'Maximum client connections per process, a quarter of them from one address (IPv6: a /64 network). Trusted proxies together may have as many again. Further connections get 503, or are closed.',
    4096,
    1_000_000,
  ),
  HOLDFAST_PUBLIC_URL: Type.Optional(
    Type.String({
      description: 'URL at which users reach the service. Links, URLs of policy packs and imported states contain it.',
      pattern: '^https?://[^\\s]+$',
      form: 'a URL that begins with http:// or https://',
    }),
  ),
  HOLDFAST_SESSION_HOURS: positive(
    'Hours after which a browser must sign in again; also after 12 hours without a request.',
    168,
    8760,
  ),
  HOLDFAST_OIDC_ISSUER: Type.Optional(
    Type.String({
      description:
        'Issuer of the OpenID Connect [provider](administration.md#identity-providers) for signing in. Needs HOLDFAST_PUBLIC_URL.',
      pattern: '^https?://[^\\s]+$',
      form: 'a URL that begins with http:// or https://',
    }),
  ),
  HOLDFAST_OIDC_CLIENT_ID: Type.Optional(
    Type.String({ description: 'Id of this service at the provider.', minLength: 1 }),
  ),
  HOLDFAST_OIDC_CLIENT_SECRET: Type.Optional(
    Type.String({
      description: 'Secret of this service at the provider. Without it, the service is a public client with PKCE.',
      minLength: 1,
    }),
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
        'Domains, comma-separated: only people with a verified e-mail address there may sign in with the provider.',
      minLength: 1,
    }),
  ),
  HOLDFAST_OIDC_LOGIN_CLAIM: Type.String({
    description: 'Claim that becomes the login of a new user. With `email`, the address must be verified.',
    default: 'preferred_username',
    minLength: 1,
  }),
  HOLDFAST_OIDC_GROUPS_CLAIM: Type.String({
    description: "Claim with a person's groups.",
    default: 'groups',
    minLength: 1,
  }),
  HOLDFAST_OIDC_GROUPS_FILE: Type.Optional(
    Type.String({
      description:
        "JSON [file](administration.md#identity-providers) with the roles and teams that the provider's groups give. With it, the server requests the scope `groups` if the provider lists it.",
      minLength: 1,
    }),
  ),
  HOLDFAST_OIDC_CREATE_USERS: Type.Union([Type.Literal('mapped'), Type.Literal('all'), Type.Literal('none')], {
    description:
      'Who becomes a user at the first sign-in: people whose groups give them a role (`mapped`), everyone (`all`), or nobody (`none`: use `holdfast admin user link`).',
    default: 'mapped',
  }),
};
