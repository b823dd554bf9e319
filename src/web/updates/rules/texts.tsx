import type { ReactNode } from 'react';
import { numberLocale } from '../../platform/ui/locale.ts';

export const freezeFieldsTexts = {
  nights: 'Nights',
  weekends: 'Weekends',
  customTimes: 'Custom times',
  updates: 'Updates',
  areRefused: 'are refused',
  waitInTheQueue: 'wait in the queue',
  until: 'Until',
  untilHint: 'In your local time. Leave empty to freeze until the rule is removed.',
  window: (number: number) => `Window ${number}`,
  startsCron: 'Starts (cron)',
  cronHint: 'Minute, hour, day, month, day of the week.',
  hours: 'Hours',
  timeZone: 'Time zone',
  removeThisWindow: 'Remove this window',
  alwaysOr: 'Always in force, or only:',
  andAlso: 'And also:',
} as const;

export const ruleDialogTexts = {
  editTitle: (kind: string) => `Edit: ${kind}`,
  freezeTitle: (target: string | undefined) => `Freeze ${target ?? 'stacks'}`,
  addARule: 'Add a rule',
  freezeDescription: 'Updates, imports, renaming and deletion are refused. Previews and running updates go on.',
  save: 'Save',
  freeze: 'Freeze',
  addTheRule: 'Add the rule',
  kind: 'Kind',
  note: 'Note',
  freezeNoteHint: 'Shown in the terminal of refused updates.',
  noteHint: 'The reason, shown to other users.',
  replaces: 'It replaces the existing rule of this kind for these stacks.',
  scopeNames: {
    organization: 'All stacks of the organization',
    project: 'Stacks of a project',
    stack: 'One stack',
    tag: 'Stacks with a tag',
  },
  appliesTo: 'Applies to',
  tag: 'Tag',
  value: 'Value',
  ofAProjectOnly: 'Only in a project',
  project: 'Project',
  stack: 'Stack',
  lookingForStacks: 'Looking for its stacks…',
  counting: 'Estimating what the rule would delete…',
  noStackMatches: 'No stack matches now.',
  forStacks: (count: number, hasMore: boolean) =>
    `For ${hasMore ? 'more than ' : ''}${count.toLocaleString(numberLocale)} ${count === 1 ? 'stack' : 'stacks'}:`,
} as const;

export const ruleSettingsTexts = {
  withoutJournal: 'Updates that send no journal',
  areAllowed: 'are allowed: the rule cannot be enforced for them',
  areRefused: 'are refused',
  approvers: 'Changes beyond the limit are approved by',
  people: 'people',
  peopleAndTokens: 'people, and tokens of teams, organizations and services',
  most: 'Maximum updates at once',
  counted: 'Counted',
  together: 'together',
  forEachUser: 'for each user',
  forEachProject: 'for each project',
  seconds: 'Seconds',
  noWaitHint: '0: updates do not wait.',
  alertHint: 'Once for each update.',
  newerCommitOf: 'A newer commit of',
  sameBranch: 'the same branch',
  samePullRequest: 'the same pull request',
  nothing: 'nothing: runs are never superseded',
  removingOutputs: 'Updates that remove outputs',
  getAWarning: 'get a warning',
  maximumChanges: 'Maximum deletes and replacements',
  percentage: 'Percentage of the stack',
  typesOfResources: 'Types of resources',
  typesExample: 'aws:rds/*',
  typesHint: 'One per line; * matches any characters.',
  newest: 'The newest versions',
  lastDays: 'All of the last days',
  daily: 'The last of each day, for days',
  monthly: 'The last of each month, for months',
  days: 'Days',
  withoutPreview: 'Without a preview of the commit',
  usersAreWarned: 'users are warned',
  updatesAreRefused: 'updates are refused',
  nothingHappens: 'nothing happens',
  ownPreview: 'The preview that up and destroy start with',
  counts: 'counts',
  doesNotCount: 'does not count',
} as const;

export const ruleTableTexts = {
  rule: 'Rule',
  appliesTo: 'Applies to',
  setting: 'Setting',
  freezes: 'Freezes',
  state: 'State',
  note: 'Note',
  none: 'none',
  setBy: 'Set by',
  actions: 'Actions',
  thaw: 'Thaw',
  remove: 'Remove',
  nameOf: (isFreeze: boolean, kind: string, scope: string) => `${isFreeze ? 'the freeze' : kind} of ${scope}`,
  editRule: (name: string) => `Edit ${name}`,
  edit: 'Edit',
  setByAt: (setBy: string | null, time: ReactNode) => (
    <>
      {setBy ?? 'an operator'}, {time}
    </>
  ),
  linkedRule: 'Linked rule',
  /** `until`: null if it has no end. */
  ends: (until: ReactNode, isWaiting: boolean) => (
    <>
      {until === null ? 'until thawed' : <>ends {until}</>}
      {isWaiting ? ', updates wait' : ''}
    </>
  ),
  starts: (from: ReactNode, isWaiting: boolean) => (
    <>
      starts {from}
      {isWaiting ? ', updates wait' : ''}
    </>
  ),
  inForce: 'In force',
  ended: 'Ended',
  scheduled: 'Scheduled',
} as const;

export const rulesTexts = {
  title: 'Rules',
  linkedRuleIsGone: 'The linked rule no longer exists.',
  lead: 'What updates may do, and when. For most kinds, the most specific rule applies: stack, tag, project, organization.',
  freezes: 'Freezes',
  freezesLead: (command: ReactNode) => (
    <>In an emergency, a user who can manage the stack can bypass a freeze with {command}.</>
  ),
  freeze: 'Freeze',
  nothingIsFrozen: 'Nothing is frozen',
  nothingIsFrozenHint:
    'Freeze stacks for a release, a sale or each weekend. Users who run an update then see the reason.',
  queues: 'Queues',
  queuesLead: 'How many updates run at once, how long others wait, and which waiting runs are superseded.',
  addQueueRule: 'Add a queue rule',
  noQueueRules:
    'No rules: each stack runs one update at a time, and the settings of the server decide how long others wait.',
  changeLimits: 'Change limits',
  changeLimitsLead: 'Changes that updates may not make without a preview or an approval.',
  addChangeLimit: 'Add a change limit',
  noChangeLimits: 'No change limits: anyone who can update a stack can delete all of it.',
  retention: 'Retention',
  retentionLead: 'How long versions, logs and previews are kept. Older ones are deleted for good, within hours.',
  addRetentionRule: 'Add a retention rule',
  noRetentionRules: 'No rules: everything is kept.',
  thawDescription: (scope: string, until: ReactNode, note: string) => (
    <>
      Updates are allowed again at once, and its windows are removed: {scope}.
      {until === null ? null : <> The freeze would end {until}.</>}
      {note === '' ? '' : ` Note: ${note}`}
    </>
  ),
  removalDescription: (scope: string, settings: string, note: string) =>
    `It no longer applies to ${scope} (${settings})${note === '' ? '.' : `: ${note}`}`,
  thawQuestion: 'Thaw?',
  removeTheRule: (kind: string) => `Remove the rule ${kind}?`,
  thaw: 'Thaw',
  remove: 'Remove',
  keepIt: 'Keep it',
} as const;

export const windowTimesTexts = {
  /** `until`: null if it has no end. */
  inForce: (until: ReactNode) => (until === null ? 'In force until thawed.' : <>In force, ends {until}</>),
  neverAgain: 'It will not be in force again.',
  nextWindows: (timeZone: string | undefined) => `Next windows, in ${timeZone ?? 'your time'}:`,
} as const;
