import { counted } from '../platform/ui/counted.ts';
import { numberLocale } from '../platform/ui/locale.ts';

export const activityTexts = {
  documentTitle: (organization: string) => `Activity of ${organization} - Holdfast`,
  title: 'Activity',
  nothingFoundYet: 'Nothing found yet',
  nothingMatches: 'Nothing matches',
  noActivityYet: 'No activity yet',
  onlyOlderEvents: 'The newest events are about other things. There are older events.',
  searching: 'Searching…',
  lookFurtherBack: 'Look further back',
  emptyHint: 'Updates, approvals, freezes and changes of stacks appear here.',
  kindNames: {
    updates: 'Updates',
    previews: 'Previews',
    approvals: 'Approvals',
    freezes: 'Freezes',
    stacks: 'Stacks and states',
  },
  kind: 'Kind',
  any: 'Any',
  projectOrStack: 'Project or stack',
  stackPlaceholder: 'web or web/prod',
  who: 'Who',
  login: 'Login',
  what: 'What',
  new: 'New',
  stack: 'Stack',
  commit: 'Commit',
  ciRun: 'CI run',
  when: 'When',
} as const;

export const ciTexts = {
  queue: 'Queue',
  runs: 'Runs',
  refused: 'Refused',
  drift: 'Drift',
  delivery: 'Delivery',
  documentTitle: (organization: string) => `CI of ${organization} - Holdfast`,
  title: 'CI',
  lead: 'Running, waiting and refused runs, and where pipelines lose time.',
  views: 'Views of CI',
  period: 'Period',
  days: (days: number) => `${days} days`,
} as const;

export const deliveryTexts = {
  noRuns: (days: number) => `No runs finished in the last ${days} days`,
  noRunsHint: 'Updates, refreshes and destroys count when they end.',
  changeRate: 'Change rate',
  changes: (changed: number) => counted(changed, 'change'),
  failureRate: 'Failure rate',
  failedOf: (failed: number, finished: number) =>
    `${failed.toLocaleString(numberLocale)} of ${counted(finished, 'run')}`,
  leadTime: 'Lead time',
  timeToRestore: 'Time to restore',
  projects: 'Projects',
  csv: 'CSV',
  label: 'Delivery of projects',
  project: 'Project',
  changesColumn: 'Changes',
  changeRateMeaning: 'Successful updates and destroys that changed resources, per day.',
  failureRateMeaning: 'Failed runs, of all that succeeded or failed. Previews do not count.',
  leadTimeMeaning:
    'Median time from a commit’s first run (previews included) to the end of its first successful update of a stack, if that changed resources. The server does not know when the commit was made; a squashed or rebased commit is a new one.',
  timeToRestoreMeaning: 'Median time from a stack’s first failed run to its next successful one.',
  notCounted: 'Not counted',
  notCountedMeaning: (isTrimmed: boolean) =>
    `Deleted stacks and imported histories${isTrimmed ? ', and stacks that you cannot read' : ''}. Changes and times appear minutes after a run has ended.`,
  perDay: (changes: string) => `${changes} per day`,
  mostWithin: (duration: string) => `90 % within ${duration}`,
} as const;

export const refusalTexts = {
  reasons: {
    busy: 'Stack was busy',
    frozen: 'Frozen',
    limit: 'Concurrency limit',
    'preview-needed': 'No preview',
    'has-consumers': 'Outputs in use',
    superseded: 'Superseded',
    evicted: 'Removed from the queue',
    'change-limit': 'Change limit exceeded',
    'protected-types': 'Protected resource',
    'require-preview': 'Differs from the preview',
  },
} as const;

export const refusalsTexts = {
  refusedRuns: 'Refused runs',
  noRunRefused: (days: number) => `No run was refused in ${days} days`,
  noRunRefusedHint:
    'Runs refused because of a busy stack, a freeze, a limit or another rule are listed here, with their error message.',
  reasons: 'Reasons',
  allProjects: (project: string) => `Runs of all projects, not only ${project}`,
  project: (project: string) => `Project ${project}`,
  reason: 'Reason',
  run: 'Run',
  update: 'Update',
  runBy: (run: string, by: string | null) => `${run}${by === null ? '' : ` by ${by}`}`,
  ciRun: 'CI run',
  waited: 'Waited',
  when: 'When',
} as const;

export const runsTexts = {
  runs: 'Runs',
  previews: (previews: number) => counted(previews, 'preview'),
  failed: 'Failed',
  failedRuns: (failed: number) => counted(failed, 'run'),
  timeInQueue: 'Time in queue',
  runsWaited: (waits: number) => `${waits.toLocaleString(numberLocale)} waited`,
  refused: 'Refused',
  refusedNote: 'includes superseded and stopped runs',
  meanDuration: 'Mean duration',
  longestOf: (duration: string) => `longest ${duration}`,
  trimmed: 'Only runs of stacks that you can read are counted, and none of deleted stacks.',
  runsByDay: 'Runs by day',
  failedRate: (rate: string) => `${rate} failed`,
  cancelled: 'Cancelled',
  succeeded: 'Succeeded',
  timeInQueueByDay: 'Time in queue, by day',
  waitedColumn: 'Waited',
  orders: {
    slowest: 'Slowest first',
    failures: 'Most failures first',
    queue: 'Longest in queue first',
    runs: 'Most runs first',
  },
  project: 'Project',
  longest: 'Longest',
  projects: 'Projects',
  order: 'Order',
  noProjects: 'No project has runs.',
  noRuns: (days: number) => `No runs in the last ${days} days`,
  noRunsHint: 'Updates, refreshes and destroys of all pipelines count here when they end.',
} as const;
