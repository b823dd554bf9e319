import { hasPermission, type PermissionSet, permissionSet } from './permissions.ts';
import { rolePermissions } from './roles.ts';

/** Whether roles below admin give the permission to decrypt. `defaults`: what they give at most, null for all that they have. */
export function decryptsByRole(defaults: PermissionSet | null): boolean {
  return defaults === null || hasPermission(defaults, 'decrypt');
}

/** The defaults with or without the permission to decrypt. Null: no limit. */
export function withDecryptByRole(defaults: PermissionSet | null, isOn: boolean): PermissionSet | null {
  if (decryptsByRole(defaults) === isOn) return defaults;
  const decrypt = permissionSet(['decrypt']);
  if (!isOn) return (defaults ?? rolePermissions.member) & ~decrypt;
  // Without `read`, which it needs, decrypt would give nothing.
  const wider = (defaults ?? rolePermissions.member) | permissionSet(['read', 'decrypt']);
  return (wider & rolePermissions.member) === rolePermissions.member ? null : wider;
}
