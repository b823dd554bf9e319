import type { ReactNode } from 'react';
import { counted } from '../platform/ui/counted.ts';
import { numberLocale } from '../platform/ui/locale.ts';

export const blameTexts = {
  beforeVersion: (version: number) => `before version ${version}`,
  ci: 'CI',
  notExact: 'The index does not say in which one',
  notKnown: 'not known yet',
  sinceBeginning: 'since the beginning',
  version: (version: number) => `version ${version}`,
  versionOrBefore: (version: number) => `version ${version} or before`,
} as const;

export const resourceGraphTexts = {
  caption: 'Arrows lead to dependencies, dotted lines to parents.',
  label: 'Graph of resources',
  onlyFirst: (resources: number) => `Only the first ${resources.toLocaleString(numberLocale)} resources are shown.`,
} as const;

export const resourceListTexts = {
  beingIndexed: 'The resources are being indexed.',
  byName: 'Filter by name',
  byNameLabel: 'Filter resources by name',
  byType: 'Type: aws:s3/bucket:Bucket',
  byTypeLabel: 'Only resources of this type',
  changedIn: (version: number) => `v${version}`,
  collapse: (resource: string) => `Collapse ${resource}`,
  expand: (resource: string) => `Expand ${resource}`,
  graph: 'Graph',
  list: 'List',
  loading: 'Loading…',
  more: 'More',
  noMatch: 'No resource matches',
  noMatchHint: 'No resource of the newest state has this name or type.',
  none: 'No resources',
  noneHint: 'Resources appear here with the first update that creates some.',
  ofVersion: (indexed: number, newest: number) =>
    `These are the resources of version ${indexed}; version ${newest} is being indexed.`,
  protected: 'protected',
  resources: 'Resources',
  showAs: 'Show as',
  soFar: (version: number) => `An update is running: these are the resources of version ${version} so far.`,
  toBeDeleted: 'to be deleted',
  tree: 'Tree',
} as const;

export const resourceTexts = {
  andMore: (paths: number) => ` and ${paths} more`,
  blame: 'Which version set each property',
  cannotBeDeleted: 'it cannot be deleted',
  ciRun: 'CI run',
  close: 'Close',
  copyUrn: 'Copy the URN',
  dependsOn: (resources: number) => `Depends on ${resources}`,
  history: 'History',
  id: 'Id',
  inputs: 'Inputs',
  neededBy: (resources: number) => `Needed by ${resources}`,
  olderVersions: 'Older versions',
  outputs: 'Outputs',
  protected: 'Protected',
  provider: 'Provider',
  resource: (name: string) => `Resource ${name}`,
  urn: 'URN',
  version: (version: number) => `Version ${version}`,
} as const;

export const stateTextTexts = {
  label: (version: number) => `State of version ${version} as text`,
  tooLarge: 'This state is too large to be shown as one text.',
} as const;

export const stateTexts = {
  byResource: 'By resource',
  download: 'Download',
  empty: 'The state of this version is empty.',
  facts: (resources: number, size: string) => `${counted(resources, 'resource')}, ${size}`,
  filter: 'Filter the resources of the state',
  filterHint: 'Filter by name or type',
  more: 'More resources',
  noMatch: 'No resource matches',
  noMatchHint: 'The filter matches parts of URNs.',
  none: 'No resources',
  ofUrn: (urn: string) => `State of ${urn}`,
  ofVersion: (version: number) => `State of version ${version}`,
  show: 'Show the state',
  text: 'Text',
  toBeDeleted: 'to be deleted',
  tooLarge: 'Too large to show as text',
} as const;

export const differenceTexts = {
  after: 'after',
  before: 'before',
  changes: { created: 'created', deleted: 'deleted', replaced: 'replaced', updated: 'updated' },
  more: 'More differences',
  moreProperties: (properties: number) =>
    `${properties} more ${properties === 1 ? 'property differs' : 'properties differ'}.`,
  none: 'No resource differs.',
  properties: (properties: number) => `, ${properties} ${properties === 1 ? 'property' : 'properties'}`,
} as const;

export const restoreTexts = {
  lead: (head: number) => `Its state becomes version ${head + 1}. Versions up to ${head} stay as they are.`,
  note: (command: ReactNode) => (
    <>
      This changes the state, not the cloud. Resources that it adds to the state may no longer exist, and resources that
      it removes from the state continue to exist without Pulumi managing them. Run {command} afterwards to see what
      really differs.
    </>
  ),
  restore: (version: number) => `Restore version ${version}`,
  whatChanges: 'What the restore changes in the state',
} as const;

export const compareTexts = {
  changeStack: 'Change stack',
  compareOutputs: 'Compare outputs',
  compareWith: 'Compare with',
  comparedWith: 'compared with',
  comparison: 'Comparison with another stack',
  inBoth: 'in both',
  more: 'More differences',
  noMatch: 'No other stack matches',
  noMatchHint: 'Stacks of the same project are the usual choice, such as the staging stack.',
  none: 'No resource differs',
  notCompared: (withOutputs: boolean) =>
    withOutputs
      ? 'Ids are specific to each stack and not compared.'
      : 'Ids and outputs are specific to each stack and not compared.',
  onlyIn: (stack: string) => `only in ${stack}`,
  partOfName: 'Part of a stack name; Enter chooses the first',
  secrets: 'Show which secrets differ',
  secretsHint: 'The server decrypts the secrets of both stacks, and the audit log records it. No value is shown.',
  stacks: 'Stacks',
  summary: (found: {
    readonly fromVersion: number;
    readonly toVersion: number;
    readonly stack: string;
    readonly other: string;
    readonly same: number;
    readonly total: number;
    readonly secretsNotCompared: number;
  }) =>
    [
      `Version ${found.fromVersion} of ${found.stack} and version ${found.toVersion} of ${found.other}: ${found.same} ${found.same === 1 ? 'resource is' : 'resources are'} in both.`,
      `${found.total} ${found.total === 1 ? 'differs, or is in only one' : 'differ, or are in only one'}.`,
      ...(found.secretsNotCompared > 0
        ? [
            `${found.secretsNotCompared} ${found.secretsNotCompared === 1 ? 'secret was' : 'secrets were'} not compared.`,
          ]
        : []),
    ].join(' '),
  /** Null: all versions belong to the same organization. */
  versionOf: (version: number, organization: string | null) =>
    `${organization === null ? '' : `${organization}, `}version ${version}`,
} as const;

export const versionTexts = {
  atVersion: (version: number) => `version ${version}`,
  by: (login: string) => ` by ${login}`,
  compareStacks: 'Compare stacks',
  differences: 'Differences',
  differencesOf: (from: number, to: number) => `Differences of versions ${from} and ${to}`,
  empty: 'empty',
  fromTo: (from: ReactNode, to: ReactNode) => (
    <>
      {from} to {to}
    </>
  ),
  fromVersion: 'From version',
  none: 'No versions yet',
  noneHint: 'Each update that writes the state creates a version. The first update creates version 1.',
  olderVersions: 'Older versions',
  pin: 'Pin',
  pinWhy: 'Retention never deletes the state of a pinned version',
  pinned: ', pinned',
  pinnedBy: (login: string | null) => `Pinned by ${login}`,
  resources: (count: number) => `, ${counted(count, 'resource')}`,
  restore: (version: number) => `Restore version ${version}`,
  view: 'View',
  state: 'State',
  stateDeleted: ', state deleted',
  toVersion: 'To version',
  unpin: 'Unpin',
  version: (version: number) => `Version ${version}`,
  versions: 'Versions',
  viewUpdate: 'View update',
} as const;
