import { Type } from 'typebox';
import { type PermissionSet, permissionSet } from './permissions.ts';

/** Roles in an organization, weakest first. */
export const roles = ['viewer', 'member', 'admin'] as const;
export const Role = Type.Union([Type.Literal('viewer'), Type.Literal('member'), Type.Literal('admin')]);
export type Role = Type.Static<typeof Role>;

/** `pulumi stack` and `stack output` decrypt, so viewers of a stack may read its secrets. */
const viewer = permissionSet(['read', 'decrypt']);
const member = viewer | permissionSet(['preview', 'write']);

/** What each role gives on every stack of the organization. The same as the function role_permissions in the database. */
export const rolePermissions: Readonly<Record<Role, PermissionSet>> = {
  viewer,
  member,
  admin: member | permissionSet(['admin', 'manage']),
};
