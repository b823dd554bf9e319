import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { parseAllowList } from '../../src/shared/platform/outgoing/address-rules.ts';
import { Outgoing } from '../../src/shared/platform/outgoing/outgoing.ts';
import { createTestAuthority, type TestAuthority } from './certificates.ts';

interface SigningKey {
  readonly kid: string;
  readonly algorithm: string;
  readonly privateKey: CryptoKey;
  readonly jwk: Readonly<Record<string, unknown>>;
}

/** In place of its document; null: as usual. */
export type Answer =
  | ((request: { readonly path: string }, response: import('node:http').ServerResponse) => void)
  | null;

/** Like that of a CI system, behind HTTPS with a certificate of a private authority. */
export class TestIssuer implements AsyncDisposable {
  readonly url: string;
  /** Paths that were asked for. */
  readonly requests: string[] = [];
  /** Keys that it publishes. */
  readonly keys: SigningKey[] = [];
  answer: Answer = null;
  readonly #server: https.Server;
  readonly #authority: TestAuthority;

  private constructor(server: https.Server, authority: TestAuthority) {
    this.#server = server;
    this.#authority = authority;
    this.url = `https://localhost:${(server.address() as AddressInfo).port}`;
    server.on('request', (request, response) => {
      const path = request.url ?? '';
      this.requests.push(path);
      if (this.answer) return this.answer({ path }, response);
      const documents: Record<string, object> = {
        '/.well-known/openid-configuration': { issuer: this.url, jwks_uri: `${this.url}/keys` },
        '/keys': { keys: this.keys.map(({ jwk }) => jwk) },
      };
      const document = documents[path];
      response
        .writeHead(document ? 200 : 404, { 'content-type': 'application/json' })
        .end(JSON.stringify(document ?? {}));
    });
  }

  static async start(algorithm = 'RS256'): Promise<TestIssuer> {
    const authority = await createTestAuthority();
    const { cert, key } = await authority.issue('issuer', 'DNS:localhost,DNS:rebound.example');
    const server = https.createServer({ cert: readFileSync(cert), key: readFileSync(key) });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const issuer = new TestIssuer(server, authority);
    await issuer.addKey(algorithm);
    return issuer;
  }

  /** The authority of its certificate, as a PEM file. */
  get caFile(): string {
    return this.#authority.caFile;
  }

  /** Calls as a server makes them whose operator allows `localhost` and trusts the authority. */
  outgoing(): Outgoing {
    const parsed = parseAllowList('localhost');
    if ('wrong' in parsed) throw new Error(parsed.wrong);
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
    return new Outgoing({ allow: parsed.list, ca: readFileSync(this.caFile, 'utf8'), resolve });
  }

  /** Signs with it from now on. */
  async addKey(algorithm: string): Promise<SigningKey> {
    const key = await makeKey(algorithm, `key-${this.keys.length}-${Math.random().toString(36).slice(2)}`);
    this.keys.push(key);
    return key;
  }

  /** Signs claims, by default those of a GitHub workflow that were issued just now for the organization. */
  async sign(
    organization: string,
    claims: JWTPayload = {},
    { header = {}, key = this.keys.at(-1) as SigningKey }: { header?: object; key?: SigningKey } = {},
  ): Promise<string> {
    return new SignJWT(this.claims(organization, claims))
      .setProtectedHeader({ alg: key.algorithm, kid: key.kid, typ: 'JWT', ...header })
      .sign(key.privateKey);
  }

  claims(organization: string, claims: JWTPayload = {}): JWTPayload {
    const now = Math.floor(Date.now() / 1000);
    return {
      iss: this.url,
      aud: `urn:pulumi:org:${organization}`,
      sub: 'repo:acme/web:ref:refs/heads/main',
      repository: 'acme/web',
      run_id: '123456',
      jti: Math.random().toString(36).slice(2),
      iat: now,
      exp: now + 300,
      ...claims,
    };
  }

  /** Stops answering. */
  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) await this.stop();
    await this.#authority[Symbol.asyncDispose]();
  }
}

/** No issuer publishes it unless the test does. */
export async function makeKey(algorithm: string, kid: string): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  return { kid, algorithm, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' } };
}

/** A token signed by HMAC, or not at all if `secret` is null. */
export function signByHand(header: object, claims: JWTPayload, secret: string | Buffer | null): string {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  const signed = `${encode(header)}.${encode(claims)}`;
  return `${signed}.${secret === null ? '' : createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

/** The body of the CLI's call (ExchangeOidcToken in pkg/backend/httpstate/client). */
export function exchangeForm(organization: string, token: string, more: Readonly<Record<string, string>> = {}): string {
  const scope = more['scope'] ?? '';
  const kind = scope.startsWith('team:') ? 'team' : scope.startsWith('user:') ? 'personal' : 'organization';
  return new URLSearchParams({
    audience: `urn:pulumi:org:${organization}`,
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    requested_token_type: `urn:pulumi:token-type:access_token:${kind}`,
    scope,
    subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
    subject_token: token,
    expiration: '7200',
    ...more,
  }).toString();
}
