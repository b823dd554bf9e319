import type { ReactNode } from 'react';

export const embedListTexts = {
  names: { badge: 'Badge', feed: 'Feed' },
  createABadge: 'Create a badge',
  createAFeed: 'Create a feed',
  createdBy: (kind: string, createdBy: string | null, time: ReactNode) => (
    <>
      {kind}
      {createdBy === null ? '' : ` of ${createdBy}`}, {time}
    </>
  ),
  revokeOf: (kind: string, createdBy: string | null) =>
    `Revoke the ${kind}${createdBy === null ? '' : ` of ${createdBy}`}`,
  revoke: 'Revoke',
  theBadge: 'The badge',
  theFeed: 'The feed',
  badgeDescription:
    'Paste this Markdown into a README. Anyone with the URL sees the status of the stack, and nothing else.',
  feedDescription:
    'Add this URL to a feed reader. Anyone with it sees the updates that you can read, as long as you can read them.',
  shownOnce: 'The URL is shown only once.',
  done: 'Done',
  revokeQuestion: (kind: string) => `Revoke the ${kind}?`,
  badgeRevoked: 'Pages that show it get a badge that says “unknown”, after a minute at most.',
  feedRevoked: 'Its readers get no more updates.',
  revokeKind: (kind: string) => `Revoke the ${kind}`,
} as const;
