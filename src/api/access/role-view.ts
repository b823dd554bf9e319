import { type Role, rolePermissions } from '../../shared/access/roles.ts';
import { type RoleDetails, writeRoleDetails } from './role-details.ts';
import type { RoleRow } from './role-repository.ts';

export interface RoleView {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  readonly description: string;
  readonly builtIn: Role | null;
  readonly details: RoleDetails;
  readonly roleVersion: number;
  readonly createdAt: Date;
  readonly changedAt: Date;
}

export interface Organization {
  readonly id: string;
  readonly createdAt: Date;
}

const builtInDescriptions: Readonly<Record<Role, string>> = {
  viewer: 'Built in: reads stacks and their secrets',
  member: 'Built in: updates stacks, too',
  admin: 'Built in: also deletes and manages stacks',
};

export function ownView(organization: Organization, row: RoleRow): RoleView {
  const { changedAt, createdAt, description, id, name, roleVersion } = row;
  const details = writeRoleDetails(row.permissions);
  return {
    id,
    organizationId: organization.id,
    name,
    description,
    builtIn: null,
    details,
    roleVersion,
    createdAt,
    changedAt,
  };
}

export function builtInView(organization: Organization, role: Role): RoleView {
  return {
    id: role,
    organizationId: organization.id,
    name: role,
    description: builtInDescriptions[role],
    builtIn: role,
    details: writeRoleDetails(rolePermissions[role]),
    roleVersion: 1,
    createdAt: organization.createdAt,
    changedAt: organization.createdAt,
  };
}
