import { groupSchema, listSchema, userSchema } from './scim.schemas.ts';

/** RFC 7643, sections 5 to 7. */

export function serviceProviderConfig(base: string) {
  return {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
    patch: { supported: true },
    bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
    filter: { supported: true, maxResults: 200 },
    changePassword: { supported: false },
    sort: { supported: false },
    etag: { supported: false },
    authenticationSchemes: [
      {
        type: 'oauthbearertoken',
        name: 'Bearer token',
        description: 'A token created by holdfast admin token create --provisioning',
        primary: true,
      },
    ],
    meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
  };
}

export function resourceTypes(base: string) {
  return listOf(
    [
      ['User', '/Users', userSchema, 'Members of the organization'],
      ['Group', '/Groups', groupSchema, 'Teams of the organization'],
    ].map(([name, endpoint, schema, description]) => ({
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:ResourceType'],
      id: name,
      name,
      endpoint,
      description,
      schema,
      meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${name}` },
    })),
  );
}

export function schemas(base: string) {
  const user = [
    attribute('userName', { required: true, uniqueness: 'server' }),
    attribute('displayName'),
    attribute('name', {
      type: 'complex',
      subAttributes: ['formatted', 'givenName', 'familyName'].map((name) => attribute(name)),
    }),
    attribute('emails', {
      type: 'complex',
      multiValued: true,
      subAttributes: [attribute('value'), attribute('type'), attribute('primary', { type: 'boolean' })],
    }),
    attribute('active', { type: 'boolean' }),
    attribute('groups', { ...references, mutability: 'readOnly' }),
  ];
  const group = [attribute('displayName', { required: true, uniqueness: 'server' }), attribute('members', references)];
  return listOf(
    [
      { id: userSchema, name: 'User', description: 'A member', attributes: user },
      { id: groupSchema, name: 'Group', description: 'A team', attributes: group },
    ].map((schema) => ({
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:Schema'],
      ...schema,
      meta: { resourceType: 'Schema', location: `${base}/Schemas/${schema.id}` },
    })),
  );
}

interface Attribute {
  readonly type?: string;
  readonly multiValued?: boolean;
  readonly required?: boolean;
  readonly mutability?: string;
  readonly uniqueness?: string;
  readonly subAttributes?: readonly object[];
}

function attribute(name: string, given: Attribute = {}) {
  return {
    name,
    type: 'string',
    multiValued: false,
    description: name,
    required: false,
    caseExact: false,
    mutability: 'readWrite',
    returned: 'default',
    uniqueness: 'none',
    ...given,
  };
}

const references: Attribute = {
  type: 'complex',
  multiValued: true,
  subAttributes: [attribute('value'), attribute('display', { mutability: 'readOnly' })],
};

function listOf<Item>(items: readonly Item[]) {
  return {
    schemas: [listSchema],
    totalResults: items.length,
    startIndex: 1,
    itemsPerPage: items.length,
    Resources: items,
  };
}
