import { type Static, Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';

const Optional = { string: Type.Optional(Type.Union([Type.String(), Type.Null()])) };
const Seconds = Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: 86_400 }), Type.Null()]));
/** Thumbprints are not supported: certificates are verified by their authorities. */
const Thumbprints = Type.Optional(Type.Union([Type.Array(Type.String(), { maxItems: 100 }), Type.Null()]));
const KeySet = Type.Optional(Type.Union([Type.Object({ keys: Type.Array(Type.Unknown()) }), Type.Null()]));
const ReplayText = Type.Union([Type.Literal('once'), Type.Literal('within-life')], {
  description: 'Our extension: whether an id token can be exchanged once (default), or any number of times',
});
const Audience = Type.String({ description: 'Our extension; default urn:pulumi:org:<organization>' });

export const RegisterIssuerRequest = component(
  'RegisterIssuerRequest',
  Type.Object({
    name: Type.String(),
    url: Type.String(),
    thumbprints: Thumbprints,
    maxExpiration: Seconds,
    jwks: KeySet,
    audience: Type.Optional(Audience),
    replay: Type.Optional(ReplayText),
  }),
);
export type RegisterIssuerRequest = Static<typeof RegisterIssuerRequest>;

export const UpdateIssuerRequest = component(
  'UpdateIssuerRequest',
  Type.Object({
    name: Type.Optional(Type.String()),
    thumbprints: Thumbprints,
    maxExpiration: Seconds,
    jwks: KeySet,
    audience: Type.Optional(Audience),
    replay: Type.Optional(ReplayText),
  }),
  { maxExpiration: 3_600 },
);
export type UpdateIssuerRequest = Static<typeof UpdateIssuerRequest>;

export const IssuerResponse = component(
  'IssuerResponse',
  Type.Object({
    id: Type.String(),
    name: Type.String(),
    url: Type.String(),
    issuer: Type.String(),
    audience: Type.String(),
    replay: Type.String(),
    thumbprints: Type.Array(Type.String()),
    maxExpiration: Type.Optional(Type.Integer()),
    jwks: Type.Optional(Type.Object({ keys: Type.Array(Type.Unknown()) })),
    created: Type.String(),
    modified: Type.String(),
  }),
);

export const ListIssuersResponse = component(
  'ListIssuersResponse',
  Type.Object({ oidcIssuers: Type.Array(IssuerResponse) }),
);

const Pattern = Type.Union([Type.String(), Type.Array(Type.String())]);
const Scope = Type.Object({ permissions: Type.Array(Type.String(), { maxItems: 100 }), stacks: Type.String() });

const TokenType = Type.String({
  description: 'organization, team, personal; our extensions: service, and any, the default of a policy that denies',
});
const Definition = {
  decision: Type.String({ description: 'allow or deny' }),
  /** Not a Record: its key pattern `.*` does not match line breaks. */
  rules: Type.Unsafe<Record<string, string | string[]>>(
    Type.Object({}, { additionalProperties: Pattern, description: 'Patterns (* only) by the path of a claim' }),
  ),
};

export const PoliciesRequest = component(
  'PoliciesRequest',
  Type.Object({
    policies: Type.Array(
      Type.Object({
        ...Definition,
        tokenType: Type.Optional(Type.Union([TokenType, Type.Null()])),
        teamName: Optional.string,
        userLogin: Optional.string,
        runnerID: Optional.string,
        roleID: Optional.string,
        authorizedPermissions: Type.Optional(Type.Union([Type.Array(Type.String(), { maxItems: 100 }), Type.Null()])),
        scopes: Type.Optional(Type.Union([Type.Array(Scope), Type.Null()])),
        maxExpiration: Seconds,
      }),
    ),
  }),
);
export type PoliciesRequest = Static<typeof PoliciesRequest>;

export const PoliciesResponse = component(
  'PoliciesResponse',
  Type.Object({
    id: Type.String(),
    version: Type.Integer(),
    created: Type.String(),
    modified: Type.String(),
    policies: Type.Array(
      Type.Object({
        ...Definition,
        tokenType: TokenType,
        id: Type.String(),
        teamName: Type.Optional(Type.String()),
        userLogin: Type.Optional(Type.String()),
        authorizedPermissions: Type.Array(Type.String()),
        scopes: Type.Optional(Type.Array(Scope)),
        maxExpiration: Type.Optional(Type.Integer()),
      }),
    ),
  }),
);

export const IssuerParams = Type.Object({ organization: Type.String(), issuerId: Type.String() });
export const PoliciesParams = Type.Object({ organization: Type.String(), policyId: Type.String() });
