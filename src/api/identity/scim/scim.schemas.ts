import { Type } from 'typebox';
import { component } from '../../platform/protocol/components.ts';

/** SCIM 2.0 (RFC 7643, RFC 7644), as far as supported: the rest of a body is dropped. */

export const userSchema = 'urn:ietf:params:scim:schemas:core:2.0:User';
export const groupSchema = 'urn:ietf:params:scim:schemas:core:2.0:Group';
export const listSchema = 'urn:ietf:params:scim:api:messages:2.0:ListResponse';
export const errorSchema = 'urn:ietf:params:scim:api:messages:2.0:Error';

export const ScimParams = Type.Object({ organization: Type.String() });
export const ScimResourceParams = Type.Object({ organization: Type.String(), id: Type.String() });
export const ScimQuery = Type.Object({
  attributes: Type.Optional(Type.String()),
  excludedAttributes: Type.Optional(Type.String()),
});
export const ScimListQuery = Type.Object({
  ...ScimQuery.properties,
  filter: Type.Optional(Type.String()),
  startIndex: Type.Optional(Type.String()),
  count: Type.Optional(Type.String()),
});

/** The reader checks the body: names may be in any case, and providers take liberties with types. */
export const ScimBody = Type.Record(Type.String(), Type.Unknown());

const Schemas = Type.Array(Type.String());
const Meta = Type.Object({
  resourceType: Type.String(),
  created: Type.Optional(Type.String()),
  lastModified: Type.Optional(Type.String()),
  location: Type.String(),
});
const Reference = Type.Object({ value: Type.String(), display: Type.String() });

/** The query may exclude members other than id and schemas. */
export const ScimUser = component(
  'ScimUser',
  Type.Object({
    schemas: Schemas,
    id: Type.String(),
    externalId: Type.Optional(Type.String()),
    userName: Type.Optional(Type.String()),
    displayName: Type.Optional(Type.String()),
    name: Type.Optional(Type.Object({ formatted: Type.String(), givenName: Type.String(), familyName: Type.String() })),
    emails: Type.Optional(
      Type.Array(Type.Object({ value: Type.String(), type: Type.String(), primary: Type.Boolean() })),
    ),
    active: Type.Optional(Type.Boolean()),
    groups: Type.Optional(Type.Array(Reference)),
    meta: Type.Optional(Meta),
  }),
);

export const ScimGroup = component(
  'ScimGroup',
  Type.Object({
    schemas: Schemas,
    id: Type.String(),
    externalId: Type.Optional(Type.String()),
    displayName: Type.Optional(Type.String()),
    members: Type.Optional(Type.Array(Reference)),
    meta: Type.Optional(Meta),
  }),
);

export function scimListOf<Resource extends ReturnType<typeof Type.Object>>(name: string, resource: Resource) {
  return component(
    name,
    Type.Object({
      schemas: Schemas,
      totalResults: Type.Integer(),
      startIndex: Type.Integer(),
      itemsPerPage: Type.Integer(),
      Resources: Type.Array(resource),
    }),
  );
}
