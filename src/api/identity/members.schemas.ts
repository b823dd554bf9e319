import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';

export const Role = Type.Union([Type.Literal('viewer'), Type.Literal('member'), Type.Literal('admin')]);

export const MembersQuery = Type.Object({
  /** `frontend` or `backend` of Pulumi Cloud, which are the same here. */
  type: Type.Optional(Type.String()),
  continuationToken: Type.Optional(Type.String()),
});

/** As the CLI reads it (sdk/go/common/apitype). */
export const MemberResponse = component(
  'MemberResponse',
  Type.Object({
    role: Role,
    user: Type.Object({
      name: Type.String(),
      githubLogin: Type.String(),
      avatarUrl: Type.String(),
      email: Type.String(),
    }),
    created: Type.String(),
    knownToPulumi: Type.Boolean(),
    virtualAdmin: Type.Boolean(),
    fgaRole: Type.Object({ id: Type.String(), name: Type.String() }),
  }),
);
export const MembersResponse = component(
  'MembersResponse',
  Type.Object({
    members: Type.Array(MemberResponse),
    continuationToken: Type.Optional(Type.String()),
  }),
);

export const MemberParams = Type.Object({ organization: Type.String(), login: Type.String() });
/** Any text, so that the error can say what is wrong with it. */
export const AddMemberRequest = Type.Object({ role: Type.String() });
export const DescribedMember = component('AddMemberRequest', Type.Object({ role: Role }));
/** A role, or its id in lists of roles. */
export const ChangeMemberRequest = Type.Object({
  role: Type.Optional(Role),
  fgaRoleId: Type.Optional(Type.String()),
});
export type ChangeMemberRequest = Type.Static<typeof ChangeMemberRequest>;
export const DescribedMemberChange = component('ChangeMemberRequest', Type.Object({ role: Role }));
