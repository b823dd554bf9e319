import { Type } from 'typebox';

/** How the user of a session has signed in. */
export const SignInMethod = Type.Union([
  Type.Literal('password'),
  Type.Literal('passkey'),
  Type.Literal('provider'),
  Type.Literal('link'),
]);
export type SignInMethod = Type.Static<typeof SignInMethod>;
