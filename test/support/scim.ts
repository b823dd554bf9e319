import { createIdentityRepository } from '../../src/shared/identity/identity-repository.ts';
import { createTokenRepository } from '../../src/shared/identity/token-repository.ts';
import { mintToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { query } from './database.ts';
import type { TestApp, TestResponse } from './test-app.ts';

export const patchSchemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp'];
export const userSchemas = ['urn:ietf:params:scim:schemas:core:2.0:User'];
export const groupSchemas = ['urn:ietf:params:scim:schemas:core:2.0:Group'];

/** Creates a token for the identity provider of an organization. Returns the Authorization header. */
export async function provisioningToken(app: TestApp, organization: string): Promise<string> {
  const { db } = app.context;
  const { id } = await createIdentityRepository(db).ensureOrganization(organization);
  const { token, hash } = mintToken('hf-');
  const name = `scim-${token.slice(3, 9)}`;
  const owner = { kind: 'service', organizationId: id, isProvisioning: true } as const;
  await createTokenRepository(db).insert({
    owner,
    hash,
    name,
    description: '',
    scopes: [],
    expiresAt: null,
    createdBy: null,
  });
  return `Bearer ${token}`;
}

/** Calls as Entra ID and Okta do: its own types, and nothing of our protocol. */
export class Provider {
  readonly app: TestApp;
  readonly organization: string;
  readonly auth: string;
  readonly #contentType: string;

  constructor(app: TestApp, organization: string, auth: string, contentType = 'application/scim+json') {
    this.app = app;
    this.organization = organization;
    this.auth = auth;
    this.#contentType = contentType;
  }

  static async of(app: TestApp, organization: string): Promise<Provider> {
    return new Provider(app, organization, await provisioningToken(app, organization));
  }

  /** The same provider, calling another replica. */
  at(app: TestApp): Provider {
    return new Provider(app, this.organization, this.auth, this.#contentType);
  }

  call(method: string, path: string, body?: object | string): Promise<TestResponse> {
    return this.app.call(method, `/scim/v2/${this.organization}/${path}`, {
      auth: this.auth,
      accept: 'application/scim+json',
      ...(body === undefined ? {} : { body }),
      headers: body === undefined ? {} : { 'content-type': this.#contentType },
    });
  }

  find(resource: 'Users' | 'Groups', filter: string, more = ''): Promise<TestResponse> {
    return this.call('GET', `${resource}?filter=${encodeURIComponent(filter)}${more}`);
  }

  patch(resource: string, ...operations: object[]): Promise<TestResponse> {
    return this.call('PATCH', resource, { schemas: patchSchemas, Operations: operations });
  }

  /** Creates a user and returns its id. */
  async addUser(userName: string, more: object = {}): Promise<string> {
    const { json, status, text } = await this.call('POST', 'Users', { schemas: userSchemas, userName, ...more });
    if (status !== 201) throw new Error(`${status}: ${text}`);
    return json.id as string;
  }
}

/** The members of an organization, as `login role`. */
export async function membersOf(app: TestApp, organization: string): Promise<string[]> {
  const rows = await query<{ member: string }>(
    app,
    `select u.login || ' ' || m.role as member from memberships m join users u on u.id = m.user_id
     join organizations o on o.id = m.organization_id where o.name = $1 order by u.login`,
    [organization],
  );
  return rows.map(({ member }) => member);
}

/** The members of a team of an organization. */
export async function teamOf(app: TestApp, organization: string, team: string): Promise<string[] | null> {
  const rows = await query<{ login: string | null }>(
    app,
    `select u.login from teams e join organizations o on o.id = e.organization_id left join team_members t on t.team_id = e.id
     left join users u on u.id = t.user_id where o.name = $1 and e.name = $2 order by u.login`,
    [organization, team],
  );
  return rows.length === 0 ? null : rows.flatMap(({ login }) => (login === null ? [] : [login]));
}

/** A personal token of a user, as the Authorization header. */
export async function tokenFor(app: TestApp, login: string): Promise<string> {
  const { identity } = app.context;
  const user = await identity.findUser(login);
  if (!user) throw new Error(`there is no user ${login}`);
  const { token, hash } = mintToken('test-');
  await identity.insertToken({ userId: user.id, hash, description: 'test', expiresAt: null });
  return `token ${token}`;
}
