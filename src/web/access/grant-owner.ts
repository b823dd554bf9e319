/** Whom grants are given to, or where they apply. */
export type GrantOwner =
  | { readonly team: string }
  | { readonly on: { readonly project: string; readonly stack: string } };
