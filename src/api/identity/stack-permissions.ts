import { allowedBy, hasPermission, type PermissionSet } from '../../shared/access/permissions.ts';

/** Pulumi's REST API identifies permissions on a stack by these numbers: the same as the roles viewer, member and admin. */
const levels: Readonly<Record<101 | 102 | 103, PermissionSet>> = {
  101: allowedBy(['read', 'decrypt']),
  102: allowedBy(['write', 'decrypt']),
  103: allowedBy(['admin', 'decrypt', 'manage']),
};

export function fromLevel(level: 101 | 102 | 103): PermissionSet {
  return levels[level];
}

/** The highest number whose main permission is in the set; 0 without read. */
export function toLevel(set: PermissionSet): number {
  if (hasPermission(set, 'admin')) return 103;
  if (hasPermission(set, 'write')) return 102;
  return hasPermission(set, 'read') ? 101 : 0;
}
