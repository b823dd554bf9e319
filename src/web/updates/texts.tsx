import type { ReactNode } from 'react';
import { counted } from '../platform/ui/counted.ts';

export const approvalNoticeTexts = {
  approveTheRun: 'Approve the requested run',
  requestedBy: (commit: ReactNode, askedBy: string, time: ReactNode) => (
    <>
      Approval requested for {commit} by {askedBy}, {time}
    </>
  ),
  withdraw: 'Withdraw',
  approve: 'Approve',
  whoMayApprove: 'Any admin of the stack except the requester can approve it.',
} as const;

export const approvalTableTexts = {
  commit: 'Commit',
  requested: 'Requested',
  links: 'Links',
  state: 'State',
  actions: 'Actions',
  actionFor: (action: string, commit: string, project: string, stack: string) =>
    `${action} ${commit} for ${project}/${stack}`,
  approveFor: (commit: string, project: string, stack: string) => `Approve ${commit} for ${project}/${stack}`,
  approve: 'Approve',
  approvedBy: (approver: string | null, time: ReactNode, reason: string | null) => (
    <>
      Approved by {approver}, {time}
      {reason === null ? '' : `: ${reason}`}
    </>
  ),
  approvals: 'Approvals',
  aheadOfARun: 'Requested ahead of a run',
  update: 'Update',
  ciRun: 'CI run',
  valid: 'Valid',
  expired: 'Expired',
  ends: (isValid: boolean, time: ReactNode) => (
    <>
      {isValid ? 'ends ' : ''}
      {time}
    </>
  ),
} as const;

export const approvalsTexts = {
  title: 'Approvals',
  lead: 'A run that would delete or replace more than the rules allow is stopped and requests an approval. Once another user approves its commit, the next run passes.',
  requested: 'Requested',
  approved: 'Approved',
  noApprovalsYet: 'No approvals yet',
  noApprovalsHint: 'Approvals stay here, with the approver and the reason.',
  noPendingRequests: 'No pending requests',
  noRequestsHint: 'The organization’s rules (change limits and protected types) decide which runs need an approval.',
} as const;

export const approveDialogTexts = {
  fifteenMinutes: '15 minutes',
  anHour: 'an hour',
  fourHours: '4 hours',
  aDay: 'a day',
  aWeek: 'a week',
  title: (commit: string) => `Approve ${commit}?`,
  description: (kind: string, project: string, stack: string, request: string) =>
    `For a time, each ${kind} of ${project}/${stack} that runs this commit may exceed the change limits and protected types of the rules.${request === '' ? '' : ` Request: ${request}`}`,
  approve: 'Approve',
  reason: 'Reason',
  reasonHint: 'Kept in the audit log.',
  validFor: 'Valid for',
} as const;

export const askApprovalTexts = {
  requestApproval: 'Request approval',
  title: 'Request approval?',
  description: (project: string, stack: string) =>
    `Once another user approves the commit, its runs on ${project}/${stack} may exceed the change limits and protected types of the rules for a limited time. A stopped run requests an approval automatically.`,
  commit: 'Commit',
  commitHint: 'The full hash, as printed by git rev-parse HEAD.',
  for: 'For',
  reason: 'Reason',
  reasonHint: 'Shown to the approver.',
} as const;

export const withdrawDialogTexts = {
  withdraw: 'Withdraw',
  revoke: 'Revoke',
  withdrawTheRequest: 'Withdraw the request?',
  revokeTheApproval: 'Revoke the approval?',
  withdrawal: (commit: string, project: string, stack: string) =>
    `Nobody can approve ${commit} for ${project}/${stack} then. A stopped run sends a new request.`,
  revocation: (kind: string, project: string, stack: string, commit: string) =>
    `From now on, each ${kind} of ${project}/${stack} that runs ${commit} must follow the rules again. Running updates go on.`,
  keepIt: 'Keep it',
} as const;

export const changeBarTexts = {
  noChanges: 'no changes',
} as const;

export const configTableTexts = {
  tooMuch: 'Too large to show.',
  label: 'Configuration',
} as const;

