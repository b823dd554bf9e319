import type { ReactNode } from 'react';
import { numberLocale } from '../../platform/ui/locale.ts';

// These texts are loaded on demand.

export const failureTexts = {
  andMore: (resources: number) => `and ${resources} more`,
  ciRun: 'CI run',
  failed: (update: string, version: ReactNode, endedAt: ReactNode, by: string | null) => (
    <>
      {update} {version} failed
      {endedAt === null ? null : <> {endedAt}</>}
      {by === null ? null : `, by ${by}`}
    </>
  ),
  noMessage: 'The engine reported no message. The log of its CI run may say more.',
  open: (update: string) => `Open the ${update.toLowerCase()}`,
} as const;

export const freezeTexts = {
  byRule: (scope: string) => `By a rule for ${scope}.`,
  freeze: 'Freeze',
  freezeStack: 'Freeze this stack',
  frozen: 'Frozen until thawed',
  frozenUntil: (at: ReactNode) => <>Frozen, ends {at}</>,
  openRule: 'Open the rule',
  thaw: 'Thaw',
  thawStack: 'Thaw this stack',
} as const;

export const legalHoldTexts = {
  held: (reason: string, by: string, at: ReactNode) => (
    <>
      {reason} (by {by}, {at})
    </>
  ),
  lead: 'A legal hold keeps versions, events, previews, secrets and given approvals of the stack, regardless of retention rules and even after the stack is deleted.',
  none: 'No legal hold.',
  place: 'Place a hold',
  placeLead: 'Users see the reason.',
  placeTitle: 'Place a legal hold on the stack',
  reason: 'Reason',
  release: 'Release the hold',
  releaseLead: 'Retention rules apply to the stack again.',
  releaseTitle: 'Release the legal hold?',
  title: 'Legal hold',
} as const;

export const lockTexts = {
  ciRun: 'CI run',
  fault: 'This stack needs attention',
  faultOf: (kind: string) => `This stack needs attention: ${kind}`,
  heldBy: (update: string, by: string | null, since: ReactNode) => (
    <>
      {update} {by === null ? '' : `by ${by} `}holds the lock
      {since === null ? null : <>, for {since}</>}
    </>
  ),
  somebody: 'somebody',
  viewProgress: 'View progress',
  waitingRuns: 'Waiting runs',
  waitsFor: (time: ReactNode) => <>waits for {time}</>,
  waitsForLock: (runs: number) => `${runs} ${runs === 1 ? 'run waits' : 'runs wait'} for the lock`,
} as const;

export const outputTexts = {
  allCharacters: (count: number) => `all ${count.toLocaleString(numberLocale)} characters`,
  andMore: '… and more, which the CLI shows',
  copy: (name: string) => `Copy ${name}`,
  copyCommand: (name: string) => `Copy the command that shows ${name}`,
  noOutputs: 'The program has no outputs.',
  notReadable: 'The outputs cannot be read at the moment.',
  notUpdated: 'This stack has not been updated yet. Run its first update:',
  showAll: 'show all',
  table: 'Outputs',
} as const;

export const overviewTexts = {
  about: 'About',
  allUpdates: 'All updates',
  badges: 'Badges and feeds',
  branch: 'Branch',
  by: 'By',
  ci: 'CI',
  commit: 'Commit',
  created: 'Created',
  drift: 'Drift',
  driftStates: { clean: 'none found', drifted: 'differs from the cloud', unknown: 'not checked' },
  duration: 'Duration',
  last: (update: string) => `Last ${update.toLowerCase()}`,
  latestUpdates: 'Latest updates',
  onYourMachine: 'On your machine',
  outputs: 'Outputs',
  readme: 'README',
  repository: 'Repository',
  runOfLast: 'run of the last update',
  tags: 'Tags',
} as const;

