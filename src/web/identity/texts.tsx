import type { ReactNode } from 'react';

export const invitationTexts = {
  actions: 'Actions',
  expires: 'Expires',
  invitationFor: (login: string) => `the invitation for ${login}`,
  invitations: 'Invitations',
  invitedBy: 'Invited by',
  lead: 'An invitation expires after 14 days.',
  login: 'Login',
  role: 'Role',
  withdraw: 'Withdraw…',
} as const;

export const memberDialogTexts = {
  add: 'Add a member',
  addAction: 'Add the member',
  addHint: 'Users without an account get one from an operator, or by signing in with your identity provider.',
  addLead: (organization: string) => `A user with an account on this server gets the role in ${organization} at once.`,
  changeRole: (login: string) => `Change the role of ${login}`,
  changeRoleAction: 'Change the role',
  changeRoleLead: (login: string, role: string) => `The role of ${login} is ${role}.`,
  invite: 'Invite a member',
  inviteAction: 'Invite',
  noMember: (login: string) => `${login} is no longer a member.`,
  inviteHint:
    'The user must already have an account on this server. This page does not reveal whether a login exists: ask the user for it.',
  inviteLead: (organization: string) =>
    `The user with this login gets the role in ${organization} by accepting within 14 days, under “Your account”.`,
  lessRole: 'Running updates that the new role does not permit lose their lock at once.',
  login: 'Login',
  remove: (login: string) => `Remove ${login}?`,
  removeAction: 'Remove the member',
  removeLead: (login: string, organization: string) =>
    `${login} no longer sees ${organization}, and leaves its teams. Their grants are deleted, even if they rejoin later, and their running updates lose their lock. The account and its other memberships stay.`,
  role: 'Role',
  /** `means` is a verb with its objects. */
  roleHint: (role: string, means: string) => `${role === 'admin' ? 'An' : 'A'} ${role} ${means}.`,
  withdraw: (login: string) => `Withdraw the invitation for ${login}?`,
  withdrawAction: 'Withdraw the invitation',
  withdrawLead: (login: string) => `${login} can then no longer accept it.`,
  withdrawStay: 'Keep it',
} as const;

export const memberTexts = {
  actions: 'Actions',
  andMore: (teams: number) => `and ${teams} more`,
  any: 'Any',
  changeRole: 'Change the role…',
  deactivated: 'deactivated',
  lead: 'The members, and the role that each has on every stack of the organization. Teams and grants can add or deny permissions.',
  members: 'Members',
  name: 'Name',
  noMatch: 'No member matches',
  noMatchHint: 'The filter matches logins, names and roles. An operator creates new users on the server:',
  noTeams: 'none',
  remove: 'Remove…',
  role: 'Role',
  since: 'Since',
  teams: 'Teams',
  you: 'you',
} as const;

export const teamDialogTexts = {
  addAction: 'Add to the team',
  addHint: (organization: string) => `A member of ${organization}`,
  addLead: 'The new member gets all grants of the team at once.',
  addTitle: (team: string) => `Add a member to ${team}`,
  deleteAction: 'Delete the team',
  deleteLead:
    'This also deletes its grants and tokens. Running updates that are no longer permitted lose their lock. Its members stay in the organization.',
  deleteTitle: (team: string) => `Delete ${team}?`,
  description: 'Description',
  displayName: 'Display name',
  editTitle: (team: string) => `Edit ${team}`,
  login: 'Login',
  makeAdmin: 'Make an admin of the team',
  makeAdminLead: 'They can choose its members and create its tokens, which have the grants of the team.',
  makeAdminTitle: (login: string, team: string) => `Make ${login} an admin of ${team}?`,
  makeOrdinary: 'Make an ordinary member',
  makeOrdinaryLead: 'They can no longer choose its members or create its tokens.',
  makeOrdinaryTitle: (login: string, team: string) => `Make ${login} an ordinary member of ${team}?`,
  removeAction: 'Remove from the team',
  removeLead: 'They lose the grants of the team. Their running updates that are no longer permitted lose their lock.',
  removeTitle: (login: string, team: string) => `Remove ${login} from ${team}?`,
  save: 'Save',
} as const;

export const teamTexts = {
  actions: 'Actions',
  add: 'Add to the team',
  admin: 'admin',
  deactivated: 'deactivated',
  delete: 'Delete',
  edit: 'Edit',
  grantsLead: 'The permissions of the team on stacks, in addition to the roles of its members.',
  makeAdmin: 'Make an admin of the team…',
  makeOrdinary: 'Make an ordinary member…',
  member: 'member',
  members: 'Members',
  membersLead: 'Admins of a team edit its description, choose its members and create its tokens.',
  membersOfTeam: 'Members of the team',
  name: 'Name',
  noMembers: 'No members yet.',
  remove: 'Remove from the team…',
  role: 'Team role',
  tokens: 'Tokens',
  tokensLead: 'For machines. They have the grants of the team and belong to no user.',
} as const;

