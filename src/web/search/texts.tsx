import type { ReactNode } from 'react';
import { counted } from '../platform/ui/counted.ts';
import { numberLocale } from '../platform/ui/locale.ts';
import { duration } from '../platform/ui/relative-time.ts';

export const providerVersionsTexts = {
  provider: 'Provider',
  version: 'Version',
  notSet: 'not set',
  latestHere: 'latest here',
  stacks: 'Stacks',
  stacksWith: (stacks: number, name: string, version: string) => `${counted(stacks, 'stack')} with ${name} ${version}`,
  resources: 'Resources',
  label: 'Versions of providers',
  noProvidersYet: 'No providers yet',
  appearLater: 'They appear after the first update that creates a resource with a provider.',
  cut: 'This took too long and stopped after some of the stacks: the counts are too low.',
  trimmed: 'Stacks that you cannot read are not counted.',
} as const;

export const referencesTexts = {
  documentTitle: (organization: string) => `References of ${organization} - Holdfast`,
  title: 'References',
  lead: 'Stacks that read outputs of other stacks, according to the stack references in their newest states.',
  view: 'View',
  graph: 'Graph',
  list: 'List',
  noStackReadsAnother: 'No stack reads another',
  emptyHint: (
    <>
      A program reads the outputs of another stack with{' '}
      <code>new pulumi.StackReference("organization/project/stack")</code>. It appears here after its next update.
    </>
  ),
  graphLabel: 'Graph of stack references',
  caption: (isCut: boolean | undefined) =>
    `Arrows lead from a stack to the stacks whose outputs it reads. Dashed boxes are stacks that you cannot read, or that do not exist.${isCut ? ' Only the first 500 stacks are shown.' : ''}`,
  stackReferences: 'Stack references',
  stack: 'Stack',
  reads: 'Reads',
  readBy: 'Read by',
  cut: 'Only the first 500 stacks are shown.',
  ruleNote: (link: ReactNode) => (
    <>
      A rule can refuse updates that remove outputs which other stacks read: <code>consumers</code>, under {link}.
    </>
  ),
  rules: 'Rules',
  notReadable: 'not readable',
} as const;

export const stackNameTexts = {
  notReadable: 'You cannot read this stack, or it does not exist',
} as const;

export const stackReferencesTexts = {
  title: 'References',
  reads: 'Reads',
  readBy: 'Read by',
  andMore: 'and more',
} as const;

export const searchFieldTexts = {
  searchResources: 'Search resources',
  example: 'type:aws:rds/* -protect:true orders',
} as const;

export const searchGroupsTexts = {
  type: 'Type',
  stack: 'Stack',
  project: 'Project',
  provider: 'Provider',
  groups: 'Groups',
  groupBy: 'Group by',
  more: (count: number) => `${count.toLocaleString(numberLocale)} more`,
  largestOf: (shown: number, all: number) =>
    `The ${shown.toLocaleString(numberLocale)} largest of ${all.toLocaleString(numberLocale)} groups.`,
  noProvider: 'none',
} as const;

export const searchTexts = {
  unprotectedExample: 'Unprotected S3 resources',
  providerExample: 'Resources still managed by an old major version of a provider',
  changedExample: 'Resources changed in production this week',
  wordExample: 'A word in the resources of one project',
  nameHelp: 'the exact value, or * for any characters',
  providerHelp: 'of the provider: 6, 6.1.2, <6, >=6.1, 6.1..6.4',
  stackHelp: 'prod, web/prod, acme/web/*; env or env=prod',
  booleanHelp: 'true or false',
  changedHelp: 'the last change: <7d, >30d, >1y',
  parentHelp: 'URN, name or type of the parent',
  notHelp: 'in front of a term: all others',
  wordHelp: 'the beginning of a word in type or name',
  documentTitle: 'Search - Holdfast',
  title: 'Search',
  titleOf: (organization: string) => `Search ${organization}`,
  lead: 'Resources of the newest state of every stack that you can read. Updates appear after some seconds.',
  searchIn: 'Search in',
  resources: 'Resources',
  providerVersions: 'Provider versions',
  resource: 'Resource',
  protectedHint: 'Protected: it cannot be deleted',
  protected: 'protected',
  toBeDeleted: 'to be deleted',
  stack: 'Stack',
  provider: 'Provider',
  changed: 'Changed',
  rateExceeded: 'You have exceeded the search rate of the server. This search is retried automatically.',
  nothingMatches: 'Nothing matches',
  nothingMatchesHint: 'All terms must match. Remove one, or add * where a value may continue.',
  cut: 'This search took too long and stopped after some of the stacks. There may be more results. A type, a name or a project makes it faster.',
  searching: 'Searching…',
  continueSearching: 'Continue searching',
  tryOne: 'Try one',
  fields: 'Fields',
} as const;

export const searchSummaryTexts = {
  counting: 'Counting…',
  resources: (isCut: boolean, resources: number) => (
    <>
      {isCut ? 'At least ' : null}
      <b>{resources.toLocaleString(numberLocale)}</b> {resources === 1 ? 'resource' : 'resources'}
    </>
  ),
  cutShort: 'cut short',
  exact: 'exact',
  behind: (stacks: number, oldestSeconds: number) =>
    `without the newest state of ${counted(stacks, 'stack')}, saved in the last ${duration(oldestSeconds)}`,
  trimmed: 'without stacks that you cannot read',
} as const;
