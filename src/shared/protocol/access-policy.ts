import { Type } from 'typebox';

/** What an organization has decided about its roles. */
export const AccessPolicy = Type.Object({
  /** Whether viewers and members may decrypt secrets by their role. Admins always may. */
  decryptByRole: Type.Boolean(),
});
