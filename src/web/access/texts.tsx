import type { ReactNode } from 'react';
import { numberLocale } from '../platform/ui/locale.ts';

const takesEffect =
  'This takes effect at once, on all stacks. Grants stay as they are. Running updates that are no longer permitted lose their lock; the state they have saved is kept.';

/** `permissions`: weakest first. */
export const accessLabelTexts = {
  permissions: {
    read: 'see the stack: state, history, events and tags',
    preview: 'run previews',
    write: 'create, update, destroy, import, cancel, rename and tag',
    admin: 'delete the stack',
    decrypt: 'read secrets',
    manage: 'change tags that grants use, and see who has access',
    outputs: 'read the outputs and nothing else',
  },
  roles: {
    viewer: 'reads stacks and their secrets',
    member: 'also previews and updates stacks',
    admin: 'also deletes stacks, and manages members, teams, grants, tokens and rules',
  },
  reasons: {
    role: 'by the role',
    grants: 'by a grant',
    included: 'included in read',
    scopes: 'by the scopes of the token',
    denied: 'a grant denies it',
    nothing: 'nothing allows it',
    needs: 'another permission that it needs is missing',
  },
  excludedByScopes: 'excluded by the token’s scopes',
} as const;

export const accessTexts = {
  allOfRole: 'All permissions of the role',
  allPermissions: 'All permissions of the role.',
  allowByRole: 'Allow by role',
  allowDecryption: 'Allow viewers and members to decrypt?',
  allowDecryptionLead: 'Every member of the organization who can read a stack can then read its secrets.',
  atMost: 'At most',
  atMostSome: 'At most these permissions',
  decryptedByGrant: 'Only admins, and holders of a grant, can decrypt them.',
  decryptedByRole: 'Viewers and members can decrypt them.',
  edit: 'Edit',
  editRolePermissions: 'Edit role permissions',
  editRolePermissionsLead: 'The viewer and member roles have at most these permissions. Admins keep all permissions.',
  lead: 'What viewers and members can do on every stack by their role. Admins can do everything. Grants add permissions for individual users, teams and tokens.',
  lose: (permissions: ReactNode) => (
    <>
      Viewers and members lose {permissions} unless a grant allows it. {takesEffect}
    </>
  ),
  noneOfRole: 'None: only grants apply',
  nonePermissions: 'None. Only grants apply.',
  permissions: 'Permissions',
  removePermissions: 'Remove permissions',
  requireGrant: 'Require a grant',
  requireGrantLead: `Commands that need secrets then fail for viewers and members without a grant, including pulumi up of stacks with secrets. ${takesEffect}`,
  requireGrantTitle: 'Require a grant for decryption?',
  rolePermissions: 'Role permissions',
  save: 'Save',
  secrets: 'Secrets',
  title: 'Access',
} as const;

export const grantDialogTexts = {
  aMember: 'A member',
  aTeam: 'A team',
  aToken: 'A token',
  action: 'Add the grant',
  allow: 'Allow',
  deny: 'Deny',
  denyAction: 'Add the denial',
  effect: 'Effect',
  grant: 'Grant',
  grantedTo: 'Granted to',
  individual: 'Individual permissions',
  lead: 'A grant applies at once, in addition to roles. A denial applies to everyone the grant names, including admins.',
  login: 'Login',
  permissions: 'Permissions',
  permissionsOfRole: (permissions: string) => `${permissions}. The grant changes with the role.`,
  stacks: 'Stacks',
  stacksHint: (pattern: ReactNode, star: ReactNode) => (
    <>
      {pattern}, in which {star} stands for any characters
    </>
  ),
  tag: 'Tag',
  tagExample: 'owner=data',
  tagHint: 'Only stacks with this tag. Leave empty for all stacks.',
  teamName: 'Team name',
  theRole: (role: string) => `The role ${role}`,
  title: 'Add a grant',
  titleForTeam: (team: string) => `Add a grant for ${team}`,
  tokenId: 'Token id',
} as const;

export const grantTexts = {
  actions: 'Actions',
  add: 'Add a grant',
  allows: 'allows',
  denies: 'denies',
  grantOn: (stacks: string) => `the grant on ${stacks}`,
  grantedTo: 'Granted to',
  grants: 'Grants',
  none: 'No grants. Only roles apply.',
  ofRole: (role: string) => `role ${role}`,
  permissions: 'Permissions',
  revoke: 'Revoke…',
  revokeAction: 'Revoke the grant',
  revokeDenialLead: (whose: string, stacks: string) =>
    `${whose} again has all permissions on ${stacks} that roles and other grants give.`,
  revokeLead: (whose: string, stacks: string) =>
    `${whose} keeps only the permissions on ${stacks} that roles and other grants give. Running updates that are no longer permitted lose their lock at once.`,
  revokeTitle: 'Revoke this grant?',
  since: 'Since',
  stacks: 'Stacks',
  team: 'team',
  token: 'token',
  withTag: (tag: ReactNode) => <>with the tag {tag}</>,
} as const;

export const limitTexts = {
  atMost: (limit: string) => `at most ${limit}`,
  byDay: 'Storage by day, without policy packs',
  byUser: 'By one user',
  fromAddress: 'From one address',
  inFlight: 'In flight',
  inFlightAbout: 'bodies of requests that are being written',
  lead: 'Usage and limits of this organization. The operators of the server set the limits.',
  measured: (at: ReactNode) => <>measured {at}</>,
  noLimit: 'no limit',
  notMeasured: 'not measured',
  of: (limit: string) => `of ${limit}`,
  perMinute: (requests: number) => `${requests.toLocaleString(numberLocale)} per minute`,
  reached: 'reached',
  requests: 'Requests',
  requestsLead:
    'These apply to the whole server and to every user. Requests over a limit are refused and must be retried later.',
  requestsPerSecond: 'Requests per second',
  requestsPerSecondAbout: 'by all members, on each replica',
  stacks: 'Stacks',
  stacksAbout: 'not deleted',
  stored: 'Stored',
  storedAbout: 'states, journals and events of all stacks, including deleted stacks that can be restored',
  title: 'Limits',
  updates: 'Concurrent updates',
  updatesAbout: 'including previews',
  used: (percent: number) => `${percent} % used`,
  withToken: 'With one token',
} as const;

export const permissionTexts = { nothing: 'nothing' } as const;

export const roleTexts = {
  actions: 'Actions',
  builtIn: 'built in',
  create: 'Create a role',
  createAction: 'Create the role',
  createLead: 'A role has no effect until a grant uses it.',
  delete: 'Delete…',
  deleteAction: 'Delete the role',
  deleteLead: (grants: number) =>
    grants === 0
      ? 'No grant uses it.'
      : `${grants === 1 ? 'One grant uses' : `${grants} grants use`} it, and ${grants === 1 ? 'ends' : 'end'} with it. Running updates that are no longer permitted lose their lock.`,
  deleteTitle: (role: string) => `Delete ${role}?`,
  description: 'Description',
  edit: 'Edit…',
  editLead: 'All grants of this role change at once. Running updates that are no longer permitted lose their lock.',
  editTitle: (role: string) => `Edit ${role}`,
  lead: 'Members have one of the three built-in roles. A grant gives a role to a member, team or token on certain stacks.',
  lookingForGrants: 'Looking for its grants…',
  name: 'Name',
  permissions: 'Permissions',
  roles: 'Roles',
  save: 'Save',
} as const;
