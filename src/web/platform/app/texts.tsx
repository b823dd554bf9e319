import type { ReactNode } from 'react';
import { numberLocale } from '../ui/locale.ts';

// Texts of parts that are loaded on demand.

export const paletteTexts = {
  actions: 'Actions',
  favorites: 'Favorites',
  field: 'Stack, page or command',
  goTo: 'Go to',
  noResults: 'No results.',
  pages: 'Pages',
  resources: 'Resources',
  results: 'Results',
  searchResources: (text: string) => `Search resources for ${text}`,
  session: 'Session',
  stacks: 'Stacks',
  stacksOf: (organization: string) => `Stacks of ${organization}`,
  stacksOfAll: 'Stacks of all organizations',
  views: 'Views',
  whatNeedsAttention: 'What needs attention',
} as const;

export const keyboardTexts = {
  closeOrClear: 'Close a dialog, or clear the filter',
  goToFilter: 'Go to the filter of a list',
  goToPage: 'Go to a stack or page, or run an action',
  moveInList: 'Move to the next or previous stack of the list',
  openStack: 'Open the stack',
  show: 'Show the keyboard shortcuts',
  title: 'Keyboard shortcuts',
} as const;

export const aboutTexts = {
  account: 'Account',
  api: 'API',
  apiDescription: 'Description of all calls (OpenAPI)',
  lead: 'A self-hosted state backend for the Pulumi CLI.',
  license: 'License',
  licenseName: 'Apache License 2.0',
  logIn: 'Log in with the CLI',
  sessions: 'Sessions and passkeys of your account',
  title: 'About Holdfast',
  version: 'Version',
} as const;

export const managedTexts = {
  changeAnyway: 'Change it anyway',
  declared: 'A configuration declares it.',
  declaredAs: (of: {
    readonly kind: string;
    readonly name: ReactNode;
    /** Null: the configuration has no labels. */
    readonly labels: ReactNode;
    readonly by: string;
    readonly at: ReactNode;
  }) => (
    <>
      A configuration declares it as {of.kind} {of.name}
      {of.labels === null ? null : <> with {of.labels}</>}, applied{of.by === '' ? '' : ` by ${of.by}`} {of.at}.
    </>
  ),
  managed: 'Managed by apply',
  mayRevert: (apply: ReactNode) => <>The next {apply} may revert this change.</>,
  possiblyManaged: 'Possibly managed by apply',
  unknown: 'Could not determine whether apply manages this.',
} as const;

export const editTexts = {
  loaded: 'This is the current version with your changes. Nothing is saved yet.',
  loadedBeforeRemoval: 'This is the current version. Nothing is removed yet.',
} as const;

export const propertyDiffTexts = {
  after: 'after',
  allCharacters: (count: number) => `all ${count.toLocaleString(numberLocale)} characters`,
  andItsOutput: 'and its output',
  before: 'before',
} as const;

export const storageTexts = { events: 'Events', journals: 'Journals', states: 'States' } as const;
