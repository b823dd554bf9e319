import { Type } from 'typebox';

/** Roles in an organization, weakest first. */
export const roles = ['viewer', 'member', 'admin'] as const;
export const Role = Type.Union([Type.Literal('viewer'), Type.Literal('member'), Type.Literal('admin')]);
export type Role = Type.Static<typeof Role>;

/** Whether `held` has all permissions of `needed`. */
export function roleIncludes(held: Role, needed: Role): boolean {
  return roles.indexOf(held) >= roles.indexOf(needed);
}
