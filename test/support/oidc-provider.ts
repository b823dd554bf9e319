import type { webcrypto } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeJwt, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { Provider } from 'oidc-provider';

const clientId = 'holdfast';
const clientSecret = 'a secret of the test client';

interface SigningKey {
  readonly id: string;
  readonly privateKey: webcrypto.CryptoKey;
}

type Profile = Readonly<Record<string, unknown>>;

/** A provider of identities on this machine (oidc-provider), whose people a test chooses. */
export class TestProvider implements AsyncDisposable {
  readonly people = new Map<string, Profile>();
  readonly #server: Server;
  #handler: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  #key: SigningKey | null = null;
  /** The token is signed again. */
  tamper: ((claims: JWTPayload) => JWTPayload) | null = null;
  /** Answers 503 to everything. */
  isDown = false;
  /** Answers in place of the provider if it returns true. */
  instead: ((path: string, response: ServerResponse) => boolean) | null = null;

  readonly #groupsScope: string;

  private constructor(server: Server, groupsScope: string) {
    this.#server = server;
    this.#groupsScope = groupsScope;
  }

  /** `redirectUri` is the client's; for `groupsScope`, the provider tells groups. */
  static async start(redirectUri: string, groupsScope = 'groups'): Promise<TestProvider> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const provider = new TestProvider(server, groupsScope);
    server.on('request', (request, response) => void provider.#answer(request, response));
    await provider.rotateKeys(redirectUri);
    return provider;
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The settings of a server whose people sign in here. */
  settings(more: Readonly<Record<string, string>> = {}): Record<string, string> {
    return {
      HOLDFAST_OIDC_ISSUER: this.issuer,
      HOLDFAST_OIDC_CLIENT_ID: clientId,
      HOLDFAST_OIDC_CLIENT_SECRET: clientSecret,
      HOLDFAST_OIDC_NAME: 'Test Login',
      HOLDFAST_PUBLIC_URL: 'http://localhost:9090',
      ...more,
    };
  }

  /** Replaces the keys that sign, as a provider does after some months; the ones before are gone. */
  async rotateKeys(redirectUri = 'http://localhost:9090/sign-in/provider/callback'): Promise<void> {
    const { privateKey } = await generateKeyPair('RS256', { extractable: true });
    const id = Math.random().toString(36).slice(2);
    this.#key = { id, privateKey };
    const provider = new Provider(this.issuer, {
      clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [redirectUri] }],
      jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: id, use: 'sig', alg: 'RS256' }] },
      cookies: { keys: ['a key of the test'] },
      claims: {
        openid: ['sub'],
        profile: ['name', 'preferred_username'],
        email: ['email', 'email_verified'],
        [this.#groupsScope]: ['groups'],
      },
      pkce: { required: () => true },
      findAccount: (_context, sub) => ({
        accountId: sub,
        claims: () => ({ sub, ...this.people.get(sub) }),
      }),
      loadExistingGrant: async (context) => {
        const { client, provider: own, session } = context.oidc;
        const grant = new own.Grant({ clientId: client?.clientId as string, accountId: session?.accountId as string });
        grant.addOIDCScope(`openid profile email ${this.#groupsScope}`);
        await grant.save();
        return grant;
      },
    });
    this.#handler = provider.callback();
  }

  /** What a person does at the provider: signs in there, beginning at this address. Returns the address that leads back. */
  async signIn(address: string, sub: string): Promise<string> {
    const jar = new Map<string, string>();
    const go = async (url: string, form?: Record<string, string>): Promise<string> => {
      const response = await fetch(url, {
        redirect: 'manual',
        method: form ? 'POST' : 'GET',
        headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
        ...(form ? { body: new URLSearchParams(form) } : {}),
      });
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        if (value === '') jar.delete(name);
        else jar.set(name, value);
      }
      const location = response.headers.get('location');
      if (location === null) throw new Error(`${response.status} at ${url}: ${await response.text()}`);
      return new URL(location, url).href;
    };
    const interaction = await go(address);
    const resume = await go(interaction, { prompt: 'login', login: sub, password: 'any' });
    return go(resume);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.isDown) {
      response.writeHead(503).end();
      return;
    }
    if (this.instead?.(new URL(request.url ?? '/', this.issuer).pathname, response)) return;
    const { tamper } = this;
    if (request.url !== '/token' || tamper === null) {
      this.#handler(request, response);
      return;
    }
    this.tamper = null;
    const end = response.end.bind(response);
    response.end = ((body: string | Buffer) => {
      void this.#resign(String(body), tamper).then((changed) => {
        if (!response.headersSent) response.setHeader('content-length', Buffer.byteLength(changed));
        end(changed);
      });
      return response;
    }) as typeof response.end;
    this.#handler(request, response);
  }

  async #resign(body: string, tamper: (claims: JWTPayload) => JWTPayload): Promise<string> {
    const answer = JSON.parse(body) as { id_token: string };
    const { id, privateKey } = this.#key as SigningKey;
    const claims = tamper(decodeJwt(answer.id_token));
    const token = await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: id }).sign(privateKey);
    return JSON.stringify({ ...answer, id_token: token });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