export const teamsTexts = {
  any: 'Any',
  create: 'Create a team',
  createAction: 'Create the team',
  createLead: 'A new team is empty and has no permissions until you add members and grants.',
  description: 'Description',
  displayName: 'Display name',
  lead: 'A grant to a team applies to all its members and tokens.',
  members: 'Members',
  name: 'Name',
  nameHint: 'Used in commands and URLs. It cannot be changed.',
  noMatch: 'No team matches',
  noMatchHint: 'The filter matches the names of teams.',
  none: 'No teams yet',
  noneHint: 'Admins of the organization create teams here, with the command below, or through the identity provider.',
  teams: 'Teams',
  youAreAdmin: 'you are an admin',
  youAreMember: 'you are a member',
} as const;

export const scopeTexts = {
  add: 'Add a scope',
  permissions: 'Permissions',
  remove: (number: number) => `Remove scope ${number}`,
  /** Null: the only one. */
  scope: (number: number | null) => `Scope ${number ?? ''}`,
  stacks: 'Stacks',
  stacksHint: (pattern: ReactNode, star: ReactNode) => (
    <>
      {pattern}, in which {star} stands for any characters
    </>
  ),
} as const;

export const tokenDialogTexts = {
  create: 'Create a token',
  createAction: 'Create the token',
  createLead: {
    me: 'It has your permissions in all your organizations, and ends with your account.',
    organization: 'It belongs to the organization and does not end when a member leaves.',
    team: 'It has the grants of the team, and ends with the team.',
  },
  description: 'Description',
  descriptionExample: 'What the token is for',
  expiresAfter: 'Expires after',
  lifetimeHint: 'The organization limits the lifetime of tokens.',
  limit: 'Limit it to some stacks and permissions',
  name: 'Name',
  nameHint: 'Shown in the audit log. It cannot be used for another token later.',
  permissions: 'Permissions',
  powerAdmin: 'The role admin: everything, including members and tokens',
  powerMember: 'The role member: updates all stacks',
  powerService: 'No role: only the permissions below',
  revokeAction: 'Revoke the token',
  revokeLead:
    'Requests with it are refused at once, and updates that run with it lose their lock. This cannot be undone.',
  revokeTitle: (token: string) => `Revoke ${token}?`,
  thisToken: 'this token',
} as const;

export const tokenValueTexts = {
  lead: 'It is shown only once. Store it where you keep secrets.',
  previousEnded: 'The previous value is no longer valid.',
  previousUntil: (time: ReactNode) => <>The previous value expires {time}.</>,
  stored: 'I have stored it',
  title: 'The token',
  variable: 'The CLI takes it from the environment variable PULUMI_ACCESS_TOKEN.',
} as const;

export const rotationTexts = {
  action: 'Rotate the token',
  lead: 'The token gets a new value, and its lifetime starts again. Its name, scopes and grants stay, and running updates go on.',
  overlap: 'The current value stays valid for',
  overlapDay: 'A day',
  overlapDays7: '7 days',
  overlapDays30: '30 days',
  overlapHint: 'Replace the old value everywhere before then.',
  overlapHour: 'An hour',
  overlapNone: 'No time: it is revoked now',
  overlapNoneHint: 'Requests with the old value are refused at once, and updates that run with it lose their lock.',
  title: (token: string) => `Rotate ${token}?`,
} as const;

export const lifetimeTexts = {
  days: (days: number) => `${days} days`,
  longest: (days: number) => `${days} ${days === 1 ? 'day' : 'days'}, the longest`,
  longestAllowed: 'The longest allowed',
  never: 'Never expires',
  year: 'A year',
} as const;

export const tokenTexts = {
  actions: 'Actions',
  allOfRole: (role: string) => `all permissions of the role ${role}`,
  allOfTeam: 'all permissions of the team',
  allYours: 'all your permissions',
  byUser: (user: string) => `by ${user}`,
  create: 'Create a token',
  created: 'Created',
  expires: 'Expires',
  identityProvider: 'identity provider',
  includeRuns: 'Include tokens of CI runs',
  lastUsed: 'Last used',
  lead: 'For the CLI, CI and other machines. Tokens of teams are on the pages of the teams.',
  name: 'Name',
  never: 'never',
  none: 'No tokens yet',
  noneOfMine: 'The CLI creates one when you sign in:',
  noneOfOrganization:
    'CI does not need any of these if its runs are trusted: see the trust policies. For other machines, a token of the organization belongs to no user, and does not end when a member leaves.',
  noneOfTeam: 'None yet.',
  ofOrganization: (organization: string) => `Of ${organization}`,
  ofRun: 'of a CI run',
  onStacks: (permissions: string, stacks: ReactNode) => (
    <>
      {permissions} on {stacks}
    </>
  ),
  onlyGrants: 'only its grants',
  permissions: 'Permissions',
  previousValue: (until: ReactNode) => <>previous value: {until}</>,
  revoke: 'Revoke…',
  rotate: 'Rotate',
  rotateToken: (token: string) => `Rotate ${token}`,
  tokens: 'Tokens',
  whose: 'Whose tokens',
  yourOwn: 'Your own',
} as const;

