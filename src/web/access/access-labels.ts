import type { AccessHolder } from '../platform/app/contract.ts';

/** Permissions on a stack, weakest first, and what each allows. */
export const permissionLabels = {
  read: 'see the stack: state, history, events and tags',
  preview: 'run previews',
  write: 'create, update, destroy, import, cancel, rename and tag',
  admin: 'delete the stack',
  decrypt: 'read secrets',
  manage: 'change tags that grants use, and see who has access',
  outputs: 'read the outputs and nothing else',
} as const;

export type Permission = keyof typeof permissionLabels;
export const permissions = Object.keys(permissionLabels) as readonly Permission[];

/** What each role of a member means. */
export const roleLabels = {
  viewer: 'reads stacks and their secrets',
  member: 'also previews and updates stacks',
  admin: 'also deletes stacks, and manages members, teams, grants, tokens and rules',
} as const;

type Reason = AccessHolder['decisions'][number]['reason'];

/** Why a user or token has a permission, or does not have it. */
export const reasonLabels: Readonly<Record<Reason, string>> = {
  role: 'by the role',
  grants: 'by a grant',
  included: 'included in read',
  scopes: 'by the scopes of the token',
  denied: 'a grant denies it',
  nothing: 'nothing allows it',
  needs: 'another permission that it needs is missing',
};

/** Reasons for a denial, where the label differs. */
export function reasonOf({ allowed, reason }: { readonly allowed: boolean; readonly reason: Reason }): string {
  if (!allowed && reason === 'scopes') return 'excluded by the token’s scopes';
  return reasonLabels[reason] ?? reason;
}
