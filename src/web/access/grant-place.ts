/** To whom grants are given, or where they hold. */
export type GrantPlace =
  | { readonly team: string }
  | { readonly on: { readonly project: string; readonly stack: string } };
