import { Type } from 'typebox';

/**
 * What one may do with a stack. `outputs`, reading nothing but outputs, is reserved: it can be stored, but not granted yet.
 */
export const permissions = ['read', 'preview', 'write', 'admin', 'decrypt', 'manage', 'outputs'] as const;
export type Permission = (typeof permissions)[number];

/** Permissions that can be granted. */
export const grantable = ['read', 'preview', 'write', 'admin', 'decrypt', 'manage'] as const;
export const Grantable = Type.Union(grantable.map((name) => Type.Literal(name)));
export type Grantable = (typeof grantable)[number];

/** A set of permissions as bits, as in the database. */
export type PermissionSet = number;

const bits: Readonly<Record<Permission, PermissionSet>> = {
  read: 1,
  preview: 2,
  write: 4,
  admin: 8,
  decrypt: 16,
  manage: 32,
  outputs: 64,
};

/** The permission without which this one is worth nothing. */
const needs: Readonly<Partial<Record<Permission, Permission>>> = {
  preview: 'read',
  write: 'preview',
  admin: 'write',
  decrypt: 'read',
  manage: 'read',
};

export const noPermissions: PermissionSet = 0;
export const allPermissions: PermissionSet = 127;

export function permissionSet(names: readonly Permission[]): PermissionSet {
  return names.reduce((set, name) => set | bits[name], noPermissions);
}

export function hasPermission(set: PermissionSet, permission: Permission): boolean {
  return (set & bits[permission]) !== 0;
}

/** Names in the set, weakest first. */
export function namesOf(set: PermissionSet): Permission[] {
  return permissions.filter((name) => hasPermission(set, name));
}

/** What allowing these allows: them and all that they need. */
export function allowedBy(names: readonly Permission[]): PermissionSet {
  let set = noPermissions;
  for (let name of names) {
    for (;;) {
      set |= bits[name];
      const next = needs[name];
      if (next === undefined) break;
      name = next;
    }
  }
  return set;
}

/** What denying these denies: them and all that need them. */
export function deniedBy(names: readonly Permission[]): PermissionSet {
  return permissionSet(permissions.filter((name) => (allowedBy([name]) & permissionSet(names)) !== 0));
}

/** The set without permissions whose needs it lacks. */
export function usable(set: PermissionSet): PermissionSet {
  return permissionSet(permissions.filter((name) => (allowedBy([name]) & ~set) === 0));
}