export const errorSummaryTexts = {
  updateOf: (name: string, organization: string, project: string, stack: string) =>
    `${name} of ${organization}/${project}/${stack}`,
  commit: (commit: string) => `Commit: ${commit}`,
  branch: (branch: string) => `Branch: ${branch}`,
  errors: 'Errors',
  error: 'error',
  policyOf: (policy: string, pack: string) => (
    <>
      Policy <code>{policy}</code> of <code>{pack}</code>
    </>
  ),
  lastSuccess: (update: string, commit: string | null) =>
    `Last success: ${update}${commit === null ? '' : `, ${commit}`}`,
  viewInMessages: 'View in messages',
  viewResourceInMessages: (resource: string) => `View in messages: ${resource}`,
  moreUnderMessages: (count: number) => `${count} more under Messages`,
  copied: 'Copied',
  copyAsMarkdown: 'Copy as Markdown',
} as const;

export const eventListTexts = {
  events: 'Events',
  count: (count: number, isNewest: boolean) =>
    `${count.toLocaleString('en')}${isNewest ? ' newest' : ''} ${count === 1 ? 'event' : 'events'}`,
  searchInEvents: 'Search in events',
  kindOfEvent: 'Kind of event',
  allKinds: 'All kinds',
  noEvents: 'No events',
  noEventMatches: 'No event matches',
  noEventsHint: 'Events appear here when the CLI reports them, a few seconds after they happen.',
  event: (sequence: number) => `Event ${sequence}`,
} as const;

export const interruptedNoticeTexts = {
  title: (count: number) => `${count} ${count === 1 ? 'operation was' : 'operations were'} interrupted`,
  resolve: 'Resolve',
  cliEnded: (operations: string, more: number) =>
    `The CLI ended while it was ${operations}${more > 0 ? ` and ${more} more` : ''}. It is not known whether this took effect in the cloud.`,
} as const;

export const lastSuccessTexts = {
  compareProviderVersions: 'Compare provider versions',
  notCompared: 'The provider versions could not be compared',
  comparing: 'Comparing provider versions…',
  sameProviderVersions: 'Same provider versions',
  label: 'Changed since the last success',
  sameCommit: 'Same commit',
  lastSuccess: (update: ReactNode, time: ReactNode) => (
    <>
      Last success: {update} {time}
    </>
  ),
  commit: (before: ReactNode, after: ReactNode) => (
    <>
      Commit {before ?? 'unknown'} → {after}
    </>
  ),
  branch: (before: string | null, after: string) => (
    <>
      Branch {before === null ? 'unknown' : <code>{before}</code>} → <code>{after}</code>
    </>
  ),
  configuration: (keys: ReactNode, more: number) => (
    <>
      Configuration {keys}
      {more > 0 ? ` and ${more} more` : ''}
    </>
  ),
  pulumi: (before: string | undefined, after: string | undefined) => (
    <>
      Pulumi <code>{before}</code> → <code>{after}</code>
    </>
  ),
  compareResources: 'Compare resources',
} as const;

export const messageListTexts = {
  severities: { debug: 'Debug', info: 'Note', warning: 'Warning', error: 'Error' },
  noMessages: 'No messages',
  readingTheMessages: 'Reading the messages…',
  noMessagesHint: 'Errors, warnings and the output of the program appear here, by resource.',
  messages: 'Messages',
  searchInMessages: 'Search in messages',
  previousMatch: 'Previous match',
  nextMatch: 'Next match',
  noLineMatches: 'No line matches',
  matches: (at: number, number: number, found: number) =>
    `${at < 0 ? '' : `${number.toLocaleString('en')} of `}${counted(found, 'line')}`,
  wrapLines: 'Wrap lines',
  download: 'Download',
  engineAndProgram: 'Engine and program',
  showMore: (groups: number) => `Show more of ${groups.toLocaleString('en')} resources`,
  policyOf: (policy: string, pack: string, isMandatory: boolean) => (
    <>
      Policy <code>{policy}</code> of <code>{pack}</code>
      {isMandatory ? ', mandatory' : ', advisory'}
    </>
  ),
  linkToLine: (number: number) => `Link to line ${number}`,
} as const;

