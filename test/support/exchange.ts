import type { JWTPayload } from 'jose';
import { ok } from './state.ts';
import type { TestApp, TestResponse } from './test-app.ts';
import { exchangeForm, type TestIssuer } from './test-issuer.ts';

/** An organization that trusts an issuer. */
export interface Trusting {
  readonly organization: string;
  /** Authorization of an admin. */
  readonly auth: string;
  readonly issuerId: string;
  readonly issuer: TestIssuer;
}

/** The policies are in the vendor's format. */
export async function trust(
  app: TestApp,
  issuer: TestIssuer,
  organization: string,
  policies: readonly object[],
  registration: object = {},
): Promise<Trusting> {
  const auth = `token ${await app.createUser(organization, 'admin')}`;
  const path = `/api/orgs/${organization}/oidc/issuers`;
  const body = { name: 'ci', url: issuer.url, ...registration };
  const issuerId = (await ok(app.call('POST', path, { auth, body }))).json.id as string;
  const trusting = { organization, auth, issuerId, issuer };
  await setPolicies(app, trusting, policies);
  return trusting;
}

export function setPolicies(
  app: TestApp,
  { auth, issuerId, organization }: Trusting,
  policies: readonly object[],
): Promise<TestResponse> {
  return ok(app.call('PATCH', `/api/orgs/${organization}/auth/policies/${issuerId}`, { auth, body: { policies } }));
}

/** Calls as the CLI does: a form, without a version and without a token. */
export function exchange(
  app: TestApp,
  organization: string,
  token: string,
  more: Readonly<Record<string, string>> = {},
): Promise<TestResponse> {
  return app.call('POST', '/api/oauth/token', {
    accept: null,
    body: exchangeForm(organization, token, more),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
}

/** Returns the authorization that a new id token gives. */
export async function signIn(
  app: TestApp,
  { issuer, organization }: Trusting,
  claims: JWTPayload = {},
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { json } = await ok(exchange(app, organization, await issuer.sign(organization, claims), more));
  return `token ${json.access_token}`;
}
