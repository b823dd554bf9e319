import { Type } from 'typebox';

/** To what a token belongs: a user, a team, an organization with a role there, or an organization without one. */
const tokenKinds = ['personal', 'team', 'organization', 'service'] as const;
export const TokenKind = Type.Union(tokenKinds.map((kind) => Type.Literal(kind)));
export type TokenKind = (typeof tokenKinds)[number];
