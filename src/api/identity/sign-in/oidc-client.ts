import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import * as openid from 'openid-client';
import type { OidcConfig } from '../../../shared/platform/config/oidc.ts';
import { AppError, UnauthenticatedError, UnavailableError } from '../../../shared/platform/errors/errors.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import { onFailure } from '../../../shared/platform/outgoing/failed-request.ts';

/** Values that must match when the browser comes back. */
export interface OidcChecks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export type Claims = Readonly<Record<string, unknown>> & { readonly iss: string; readonly sub: string };

const requestMs = 10_000;
const maxResponseBytes = 1024 * 1024;
const metadataMs = 10 * 60_000;

/** Authorization code with PKCE, state and nonce. */
export class OidcClient {
  readonly #config: OidcConfig;
  readonly #redirectUri: string;
  readonly #logger: Logger;
  #metadata: { readonly value: openid.ServerMetadata; readonly until: number } | null = null;

  constructor(config: OidcConfig, redirectUri: string, logger: Logger) {
    this.#config = config;
    this.#redirectUri = redirectUri;
    this.#logger = logger;
  }

  /** Throws UnavailableError if the provider is down. */
  async begin(): Promise<{ readonly address: string; readonly checks: OidcChecks }> {
    return this.#asked('begin', async () => {
      const client = await this.#client();
      const verifier = openid.randomPKCECodeVerifier();
      const checks = { state: openid.randomState(), nonce: openid.randomNonce(), verifier };
      const address = openid.buildAuthorizationUrl(client, {
        redirect_uri: this.#redirectUri,
        scope: this.#scopeOf(client.serverMetadata()),
        code_challenge: await openid.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state: checks.state,
        nonce: checks.nonce,
      });
      return { address: address.href, checks };
    });
  }

  /**
   * Exchanges the code that the browser brings back. `search`: the query of its request. Returns the claims of the ID token and the user
   * info endpoint. Throws UnauthenticatedError, and UnavailableError if the provider is down.
   */
  async finish(search: string, { nonce, state, verifier }: OidcChecks): Promise<Claims> {
    return this.#asked('finish', async () => {
      const client = await this.#client();
      const returned = new URL(this.#redirectUri);
      returned.search = search;
      const tokens = await openid.authorizationCodeGrant(client, returned, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims() as Claims;
      const wanted = ['email', this.#config.loginClaim, this.#config.groupsClaim];
      if (!client.serverMetadata().userinfo_endpoint || wanted.every((name) => claims[name] !== undefined))
        return claims;
      const more = await openid.fetchUserInfo(client, tokens.access_token, claims.sub);
      return { ...more, ...claims };
    });
  }

  /** Its empty key cache finds keys that the provider has just replaced. */
  async #client(): Promise<openid.Configuration> {
    const { clientId, clientSecret, issuer } = this.#config;
    const isPlain = new URL(issuer).protocol === 'http:';
    if (!this.#metadata || this.#metadata.until < performance.now()) {
      const found = await openid.discovery(new URL(issuer), clientId, undefined, openid.None(), {
        [openid.customFetch]: this.#fetch,
        timeout: requestMs / 1000,
        ...(isPlain ? { execute: [openid.allowInsecureRequests] } : {}),
      });
      this.#metadata = { value: { ...found.serverMetadata() }, until: performance.now() + metadataMs };
    }
    const metadata = { ...this.#metadata.value };
    const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const authentication =
      clientSecret === null
        ? openid.None()
        : methods.includes('client_secret_basic')
          ? openid.ClientSecretBasic(clientSecret)
          : openid.ClientSecretPost(clientSecret);
    const client = new openid.Configuration(metadata, clientId, clientSecret ?? undefined, authentication);
    client[openid.customFetch] = this.#fetch;
    client.timeout = requestMs / 1000;
    if (isPlain) openid.allowInsecureRequests(client);
    // The standard takes TLS to the token endpoint as enough; the signature is independent of it.
    openid.enableNonRepudiationChecks(client);
    return client;
  }

  /** Some providers send groups only to a client that asks for a scope of that name. */
  #scopeOf({ scopes_supported: known = [] }: openid.ServerMetadata): string {
    const needsGroups = this.#config.groupsFile !== null && known.includes('groups');
    return ['openid', 'profile', 'email', ...(needsGroups ? ['groups'] : [])].join(' ');
  }

  async #asked<T>(step: string, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      this.#logger.warn({ err: error, step, issuer: this.#config.issuer }, 'sign-in with the provider failed');
      const cause = (error as Error).cause;
      for (const each of [error, cause]) if (each instanceof AppError) throw each;
      if (step === 'begin') throw unreachable(error);
      throw new UnauthenticatedError('The sign-in with the provider was not completed; please start again', {
        cause: error,
      });
    }
  }

  /** Like `fetch`, with the certificate authorities of the settings. */
  readonly #fetch: openid.CustomFetch = (url, { body, headers, method, signal }) =>
    new Promise((resolve, reject) => {
      const { protocol } = new URL(url);
      const request = protocol === 'http:' ? httpRequest : httpsRequest;
      const limit = signal ?? AbortSignal.timeout(requestMs);
      const options = { method, headers, timeout: requestMs, signal: limit };
      const fail = (error: unknown): void => reject(unreachable(error));
      limit.addEventListener('abort', () => fail(limit.reason), { once: true });
      const sent = request(url, options, (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > maxResponseBytes) response.destroy(new Error('The response of the provider is too large'));
          else chunks.push(chunk);
        });
        response.on('error', fail);
        response.on('end', () => {
          const { headers: received, statusCode: status = 502 } = response;
          if (status >= 500) return fail(new Error(`The provider answered ${status}`));
          const pairs = Object.entries(received).map(([name, value]): [string, string] => [name, String(value)]);
          try {
            resolve(new Response(Buffer.concat(chunks), { status, headers: pairs }));
          } catch (error) {
            // Not for every status: 204 has no body.
            fail(error);
          }
        });
      });
      onFailure(sent, fail);
      sent.on('timeout', () => sent.destroy(new Error(`No answer within ${requestMs} ms`)));
      sent.end(body === undefined || body === null ? undefined : String(body));
    });
}

function unreachable(cause: unknown): UnavailableError {
  return new UnavailableError('The identity provider cannot be reached at the moment; please retry', { cause });
}
