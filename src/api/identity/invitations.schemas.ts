import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { Role } from './members.schemas.ts';

/** Times are seconds since 1970. */
const Invitation = {
  role: Role,
  invitedBy: Type.String(),
  created: Type.Integer(),
  expires: Type.Integer(),
};

export const InviteRequest = component('InviteRequest', Type.Object({ login: Type.String(), role: Role }));
export const InvitationsResponse = component(
  'InvitationsResponse',
  Type.Object({
    invitations: Type.Array(Type.Object({ login: Type.String(), ...Invitation })),
  }),
);
export const OwnInvitationsResponse = component(
  'OwnInvitationsResponse',
  Type.Object({
    invitations: Type.Array(Type.Object({ organization: Type.String(), ...Invitation })),
  }),
);
