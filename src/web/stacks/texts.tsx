import type { ReactNode } from 'react';

// A part of the first load. Other pages have their own texts.

export const firstStepTexts = {
  createStack: 'Create a stack in the folder of a program',
  createToken: 'Create a token for the CLI',
  deploy: 'Deploy it',
  isHere: (stack: ReactNode) => <>Your first stack is here: {stack}</>,
  lead: 'Create the first one in three steps, in a terminal.',
  logIn: 'Log in with the Pulumi CLI',
  noStacks: 'No stacks yet',
  sample: 'A program that needs no cloud account',
  tokenDescription: 'first steps',
  shownOnce: 'The token is shown only once. The CLI stores it.',
  stored: 'I have stored it',
  waiting: 'Waiting for the first stack…',
} as const;

export const nextStepTexts = {
  backups: (link: (label: string) => ReactNode, setting: ReactNode) => (
    <>
      {link('Schedule backups')}: {setting}.
    </>
  ),
  dismiss: 'Dismiss',
  dismissSteps: 'Dismiss the next steps',
  done: 'Done:',
  doneOf: (done: number, all: number) => `${done} of ${all} done`,
  people: (link: (label: string) => ReactNode) => (
    <>{link('Invite your team')}, or let an identity provider add its members.</>
  ),
  provider: (setting: ReactNode) => <>Let people sign in with an identity provider: {setting}.</>,
  rules: (link: (label: string) => ReactNode) => (
    <>{link('Set rules for updates')}: limits on deletions, required previews, freezes.</>
  ),
  title: 'Next steps',
  toDo: 'To do:',
  trust: (link: (label: string) => ReactNode) => <>{link('Trust your CI')}: its runs then need no stored token.</>,
} as const;

export const stackColumnTexts = {
  by: 'Last update by',
  changed: 'Changed',
  commit: 'Commit',
  owner: 'Lock held by',
  resources: 'Resources',
  status: 'Status',
  tags: 'Tags',
  version: 'Version',
} as const;

export const stackFilterTexts = {
  all: 'All',
  drifted: 'Drifted',
  failed: 'Failed',
  find: 'Find a project or stack',
  frozen: 'Frozen',
  interrupted: 'Interrupted',
  parts: { project: 'project', tag: 'tag' },
  projectOrStack: 'Project or stack',
  remove: (name: string, value: string) => `Remove the filter ${name} ${value}`,
  running: 'Running',
  status: 'Status',
  suggestions: 'Suggestions',
} as const;

export const stackTermTexts = {
  day: 'in the last day',
  hour: 'in the last hour',
  month: 'in the last month',
  moreThanMonth: 'more than a month ago',
  moreThanYear: 'more than a year ago',
  owner: 'user who holds the lock',
  project: 'all stacks of a project',
  tag: 'name or name=value',
  updated: 'age of the last change',
  week: 'in the last week',
} as const;

export const stackListTexts = { columns: 'Columns', csv: 'CSV' } as const;

export const stackRowTexts = {
  ciRun: 'CI run',
  ciRunOf: (stack: string) => `CI run of ${stack}`,
  favorite: (stack: string) => `Favorite ${stack}`,
  resources: 'resources',
} as const;

export const stackStatusTexts = {
  done: {
    destroy: 'Destroyed',
    import: 'Imported',
    preview: 'Previewed',
    refresh: 'Refreshed',
    rename: 'Renamed',
    update: 'Updated',
  },
  drifted: 'Drifted',
  driftedWhy: 'The last check found resources that differ from the state',
  ended: (update: string, result: string) => `${update} ${result}`,
  failed: (update: string) => `${update} failed`,
  names: {
    destroy: 'Destroy',
    import: 'Import',
    preview: 'Preview',
    refresh: 'Refresh',
    rename: 'Rename',
    update: 'Update',
  },
  neverUpdated: 'Never updated',
  running: {
    destroy: 'Destroying',
    import: 'Importing',
    preview: 'Previewing',
    refresh: 'Refreshing',
    rename: 'Renaming',
    update: 'Updating',
  },
  runningKind: (kind: string) => `Running ${kind}`,
  waiting: 'waiting',
  waitingForStack: (runs: number) => `${runs} waiting for the stack`,
} as const;

export const stackTableTexts = {
  favorite: 'Favorite',
  loading: 'Loading stacks',
  stack: 'Stack',
  stacks: 'Stacks',
} as const;

export const stacksTexts = {
  noMatch: 'No stack matches',
  noMatchHint: (owner: ReactNode, updated: ReactNode) => (
    <>
      The text matches parts of project and stack names; {owner} finds stacks that ada has locked, and {updated} what
      has changed lately.
    </>
  ),
  showAll: 'Show all stacks',
  stacks: 'Stacks',
  wholeList: 'The CSV file has the whole list: see the button above the list.',
} as const;