export const issuerDialogTexts = {
  anyTimes: 'Any number of times',
  audience: 'Audience',
  audienceExample: (organization: string) => `urn:pulumi:org:${organization}`,
  audienceHint: 'The aud claim of the id tokens. The CLI requests the value shown.',
  create: 'Trust an issuer',
  createAction: 'Trust the issuer',
  createLead: 'Its runs get no tokens until a policy allows it.',
  edit: (issuer: string) => `Edit ${issuer}`,
  editLead: 'Changes apply from the next exchange on.',
  lifetime: 'Maximum lifetime of tokens, in seconds',
  name: 'Name',
  once: 'Once',
  remove: (issuer: string) => `Remove ${issuer}?`,
  removeAction: 'Remove the issuer',
  removeLead:
    'This also removes its policies. The tokens of its runs are revoked at once, and updates that run with them lose their lock.',
  replay: 'An id token can be exchanged',
  save: 'Save',
  url: 'URL',
  urlHint: 'The iss claim of the id tokens, such as https://token.actions.githubusercontent.com',
} as const;

export const issuerTexts = {
  actions: 'Actions',
  addPolicy: 'Add a policy',
  anyClaims: 'any claims',
  anyOf: (patterns: readonly string[]) => patterns.join(' or '),
  anyPersonalToken: 'any personal token',
  anyTeamToken: 'any team token',
  anyToken: 'any token',
  claims: 'Claims',
  denied: 'denied',
  edit: 'Edit…',
  lead: (issuer: {
    readonly url: ReactNode;
    readonly audience: ReactNode;
    readonly isExchangedOnce: boolean;
    readonly lifetime: string;
    readonly hasOwnKeys: boolean;
  }) => (
    <>
      {issuer.url} for {issuer.audience}.{' '}
      {issuer.isExchangedOnce ? 'Each id token is exchanged once' : 'Id tokens can be exchanged again'}; its runs get
      tokens for at most {issuer.lifetime}
      {issuer.hasOwnKeys ? '; its keys were entered manually' : ''}.
    </>
  ),
  lifetime: 'Lifetime',
  none: 'No policies: its runs get no tokens.',
  onStacks: (permissions: string, stacks: ReactNode) => (
    <>
      {permissions} on {stacks}
    </>
  ),
  organizationToken: (isAdmin: boolean) =>
    `an organization token${isAdmin ? ', with the role admin if requested' : ''}`,
  policiesOf: (issuer: string) => `Policies of ${issuer}`,
  remove: 'Remove…',
  removeIssuer: 'Remove the issuer…',
  removePolicy: 'Remove this policy?',
  removePolicyAction: 'Remove the policy',
  removePolicyDenied: 'The other policies then apply to runs that it denied.',
  removePolicyGone: 'Another user has edited or removed this policy.',
  removePolicyLead: 'Tokens issued by it end at once, and updates that run with them lose their lock.',
  sameAsIssuer: 'same as the issuer',
  serviceToken: 'a service token',
  thePolicy: 'the policy',
  tokenOf: (owner: string) => `a token of ${owner}`,
  tokenOfTeam: (team: string) => `a token of the team ${team}`,
  tokens: 'Tokens',
} as const;

export const policyDialogTexts = {
  addAction: 'Add the policy',
  addLead: 'Denials win; otherwise the first policy that allows the request applies.',
  addTitle: (issuer: string) => `Add a policy for ${issuer}`,
  admin: 'With the role admin, if the run requests it',
  allow: 'Allow',
  allowedTokens: 'Allowed tokens',
  any: 'Any',
  anyToken: 'Any token',
  decision: 'Decision',
  deniedTokens: 'Denied tokens',
  deny: 'Deny',
  editLead: 'Tokens issued by the policy end, and updates that run with them lose their lock.',
  editTitle: (issuer: string) => `Edit a policy for ${issuer}`,
  lifetime: 'Maximum lifetime, in seconds',
  limit: 'Limit it to some stacks and permissions',
  login: 'Login',
  loginHint: 'You can let CI act as yourself only.',
  organizationToken: 'An organization token',
  personalToken: 'A personal token',
  sameAsIssuer: 'Same as the issuer',
  save: 'Save',
  serviceToken: 'A service token: only its scopes',
  teamName: 'Team name',
  teamToken: 'A team token',
} as const;

export const policyRuleTexts = {
  add: 'Add a rule',
  allMustMatch: 'Rules: all must match',
  claim: 'Claim',
  patterns: 'Patterns, one per line',
  patternsExample: 'repo:acme/web:*',
  remove: (claim: string) => `Remove the rule for ${claim}`,
} as const;

export const trustTexts = {
  lead: 'A CI system can vouch for its runs: each run gets a short-lived token, and the CI system stores no secret.',
  none: 'No CI system is trusted',
  noneHint:
    'Trust the issuer of its id tokens, then choose which runs get which tokens. For GitHub Actions, for example:',
  loading: 'Loading…',
  showMore: 'Show more',
  title: 'Trust policies',
  trustIssuer: 'Trust an issuer',
} as const;
