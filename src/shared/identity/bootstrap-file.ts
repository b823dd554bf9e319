import { Type } from 'typebox';
import { Role } from '../access/roles.ts';
import { OperatorError } from '../platform/errors/errors.ts';

const closed = { additionalProperties: false };

const Member = Type.Object(
  {
    login: Type.String(),
    role: Role,
    token: Type.Optional(Type.String({ minLength: 16, maxLength: 512 })),
    siteAdmin: Type.Optional(Type.Boolean()),
  },
  closed,
);

/** The file named by HOLDFAST_BOOTSTRAP. */
export const BootstrapFile = Type.Object(
  {
    /** A file with a lower revision than the one applied last is skipped. */
    revision: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    /**
     * Removes entries that the file no longer lists: from organizations that do not override this, and from those that it no longer lists.
     */
    manage: Type.Optional(Type.Boolean()),
    organizations: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          manage: Type.Optional(Type.Boolean()),
          /** Allows a managed organization without members. */
          allowNoMembers: Type.Optional(Type.Boolean()),
          members: Type.Optional(Type.Array(Member)),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type BootstrapFile = Type.Static<typeof BootstrapFile>;

/** The message names the location of the error and never contains a token. */
export class BootstrapError extends OperatorError {
  override readonly name = 'BootstrapError';
}

/** A managed organization loses members that the file does not list. */
export function isManaged(file: BootstrapFile, organization: BootstrapFile['organizations'][number]): boolean {
  return organization.manage ?? file.manage ?? false;
}
