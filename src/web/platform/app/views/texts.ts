export const viewTexts = {
  activity: 'Activity',
  ci: 'CI',
  stacks: 'Stacks',
  about: ({
    author,
    isOwn,
    isShared,
    organization,
    page,
  }: {
    readonly author: string;
    readonly isOwn: boolean;
    readonly isShared: boolean;
    /** Null: all views belong to one organization. */
    readonly organization: string | null;
    readonly page: string;
  }) =>
    `${organization === null ? '' : `${organization}: `}${page}${isOwn ? (isShared ? ', shared' : '') : `, shared by ${author}`}`,
  allLose: 'All members lose this view.',
  allSee: 'All members then see the filters of this page.',
  askDelete: 'Delete this view?',
  askReplace: 'Replace its filters with the filters of this page?',
  cancel: 'Cancel',
  chooseOne: 'Choose one',
  delete: 'Delete',
  deleteView: 'Delete the view',
  lead: 'A view keeps the filters of a page. Pinned views are in the sidebar.',
  name: 'Name of this view',
  newName: 'New name',
  ofView: (action: string, view: string) => `${action} ${view}`,
  organization: 'Organization',
  organizationHint: 'The view lists the stacks of this organization.',
  pin: 'Pin',
  rename: 'Rename',
  save: 'Save',
  saved: 'Saved views',
  share: 'Share',
  shareWith: (organization: string) => `Share with the members of ${organization || 'the organization'}`,
  update: 'Update',
  updateView: 'Update the view',
  views: 'Views',
} as const;