export const progressRowTexts = {
  expand: (name: string) => `Expand ${name}`,
  collapse: (name: string) => `Collapse ${name}`,
  level: (depth: number) => `, level ${depth}`,
  protected: 'protected',
  messages: (messageCount: number) => (messageCount === 1 ? '1 message' : `${messageCount} messages`),
  interrupted: 'interrupted',
  running: 'running',
  underASecond: '<1 s',
  operationFailed: (operation: string) => `${operation} failed`,
  moreInputsChange: 'More inputs change.',
} as const;

export const progressTreeTexts = {
  label: 'Resources of the update',
  resources: 'Resources',
  resourceCount: (count: number) => counted(count, 'resource'),
  shownOf: (shown: number, all: string) => `${shown.toLocaleString('en')} of ${all}`,
  filterLabel: 'Filter resources by name or type',
  filter: 'Filter by name or type',
  unchangedResources: 'Unchanged resources',
  values: 'Values',
  noResourceMatches: 'No resource matches',
  noMatchHint: (text: string) => `Nothing in this update has “${text}” in its name or type.`,
  nothingYet: 'Nothing has happened yet',
  waitingToStart: 'Waiting to start',
  nothingYetHint: 'Resources appear here as soon as the CLI reports the first step.',
  noSteps: 'The CLI reported no steps',
  cancelledHint: 'It ended before it reported any.',
  noStepsHint: 'Imports and renames have none, and neither do updates that ended before their first step.',
} as const;

const waiting = (count: number): string => `${count.toLocaleString('en')} ${count === 1 ? 'waits' : 'wait'}`;

export const queueTexts = {
  sum: (running: number, waits: number) =>
    `${running.toLocaleString('en')} ${running === 1 ? 'run holds a lock' : 'runs hold locks'}, ${waits === 0 ? 'none waiting' : waiting(waits)}`,
  waiting,
  waitsForStack: 'waits for the stack',
  waitsForLimit: 'waits for a limit',
  frozen: 'frozen',
  aboutToStart: 'about to start',
  showMore: 'Show more',
  queueOf: (project: string, stack: string) => `Queue of ${project}/${stack}`,
  run: 'Run',
  runBy: (run: string, by: string | null) => `${run}${by === null ? '' : ` by ${by}`}`,
  runs: 'Runs',
  ciRun: 'CI run',
  since: (isWaiting: boolean, since: ReactNode) => (
    <>
      {isWaiting ? 'waits ' : 'for '}
      {since}
    </>
  ),
  noStackIsLocked: 'No stack is locked',
  noStackIsLockedHint:
    'Runs appear here while they hold a lock or wait for one. A second run is refused unless it may wait:',
  order: 'Runs start in the order in which they arrived, and each CLI shows why its run waits.',
} as const;

export const runActionsTexts = {
  dialogs: {
    evict: {
      title: 'Remove this run from the queue?',
      description:
        'Its pulumi command ends with an error that says so. It has changed nothing; the runs behind it move up.',
      action: 'Remove it',
      stay: 'Keep it waiting',
    },
    drain: {
      title: 'Drain this update?',
      description:
        'It starts no new steps. The steps in progress are finished and saved, and then the CLI ends the update.',
      action: 'Drain the update',
      stay: 'Keep it running',
    },
    cancel: {
      title: 'Cancel this update?',
      description:
        'The CLI loses its lock at once. Steps in progress may finish in the cloud without being saved; the stack then has pending operations.',
      action: 'Cancel the update',
      stay: 'Keep it running',
    },
  },
  removeNumber: (position: number, name: string) => `Remove number ${position} of ${name}`,
  remove: 'Remove',
  drainStack: (name: string) => `Drain ${name}`,
  drain: 'Drain',
  cancelStack: (name: string) => `Cancel ${name}`,
  cancel: 'Cancel',
  reason: 'Reason',
  drainReasonHint: 'For the audit log. Optional.',
  evictReasonHint: 'Its command prints it. Optional.',
} as const;

/** "2 resources". */
function resources(count: number): string {
  return `${count.toLocaleString('en')} ${count === 1 ? 'resource' : 'resources'}`;
}

