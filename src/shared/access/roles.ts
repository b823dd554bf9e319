import { Type } from 'typebox';
import { type PermissionSet, permissionSet } from './permissions.ts';

/** Weakest first. */
export const roles = ['viewer', 'member', 'admin'] as const;
export const Role = Type.Union([Type.Literal('viewer'), Type.Literal('member'), Type.Literal('admin')]);
export type Role = Type.Static<typeof Role>;

/** Viewers of a stack may read its secrets, because `pulumi stack` and `stack output` decrypt them. */
const viewer = permissionSet(['read', 'decrypt']);
const member = viewer | permissionSet(['preview', 'write']);

/** Must equal the database function role_permissions. */
export const rolePermissions: Readonly<Record<Role, PermissionSet>> = {
  viewer,
  member,
  admin: member | permissionSet(['admin', 'manage']),
};
