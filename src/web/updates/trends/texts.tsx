import type { ReactNode } from 'react';
import { numberLocale } from '../../platform/ui/locale.ts';

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
  resourcesOf: (version: string | number, resources: number) =>
    `Version ${version}: ${resources.toLocaleString(numberLocale)}`,
  resourcesByVersion: 'Resources by version',
  nowOf: (resources: number) => `now ${resources.toLocaleString(numberLocale)}`,
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
  fileColumns: ['version', 'kind', 'status', 'ended', 'seconds', 'seconds in queue', 'resources'],
} as const;
