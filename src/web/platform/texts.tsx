import type { ReactNode } from 'react';

// A part of the first load: texts of parts that are loaded on demand are in app/texts.tsx.

/** The names serve as links, titles and breadcrumbs. */
export const pageTexts = {
  about: 'About',
  access: 'Access',
  activity: 'Activity',
  approvals: 'Approvals',
  audit: 'Audit log',
  backups: 'Backups',
  ci: 'CI',
  deletedStacks: 'Deleted stacks',
  health: 'Health',
  import: 'Import',
  imports: 'Imports',
  limits: 'Limits',
  locks: 'Locks',
  members: 'Members',
  needsAttention: 'Needs attention',
  operations: 'Operations',
  organization: 'Organization',
  policies: 'Policies',
  queues: 'Queues',
  references: 'References',
  roles: 'Roles',
  rules: 'Rules',
  search: 'Search',
  stacks: 'Stacks',
  storage: 'Storage',
  tasks: 'Tasks',
  team: 'Team',
  teams: 'Teams',
  tokens: 'Tokens',
  trustPolicies: 'Trust policies',
  webhook: 'Webhook',
  webhooks: 'Webhooks',
  /** A page of an organization or a stack. */
  pageOf: (page: string, whole: string) => `${page} of ${whole}`,
  /** The title of the browser's tab. */
  tabTitle: (page: string) => `${page} - Holdfast`,
} as const;

export const pageGroupTexts = {
  machines: 'Machines',
  people: 'People',
  records: 'Records',
  updates: 'Updates',
} as const;

/** The command palette can run these from other pages. */
export const pageActionTexts = {
  addMember: 'Add a member',
  addWebhook: 'Add a webhook',
  copyStackName: 'Copy the name of this stack',
  createToken: 'Create a token',
  freezeStacks: 'Freeze stacks',
  inviteMember: 'Invite a member',
  showShortcuts: 'Show keyboard shortcuts',
} as const;

export const sessionTexts = {
  ended: (signIn: (label: string) => ReactNode) => (
    <>Your session has ended. {signIn('Sign in')} in another tab, and go on here.</>
  ),
  leave: 'Leave this page? What you have entered, or what is shown only once, is lost.',
} as const;

export const shellTexts = {
  goTo: 'Go to…',
  goToWithKey: 'Go to… Ctrl K',
  invitations: (count: number) =>
    count === 1 ? 'An organization has invited you' : `${count} organizations have invited you`,
  key: 'Ctrl K',
  navigation: 'Navigation',
  openNavigation: 'Open the navigation',
  readOnly: 'This installation is read-only for now',
  respond: 'Respond',
  skip: 'Skip to the content',
} as const;

export const sidebarTexts = {
  about: 'About Holdfast',
  account: 'Account',
  allOrganizations: 'All organizations',
  brand: 'Holdfast',
  favorites: 'Favorites',
  organization: 'Organization:',
  pages: 'Pages',
  signOut: 'Sign out',
  views: 'Views',
  /** A view, when views of other organizations are listed, too. */
  viewOf: (view: string, organization: string) => `${view}, ${organization}`,
  yourAccount: 'Your account',
} as const;

export const themeTexts = {
  chosen: (theme: string) => `Theme: ${theme}`,
  dark: 'Dark',
  darkTheme: 'Dark theme',
  light: 'Light',
  lightTheme: 'Light theme',
  system: 'Same as system',
  systemTheme: 'System theme',
  theme: 'Theme',
} as const;

export const proxyTexts = {
  mayBeDone: ' It may be done: look before you repeat it.',
  answeredInPlace: (status: number) =>
    `A proxy answered in place of the server (status ${status}). The server may be restarting or overloaded.`,
  answeredWithPage: (status: number) =>
    `A proxy answered with a page of its own (status ${status}). Your session with it may have ended: reload this page.`,
} as const;

export const breadcrumbTexts = {
  run: 'Run',
  update: (version: string) => `Update ${version}`,
  whereYouAre: 'Where you are',
} as const;

export const chunkTexts = {
  appears: 'It appears as soon as the server sends it.',
  newVersion: 'A new version of Holdfast is running',
  notLoaded: 'The page could not be loaded',
  opens: 'It opens as soon as the server sends it.',
  pageOpens: 'The page opens as soon as it does.',
  partAppears: 'The missing part appears as soon as it does.',
  partNotLoaded: 'A part of this page could not be loaded',
  reload: 'Reload the page',
  reloadToGoOn: 'Reload the page to go on.',
} as const;

/** The server or its answer is missing. */
export const problemTexts = {
  continues: 'This page continues automatically as soon as possible.',
  deletedByRule: 'Deleted by a retention rule',
  goToStacks: 'Go to the stacks',
  mayBeOutOfDate: 'The page may be out of date.',
  noAccess: 'You do not have access',
  noAnswer: 'The server does not answer',
  notFound: 'Page not found',
  notFoundWhy: 'It may have been deleted or renamed, or you may not have permission to see it.',
  notRefreshed: 'Parts of this page could not be refreshed',
  notShown: (reason: string) => `This part cannot be shown: ${reason}`,
  refreshes: 'It refreshes automatically as soon as possible.',
  restarting: 'It may be restarting, or your connection is down. Running updates are not affected.',
  retrying: 'Retrying…',
  tooManyRequests: 'Too many requests',
  tryAgain: 'Try again',
  unavailable: 'Temporarily unavailable',
  wentWrong: 'Something went wrong',
} as const;

/** Lists with several pages. */
export const listTexts = {
  actions: 'Actions',
  actionsFor: (item: string) => `Actions for ${item}`,
  pagesOfOrganization: 'Pages of the organization',
  stack: 'Stack',
} as const;
