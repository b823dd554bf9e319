import { Type } from 'typebox';

/** The owner is a user, a team, an organization with a role there, or an organization without a role. */
export const tokenKinds = ['personal', 'team', 'organization', 'service'] as const;
export const TokenKind = Type.Union([
  Type.Literal('personal'),
  Type.Literal('team'),
  Type.Literal('organization'),
  Type.Literal('service'),
]);
export type TokenKind = (typeof tokenKinds)[number];
