import { Type } from 'typebox';
import { component } from './protocol/components.ts';
import { AnyObject } from './protocol/core.ts';

/** apitype.CapabilitiesResponse. */
export const CapabilitiesResponse = component(
  'CapabilitiesResponse',
  Type.Object({
    capabilities: Type.Array(
      Type.Object({
        capability: Type.String(),
        version: Type.Optional(Type.Integer()),
        configuration: Type.Optional(AnyObject),
      }),
    ),
  }),
);

/** apitype.User. `githubLogin` must not be empty, or `pulumi login` fails. */
export const UserResponse = component(
  'UserResponse',
  Type.Object({
    id: Type.String(),
    githubLogin: Type.String(),
    name: Type.String(),
    email: Type.String(),
    avatarUrl: Type.String(),
    organizations: Type.Array(
      Type.Object({ githubLogin: Type.String(), name: Type.String(), avatarUrl: Type.String() }),
    ),
    identities: Type.Array(Type.String()),
    siteAdmin: Type.Boolean(),
    /** Only for tokens without a user. */
    tokenInfo: Type.Optional(
      Type.Object({ name: Type.String(), organization: Type.String(), team: Type.Optional(Type.String()) }),
    ),
  }),
);

export const DefaultOrganizationResponse = component(
  'DefaultOrganizationResponse',
  Type.Object({
    GitHubLogin: Type.String(),
    Messages: Type.Array(Type.String()),
  }),
);

export const CliVersionResponse = component(
  'CliVersionResponse',
  Type.Object({
    latestVersion: Type.String(),
    oldestWithoutWarning: Type.String(),
    latestDevVersion: Type.String(),
  }),
);
