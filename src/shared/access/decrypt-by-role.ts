import { hasPermission, type PermissionSet, permissionSet } from './permissions.ts';
import { rolePermissions } from './roles.ts';

/** `defaults` limit the roles below admin; null for no limit. */
export function decryptsByRole(defaults: PermissionSet | null): boolean {
  return defaults === null || hasPermission(defaults, 'decrypt');
}

/** Null for no limit. */
export function withDecryptByRole(defaults: PermissionSet | null, isOn: boolean): PermissionSet | null {
  if (decryptsByRole(defaults) === isOn) return defaults;
  const decrypt = permissionSet(['decrypt']);
  if (!isOn) return (defaults ?? rolePermissions.member) & ~decrypt;
  // Decrypt needs `read` to have an effect.
  const wider = (defaults ?? rolePermissions.member) | permissionSet(['read', 'decrypt']);
  return (wider & rolePermissions.member) === rolePermissions.member ? null : wider;
}