export const pendingTexts = {
  byCli: 'Use the CLI instead',
  byCliLead:
    'A refresh compares all resources with the cloud, and discards interrupted operations. Created resources are then imported by their ids.',
  ciRun: 'View CI run',
  createdAdd: 'Created: add it by its id',
  decideLater: 'Decide later',
  decisionAbout: (resource: string) => `Decision about ${resource}`,
  discard: 'Discard the operation',
  discarded: (operations: number) => `${operations} ${operations === 1 ? 'operation is' : 'operations are'} discarded.`,
  ended: (run: {
    readonly update: ReactNode;
    readonly by: string | null;
    readonly status: string;
    /** Null: unknown. */
    readonly at: ReactNode;
    readonly reason: string | null;
  }) => (
    <>
      {run.update}
      {run.by === null ? '' : ` by ${run.by}`} ended as {run.status}
      {run.at === null ? null : <> {run.at}</>}.{run.reason === null ? '' : ` ${run.reason}.`}
    </>
  ),
  idInCloud: 'Id in the cloud',
  idOf: (resource: string) => `Id of ${resource} in the cloud`,
  imported: (resources: number) =>
    `${resources} ${resources === 1 ? 'resource is' : 'resources are'} added to the state, and read from the cloud by the next pulumi refresh.`,
  lead: 'Check in the cloud whether each was completed. Only creations need a decision. The next refresh resolves the others.',
  more: 'There are more than can be shown. Repair them with the CLI.',
  none: 'No interrupted operations',
  noneHint: 'If an update ends while it changes resources, they are listed here with the options to continue.',
  notCreated: 'Not created: discard it',
  notReadable: 'The state cannot be read at the moment',
  nothingChanges: 'Nothing changes in the cloud.',
  operations: 'Interrupted operations',
  running: 'An update is running',
  runningHint: 'Interrupted operations can be repaired after it ends.',
  save: 'Save repair',
  saveAs: (version: number) => `Save as version ${version}`,
  saveLead: (head: number) => `The state becomes version ${head + 1}. Version ${head} is kept unchanged.`,
  wasCreated: 'was being created',
  wasDeleted: 'was being deleted',
  wasImported: 'was being imported',
  wasRead: 'was being read',
  wasUpdated: 'was being updated',
  whatHappened: 'What happened',
} as const;

export const readmeTexts = {
  image: 'image',
  isLonger: (command: ReactNode) => <>The document is longer: {command} prints all of it.</>,
  showRest: 'Show the rest',
} as const;

export const stackAccessTexts = {
  allowed: 'allowed: ',
  byRole: (role: string) => `by the role ${role}`,
  grantsLead: 'Grants that apply to this stack, by its name or its tags.',
  grantedBy: 'Granted by',
  holders: {
    tokens: { title: 'Tokens', lead: 'Tokens of the organization, of teams and of services.' },
    users: {
      title: 'Members',
      lead: 'The effective permissions of each member on this stack, from roles, teams and grants.',
    },
  },
  name: 'Name',
  noTokens: 'No tokens.',
  notAllowed: 'not allowed: ',
  nothing: 'Nothing.',
  ofRole: (role: string, whom: string) => `of the role ${role} ${whom}`,
  onStacks: (grant: string, stacks: ReactNode) => (
    <>
      {grant} on {stacks}
    </>
  ),
  permissions: 'Permissions',
  role: 'Role',
  team: (team: string) => `team ${team}`,
  toTeam: (team: string) => `to the team ${team}`,
  toToken: 'to the token',
  toUser: (user: string) => `to ${user}`,
  why: (holder: string) => `Why ${holder} has these permissions`,
  yours: 'Your permissions',
} as const;

export const stackPageTexts = {
  access: 'Access',
  addFavorite: 'Add to favorites',
  changed: (at: ReactNode) => <>, changed {at}</>,
  configuration: 'Configuration',
  configurationLead: 'The configuration of the last update. Secret values are redacted.',
  drifted: 'Drifted',
  frozen: 'Frozen',
  interrupted: 'Interrupted',
  interruptedLead: 'An update ended while it was changing these resources, so the outcome is unknown.',
  neverUpdated: 'Never updated',
  noConfiguration: 'The last update had no configuration.',
  overview: 'Overview',
  removeFavorite: 'Remove from favorites',
  resources: 'Resources',
  resourceCount: (number: ReactNode, count: number) => (
    <>
      , {number} {count === 1 ? 'resource' : 'resources'}
    </>
  ),
  trends: 'Trends',
  updates: 'Updates',
  version: (number: ReactNode) => <>Version {number}</>,
  versions: 'Versions',
  views: 'Views of the stack',
  webhooks: 'Webhooks',
} as const;

export const stackTagTexts = {
  add: 'Add a tag',
  addAction: 'Add',
  cancel: 'Cancel',
  name: 'Name of the tag',
  nameExample: 'name',
  none: 'No tags.',
  remove: (tag: string) => `Remove the tag ${tag}`,
  replaceAction: 'Replace',
  replaces: (value: ReactNode) => <>Replaces the value {value}.</>,
  setByCli: 'The CLI sets this tag itself.',
  value: 'Value of the tag',
  valueExample: 'value',
} as const;

export const stackWebhookTexts = {
  all: 'All webhooks of the stack',
  lead: 'These webhooks are notified about this stack, in addition to the webhooks of the organization.',
  title: 'Webhooks',
} as const;
