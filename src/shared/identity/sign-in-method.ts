import { Type } from 'typebox';

export const SignInMethod = Type.Union([
  Type.Literal('password'),
  Type.Literal('passkey'),
  Type.Literal('provider'),
  Type.Literal('link'),
]);
export type SignInMethod = Type.Static<typeof SignInMethod>;