export const removalSummaryTexts = {
  title: (deleted: number, replaced: number) => {
    const parts = [
      ...(deleted === 0 ? [] : [`delete ${resources(deleted)}`]),
      ...(replaced === 0 ? [] : [`replace ${resources(replaced)}`]),
    ];
    return `Would ${parts.join(' and ')}`;
  },
  label: 'Deleted or replaced',
  protected: 'protected',
  more: (count: number) => `${count} more`,
} as const;

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
  counting: 'Counting what it would delete…',
  noStackMatches: 'No stack matches now.',
  forStacks: (count: number, hasMore: boolean) =>
    `For ${hasMore ? 'more than ' : ''}${count.toLocaleString('en')} ${count === 1 ? 'stack' : 'stacks'}:`,
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
      {until === null ? 'until it is removed' : <>ends {until}</>}
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
  inForce: (until: ReactNode) => (until === null ? 'In force until it is removed.' : <>In force, ends {until}</>),
  neverAgain: 'It will not be in force again.',
  nextWindows: (timeZone: string | undefined) => `Next windows, in ${timeZone ?? 'your time'}:`,
} as const;

export const stackTrendsTexts = {
  noUpdates: (days: number) => `No updates in the last ${days} days`,
  noUpdatesHint: 'Updates, refreshes and destroys count here when they end.',
  updates: 'Updates',
  lastUpdates: (count: number) => `The last ${count} updates.`,
  lastDays: (days: number) => `The last ${days} days.`,
  unusuallyLong: 'unusually long',
  duration: 'Duration',
  median: (median: string) => `median ${median}`,
  daysAgo: (days: number) => `${days} days ago`,
  now: 'Now',
  resourcesOf: (version: string | number, resources: number) => `Version ${version}: ${resources.toLocaleString('en')}`,
  resourcesByVersion: 'Resources by version',
  nowOf: (resources: number) => `now ${resources.toLocaleString('en')}`,
  version: (version: string | number) => `Version ${version}`,
  unusuallyLongTitle: 'Unusually long',
  halfTook: (low: string | undefined, high: string | undefined) =>
    `Half of the updates took ${low === high ? low : `${low} to ${high}`}.`,
  took: (update: ReactNode, duration: string, end: ReactNode) => (
    <>
      {update} took {duration}, {end}
    </>
  ),
  update: 'Update',
  status: 'Status',
  durationOf: (duration: string, isLong: boolean) => `${duration}${isLong ? ', unusually long' : ''}`,
  timeInQueue: 'Time in queue',
  resources: 'Resources',
  ended: 'Ended',
} as const;

export const updateActionsTexts = {
  cancelThisUpdate: 'Cancel this update',
  drainThisUpdate: 'Drain this update',
  viewPreview: 'View preview',
  drain: 'Drain',
  cancel: 'Cancel',
  dialogs: {
    cancel: {
      title: 'Cancel this update?',
      description:
        'The CLI loses its lock at once. Steps in progress may finish in the cloud without being saved; the stack then has pending operations.',
      action: 'Cancel the update',
    },
    drain: {
      title: 'Drain this update?',
      description:
        'It starts no new steps. The steps in progress are finished and saved, and then the CLI ends the update.',
      action: 'Drain the update',
    },
  },
  reason: (note: ReactNode) => <>Reason {note}</>,
  reasonNote: 'for the audit log, optional',
  keepItRunning: 'Keep it running',
} as const;

export const updateDetailsTexts = {
  removalUnknown: (dryRun: boolean) => `Unknown whether it ${dryRun ? 'would remove' : 'removed'} outputs`,
  removedOutputs: (dryRun: boolean, count: number) =>
    `${dryRun ? 'Would remove' : 'Removed'} ${count === 1 ? 'an output' : `${count} outputs`}`,
  eventsNotRead: (dryRun: boolean) => `Its events could not be read at its end.${dryRun ? ' Run a new preview.' : ''}`,
  names: (names: ReactNode, count: number) => (
    <>
      {names}
      {count > 20 ? ' and more' : ''}
    </>
  ),
  noConsumers: 'No other stack reads outputs of this stack.',
  readBy: (consumers: string) => `The outputs of this stack are read by ${consumers}.`,
  run: 'Run',
  id: 'Id',
  copyTheId: 'Copy the id',
  basedOn: 'Based on',
  baseVersion: (baseVersion: number) => `version ${baseVersion}`,
  preview: 'Preview',
  thePreview: 'the preview',
  followedBy: 'Followed by',
  theUpdate: 'the update',
  waitedInQueue: 'Waited in queue',
  becauseOfALimit: (time: string) => `${time}, because of a limit or a freeze`,
  behind: (update: string, by: string | null) => `behind ${update}${by === null ? '' : ` by ${by}`}`,
  policyPacks: 'Policy packs',
  ended: 'Ended',
  resources: 'Resources',
  duration: 'Duration',
  configuration: 'Configuration',
  noConfiguration: 'This update had no configuration.',
  environment: 'Environment',
  noEnvironment: 'The CLI reported no environment.',
} as const;

