import { Type } from 'typebox';

/** `outputs` permits only reading the stack's outputs; `read` includes it. */
export const permissions = ['read', 'preview', 'write', 'admin', 'decrypt', 'manage', 'outputs'] as const;
export type Permission = (typeof permissions)[number];

export const grantable = [...permissions] as const;
export const Grantable = Type.Union(grantable.map((name) => Type.Literal(name)));
export type Grantable = (typeof grantable)[number];

/** Bits, as in the database. */
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

/** A permission has no effect without the one that it needs. With `outputs`, `decrypt` also works alone, for secret outputs. */
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

export function isOutputsOnly(set: PermissionSet): boolean {
  return hasPermission(set, 'outputs') && !hasPermission(set, 'read');
}

/** Takes a usable set. A caller limited to outputs may decrypt only the secrets in them. */
export function permits(set: PermissionSet, permission: Permission): boolean {
  return permission === 'outputs'
    ? hasPermission(set, 'outputs') || hasPermission(set, 'read')
    : hasPermission(set, permission) && !isOutputsOnly(set);
}

/** Weakest first. */
export function namesOf(set: PermissionSet): Permission[] {
  return permissions.filter((name) => hasPermission(set, name));
}

/** Includes all permissions that these need. */
export function allowedBy(names: readonly Permission[]): PermissionSet {
  if (names.includes('outputs') && names.includes('decrypt')) {
    const others = allowedBy(names.filter((name) => name !== 'decrypt'));
    return others | bits.decrypt;
  }
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

/** Includes all permissions that need these. */
export function deniedBy(names: readonly Permission[]): PermissionSet {
  return permissionSet(permissions.filter((name) => (allowedBy([name]) & permissionSet(names)) !== 0));
}

/** Drops permissions that lack a needed one. */
export function usable(set: PermissionSet): PermissionSet {
  const alone = permissionSet(permissions.filter((name) => (allowedBy([name]) & ~set) === 0));
  return hasPermission(set, 'outputs') ? alone | (set & bits.decrypt) : alone;
}
