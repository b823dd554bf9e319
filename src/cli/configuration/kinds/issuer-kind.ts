import { Type } from 'typebox';
import { parsePolicies, type WrittenPolicy, writePolicy } from '../../../shared/identity/trust/trust-definitions.ts';
import type { OrganizationApi } from '../organization-api.ts';
import { type Kind, type PresentObject, part, type Spec } from './kind.ts';

const closed = { additionalProperties: false } as const;

const Policy = Type.Object(
  {
    decision: Type.Enum(['allow', 'deny']),
    tokenType: Type.Optional(Type.Enum(['organization', 'team', 'personal', 'service', 'any'])),
    teamName: Type.Optional(Type.String()),
    userLogin: Type.Optional(Type.String()),
    authorizedPermissions: Type.Optional(Type.Array(Type.Enum(['admin', 'standard']))),
    rules: Type.Unsafe<Record<string, string | string[]>>(
      Type.Object(
        {},
        {
          additionalProperties: Type.Union([Type.String(), Type.Array(Type.String())]),
          description: 'Patterns, with * for any characters, by the path of a claim',
        },
      ),
    ),
    scopes: Type.Optional(
      Type.Array(Type.Object({ permissions: Type.Array(Type.String()), stacks: Type.String() }, closed)),
    ),
    maxExpiration: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400 })),
  },
  closed,
);

interface IssuerResponse {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly audience: string;
  readonly replay: string;
  readonly maxExpiration?: number;
  readonly jwks?: object;
}

export const issuerKind: Kind = {
  kind: 'Issuer',
  description: 'An issuer of id tokens that the organization trusts, with its policies',
  spec: Type.Object(
    {
      url: Type.String(),
      audience: Type.Optional(Type.String()),
      replay: Type.Optional(Type.Enum(['once', 'within-life'])),
      maxExpiration: Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: 86_400 }), Type.Null()])),
      jwks: Type.Optional(Type.Union([Type.Object({ keys: Type.Array(Type.Unknown()) }), Type.Null()])),
      policies: Type.Optional(Type.Array(Policy, { maxItems: 100, description: 'The first that matches decides' })),
    },
    closed,
  ),
  // In the form in which the server stores it.
  complete: ({ jwks, maxExpiration, policies, ...spec }) => ({
    ...spec,
    ...(maxExpiration === undefined ? {} : { maxExpiration: maxExpiration || null }),
    ...(jwks === undefined ? {} : { jwks: jwks && { keys: (jwks as { keys: unknown }).keys } }),
    ...(policies === undefined ? {} : { policies: parsePolicies(policies as WrittenPolicy[]).map(writePolicy) }),
  }),
  keyOf: (name) => name,
  fixedFields: ['url'],
  references: ({ policies = [] }) =>
    (policies as WrittenPolicy[]).flatMap(({ teamName, userLogin }, at) => [
      ...(teamName ? [{ kind: 'Team' as const, name: teamName, path: ['policies', at, 'teamName'] }] : []),
      ...(userLogin ? [{ kind: 'Member' as const, name: userLogin, path: ['policies', at, 'userLogin'] }] : []),
    ]),
  // Leaving out the policies of a user changes no decision about others.
  withoutMembers: ({ policies = [], ...spec }, logins) => ({
    ...spec,
    policies: (policies as WrittenPolicy[]).filter(({ userLogin }) => !logins.has(userLogin ?? '')),
  }),
  list: async (api) => {
    const issuers: IssuerResponse[] = (await api.get('oidc/issuers')).json.oidcIssuers;
    return Promise.all(
      issuers.map(
        async (issuer): Promise<PresentObject> => ({
          object: issuer.id,
          name: issuer.name,
          spec: { ...issuerSpec(issuer), policies: (await readPolicies(api, issuer.id)).policies },
        }),
      ),
    );
  },
  read: async (api, object) => {
    const response = await api.find(`oidc/issuers/${part(object)}`);
    if (!response) return null;
    const { etag, policies } = await readPolicies(api, object);
    return { spec: { ...issuerSpec(response.json), policies }, tags: { issuer: response.etag, policies: etag } };
  },
  create: async (api, name, { policies, ...spec }) => {
    const { id } = (await api.post('oidc/issuers', { name, ...spec })).json;
    if (policies !== undefined) await api.patch(`auth/policies/${part(id)}`, { policies });
    return id;
  },
  change: async (api, { fields, object, tags, to: { policies, url: _, ...spec } }) => {
    // Only changed parts are sent: the other part would be refused if another user has changed it.
    if (fields.some((field) => field !== 'policies'))
      await api.patch(`oidc/issuers/${part(object)}`, spec, tags['issuer']);
    if (fields.includes('policies')) await api.patch(`auth/policies/${part(object)}`, { policies }, tags['policies']);
    return object;
  },
  remove: async (api, object, tags) => void (await api.delete(`oidc/issuers/${part(object)}`, tags['issuer'])),
};

function issuerSpec({ audience, jwks, maxExpiration, replay, url }: IssuerResponse): Spec {
  return { url, audience, replay, maxExpiration: maxExpiration ?? null, jwks: jwks ?? null };
}

async function readPolicies(api: OrganizationApi, id: string) {
  const { etag, json } = await api.get(`auth/policies/oidcissuers/${part(id)}`);
  const policies: Spec[] = json.policies.map(({ id: _, ...policy }: { id: string }) => policy);
  return { etag, policies };
}
