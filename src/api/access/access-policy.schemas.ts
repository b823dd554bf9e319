import { type Static, Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';

const decryptByRole = Type.Boolean({
  description: 'Whether viewers and members may decrypt secrets by role. Admins always may.',
});
const defaultPermissions = Type.Union([Type.Array(Type.String({ maxLength: 100 }), { maxItems: 20 }), Type.Null()], {
  description:
    'Maximum permissions of roles below admin, including the permissions they need. Empty: only grants apply. Null: all permissions of the role.',
});

export const AccessPolicy = component('AccessPolicy', Type.Object({ decryptByRole, defaultPermissions }));
export type AccessPolicy = Static<typeof AccessPolicy>;

/** One or both fields; with both, `decryptByRole` is applied to the permissions. */
export const ChangeAccessPolicyRequest = component(
  'ChangeAccessPolicyRequest',
  Type.Object({
    decryptByRole: Type.Optional(decryptByRole),
    defaultPermissions: Type.Optional(defaultPermissions),
  }),
  { defaultPermissions: ['read'] },
);
export type ChangeAccessPolicyRequest = Static<typeof ChangeAccessPolicyRequest>;
