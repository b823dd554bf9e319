import { Type } from 'typebox';

/** The method by which the user of a session signed in. */
export const SignInMethod = Type.Union([
  Type.Literal('password'),
  Type.Literal('passkey'),
  Type.Literal('provider'),
  Type.Literal('link'),
]);
export type SignInMethod = Type.Static<typeof SignInMethod>;
