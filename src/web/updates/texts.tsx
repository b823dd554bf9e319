import type { ReactNode } from 'react';
import { counted } from '../platform/ui/counted.ts';
import { numberLocale } from '../platform/ui/locale.ts';

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
  failed: (title: string, url: string) => `[${title}](${url}) failed.`,
  moreErrors: (count: number) => `${counted(count, 'more error')}.`,
  viewInMessages: 'View in messages',
  viewResourceInMessages: (resource: string) => `View in messages: ${resource}`,
  moreUnderMessages: (count: number) => `${count} more under Messages`,
  copied: 'Copied',
  copyAsMarkdown: 'Copy as Markdown',
} as const;

export const eventListTexts = {
  events: 'Events',
  count: (count: number, isNewest: boolean) =>
    `${count.toLocaleString(numberLocale)}${isNewest ? ' newest' : ''} ${count === 1 ? 'event' : 'events'}`,
  searchInEvents: 'Search in events',
  kindOfEvent: 'Kind of event',
  allKinds: 'All kinds',
  noEvents: 'No events',
  noEventMatches: 'No event matches',
  noEventsHint: 'Events appear here when the CLI reports them, a few seconds after they happen.',
  event: (sequence: number) => `Event ${sequence}`,
  kinds: {
    resourcePreEvent: 'step started',
    resOutputsEvent: 'step finished',
    resOpFailedEvent: 'step failed',
    diagnosticEvent: 'message',
    policyEvent: 'policy',
    stdoutEvent: 'output',
    preludeEvent: 'configuration',
    summaryEvent: 'summary',
    progressEvent: 'download',
    errorEvent: 'error',
    cancelEvent: 'end',
  },
  settings: (count: number) => counted(count, 'setting'),
} as const;

export const interruptedNoticeTexts = {
  title: (count: number) => `${count} ${count === 1 ? 'operation was' : 'operations were'} interrupted`,
  resolve: 'Resolve',
  cliEnded: (operations: string, more: number) =>
    `The CLI ended while it was ${operations}${more > 0 ? ` and ${more} more` : ''}. It is not known whether this took effect in the cloud.`,
} as const;

export const lastSuccessTexts = {
  provider: (name: string, before: string, after: string) =>
    before === ''
      ? `Provider resource added: ${name} ${after}`
      : after === ''
        ? `Provider resource removed: ${name} ${before}`
        : `Provider ${name} ${before} → ${after}`,
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
  noMessagesYet: 'No messages yet',
  readingTheMessages: 'Reading the messages…',
  noMessagesHint: 'Errors, warnings and the output of the program appear here, by resource.',
  messages: 'Messages',
  searchInMessages: 'Search in messages',
  previousMatch: 'Previous match',
  nextMatch: 'Next match',
  noLineMatches: 'No line matches',
  matches: (at: number, number: number, found: number) =>
    `${at < 0 ? '' : `${number.toLocaleString(numberLocale)} of `}${counted(found, 'line')}`,
  wrapLines: 'Wrap lines',
  download: 'Download',
  engineAndProgram: 'Engine and program',
  showMore: (lines: number) => `Show more of ${lines.toLocaleString(numberLocale)} lines`,
  showEarlier: 'Show earlier lines',
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
  soFar: (count: string) => `${count} so far`,
  shownOf: (shown: number, all: string) => `${shown.toLocaleString(numberLocale)} of ${all}`,
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

export const removalSummaryTexts = {
  title: (deleted: number, replaced: number) => {
    const parts = [
      ...(deleted === 0 ? [] : [`delete ${counted(deleted, 'resource')}`]),
      ...(replaced === 0 ? [] : [`replace ${counted(replaced, 'resource')}`]),
    ];
    return `Would ${parts.join(' and ') || 'delete nothing'}`;
  },
  isPart: 'The events of this preview are not all here: deletions, which come last, may be missing',
  endsEarly: 'This preview did not succeed: it may not have come to its deletions, which come last',
  reading: 'The preview is not yet read to its end: deletions, which come last, may be missing here',
  label: 'Deleted or replaced',
  protected: 'protected',
  more: (count: number) => `${count} more`,
} as const;

export const updateActionsTexts = {
  cancelThisUpdate: 'Cancel this update',
  drainThisUpdate: 'Drain this update',
  viewPreview: 'View preview',
  drain: 'Drain',
  cancel: 'Cancel',
  dialogs: {
    cancel: {
      title: (stack: string) => `Cancel this update of ${stack}?`,
      description:
        'The CLI loses its lock at once. Steps in progress may finish in the cloud without being saved; the stack then has pending operations.',
      action: 'Cancel the update',
    },
    drain: {
      title: (stack: string) => `Drain this update of ${stack}?`,
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
  consumers: (isReadBy: string) => `This stack ${isReadBy}.`,
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
      The state may be incomplete: journal entries {missingEntries} are missing. Run <code>pulumi state repair</code>,
      then <code>pulumi refresh</code>, and compare the result with your provider.
    </>
  ),
  message: 'message',
  ciRun: 'CI run',
  waitingToStart: 'waiting to start',
  /** `inQueue`: null if the update did not wait. */
  took: (start: ReactNode, isRunning: boolean, time: string, inQueue: string | null) => (
    <>
      {start}
      {isRunning ? ', for ' : ', took '}
      {time}
      {inQueue === null ? null : `, after ${inQueue} in the queue`}
    </>
  ),
  usually: (time: string) => `, usually ${time}`,
  inProgress: (runningCount: number) => `${runningCount.toLocaleString(numberLocale)} in progress`,
  done: (done: number) => `${done.toLocaleString(numberLocale)} done`,
  failed: (failedCount: number) => `${failedCount.toLocaleString(numberLocale)} failed`,
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
  counts: { creates: 'Creates', updates: 'Updates', replaces: 'Replaces', deletes: 'Deletes' },
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
  slowestLater: 'The slowest steps appear some minutes after the end.',
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
  noResourceChangedYet: 'No resource has changed yet',
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
