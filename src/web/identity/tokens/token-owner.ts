export type TokenOwner =
  | { readonly of: 'me' }
  | { readonly of: 'organization'; readonly organization: string }
  | { readonly of: 'team'; readonly organization: string; readonly team: string };
