import { type Static, Type } from 'typebox';

const decryptByRole = Type.Boolean({
  description: 'Whether viewers and members may decrypt secrets by their role. Admins always may.',
});
const defaultPermissions = Type.Union([Type.Array(Type.String({ maxLength: 100 }), { maxItems: 20 }), Type.Null()], {
  description:
    'What roles below admin give at most: permissions, with what they need. None: only grants give anything. Null: all that the role has.',
});

/** What an organization has decided about its roles. */
export const AccessPolicy = Type.Object({ decryptByRole, defaultPermissions });
export type AccessPolicy = Static<typeof AccessPolicy>;

/** One of them, or both: then `decryptByRole` is applied to the permissions. */
export const ChangeAccessPolicyRequest = Type.Object({
  decryptByRole: Type.Optional(decryptByRole),
  defaultPermissions: Type.Optional(defaultPermissions),
});
export type ChangeAccessPolicyRequest = Static<typeof ChangeAccessPolicyRequest>;
