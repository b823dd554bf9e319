import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { Maybe } from '../platform/protocol/core.ts';

const TeamRole = Type.Union([Type.Literal('none'), Type.Literal('member'), Type.Literal('admin')]);

/** 101 read, 102 write, 103 admin; 0 none of them. */
const StackPermission = Type.Integer({ description: '101: read, 102: write, 103: admin' });

const UserInfo = {
  name: Type.String(),
  githubLogin: Type.String(),
  avatarUrl: Type.String(),
  email: Type.String(),
};

/** The format of Pulumi's REST API. `stacks` is only in the response for one team. */
export const TeamResponse = component(
  'TeamResponse',
  Type.Object({
    kind: Type.Literal('pulumi'),
    name: Type.String(),
    displayName: Type.String(),
    description: Type.String(),
    userRole: TeamRole,
    members: Type.Array(Type.Object({ ...UserInfo, role: TeamRole })),
    stacks: Type.Optional(
      Type.Array(Type.Object({ projectName: Type.String(), stackName: Type.String(), permission: StackPermission })),
    ),
  }),
);

export const ListTeamsResponse = component('ListTeamsResponse', Type.Object({ teams: Type.Array(TeamResponse) }));

/** Other members repeat the path. */
export const CreateTeamRequest = component(
  'CreateTeamRequest',
  Type.Object({
    name: Type.String(),
    displayName: Maybe(Type.String()),
    description: Maybe(Type.String()),
  }),
);
export type CreateTeamRequest = Type.Static<typeof CreateTeamRequest>;

const StackName = { projectName: Type.String(), stackName: Type.String() };
const GivenPermission = Type.Object({
  ...StackName,
  permission: Type.Union([Type.Literal(101), Type.Literal(102), Type.Literal(103)]),
});

const MemberAction = Type.Union([
  Type.Literal('add'),
  Type.Literal('remove'),
  Type.Literal('promote'),
  Type.Literal('demote'),
]);

export const UpdateTeamRequest = component(
  'UpdateTeamRequest',
  Type.Object({
    newDisplayName: Maybe(Type.String()),
    newDescription: Maybe(Type.String()),
    memberAction: Maybe(MemberAction),
    member: Maybe(Type.String()),
    /** Changes are made in this order. */
    memberChanges: Maybe(
      Type.Array(Type.Object({ member: Type.String(), memberAction: MemberAction }), { maxItems: 200 }),
    ),
    addStackPermission: Maybe(GivenPermission),
    editStackPermission: Maybe(GivenPermission),
    removeStack: Maybe(Type.Object(StackName)),
    addEnvironmentPermission: Maybe(Type.Unknown()),
    editEnvironmentPermission: Maybe(Type.Unknown()),
    removeEnvironment: Maybe(Type.Unknown()),
  }),
  { memberAction: 'add', member: 'ada' },
);
export type UpdateTeamRequest = Type.Static<typeof UpdateTeamRequest>;

export const StackTeamsResponse = component(
  'StackTeamsResponse',
  Type.Object({
    projectName: Type.String(),
    teams: Type.Array(
      Type.Object({
        name: Type.String(),
        displayName: Type.String(),
        description: Type.String(),
        permission: StackPermission,
        isMember: Type.Boolean(),
      }),
    ),
  }),
);

export const CollaboratorsResponse = component(
  'CollaboratorsResponse',
  Type.Object({
    users: Type.Array(Type.Object({ user: Type.Object(UserInfo), permission: StackPermission })),
  }),
);