export const updateHeaderTexts = {
  missingEntries: (missingEntries: string) => (
    <>
      The state may be incomplete: journal entries {missingEntries} are missing. Run <code>pulumi refresh</code>, and
      compare the result with your provider.
    </>
  ),
  message: 'message',
  ciRun: 'CI run',
  waitingToStart: 'waiting to start',
  /** `inQueue`: null if it did not wait. */
  took: (start: ReactNode, isRunning: boolean, time: string, inQueue: string | null) => (
    <>
      {start}
      {isRunning ? ', for ' : ', took '}
      {time}
      {inQueue === null ? null : `, after ${inQueue} in the queue`}
    </>
  ),
  inProgress: (runningCount: number) => `${runningCount.toLocaleString('en')} in progress`,
  done: (done: number) => `${done.toLocaleString('en')} done`,
  failed: (failedCount: number) => `${failedCount.toLocaleString('en')} failed`,
} as const;

export const updateListTexts = {
  updates: 'Updates',
  showPreviews: 'Show previews',
  noUpdatesYet: 'No updates yet',
  noUpdatesHint: 'The history of this stack starts with its first update.',
  loading: 'Loading…',
  olderUpdates: 'Older updates',
  noUpdates: 'No updates yet.',
  waiting: 'waiting',
} as const;

export const updateTexts = {
  views: 'Views of the update',
  progress: 'Progress',
  messages: 'Messages',
  timing: 'Timing',
  events: 'Events',
  details: 'Details',
} as const;

export const updateStatisticsTexts = {
  runningFor: 'Running for',
  duration: 'Duration',
  criticalPath: 'Critical path',
  failedBefore: 'Failed before',
  ofTheSameCommit: (count: number) => `${count} of the same commit`,
  signsOfRetries: 'Signs of retries',
  compared: (count: number) =>
    `Compared with ${count} updates of the last 90 days. 80 % of them are within this range.`,
  range: (from: string, to: string, median: string) => `${from} to ${to}, median ${median}`,
  seconds: (seconds: number) => `${seconds} s`,
  usually: (usual: string) => `usually ${usual}`,
  moreThanUsual: 'more than usual',
  slowestLater: 'The slowest steps are known some minutes after the end.',
  slowestSteps: 'Slowest steps',
} as const;

export const watchButtonTexts = {
  blocked: 'The browser blocks notifications of this site.',
  impossible: 'This browser cannot show notifications.',
  stopWatching: 'Stop watching',
  youWillBeNotified: 'You will be notified here.',
  notifyOfUpdates: 'Notify me when an update ends',
  notifyOfEnd: 'Notify me when it ends',
} as const;

export const waterfallChartTexts = {
  noResourceChanged: 'No resource changed',
  readingTheEvents: 'Reading the events…',
  noResourceHint: 'Each resource that the update changes has a bar here, from its start to its end.',
  label: 'Times of the resources',
  allSteps: 'All steps',
  criticalPath: 'Critical path',
  unknown: 'unknown',
  knownLater: 'known after the end',
  mostAtOnce: 'Most steps at once',
  criticalPathMeaning: 'On the critical path: each step waited for the one before it',
  operationFailed: (operation: string) => `${operation} failed`,
  barLabel: (state: string, took: string, isCritical: boolean) =>
    `${state}, ${took}${isCritical ? ', on the critical path' : ''}`,
} as const;
