import type { ReactNode } from 'react';
import { numberLocale } from './locale.ts';

export const actionDialogTexts = {
  cancel: 'Cancel',
  loadCurrent: 'Load the current version',
  typeToConfirm: (typed: ReactNode) => <>Type {typed} to confirm</>,
} as const;

export const clampedTexts = {
  showLess: 'Show less',
  showWhole: (of: string) => `Show the whole ${of}`,
} as const;

export const copyTexts = {
  copy: 'Copy',
  copied: 'Copied',
  refused: 'The browser does not permit copying: select the text.',
} as const;

export const csvTexts = {
  csv: 'CSV',
  save: (fileName: string) => `Save ${fileName}`,
} as const;

export const dayChartTexts = { asTable: 'As a table', day: 'Day', today: 'Today' } as const;

export const dialogTexts = { close: 'Close' } as const;

export const externalLinkTexts = { anotherSite: '(another site)' } as const;

export const jsonViewTexts = {
  andMore: 'and more',
  items: (count: number) => `${count} ${count === 1 ? 'item' : 'items'}`,
  properties: (count: number) => `${count} ${count === 1 ? 'property' : 'properties'}`,
  secret: 'secret',
} as const;

export const managedBadgeTexts = {
  managed: 'Managed by apply',
  why: 'Declared by a configuration: the next holdfast apply undoes manual changes',
} as const;

export const printNoteTexts = {
  firstRows: (count: number) => `These are the first ${count.toLocaleString(numberLocale)} rows of the list.`,
} as const;

export const tableTexts = { loading: 'Loading…', showMore: 'Show more' } as const;

export const timeTexts = {
  justNow: 'just now',
  since: (time: string) => `since ${time}`,
  underASecond: '<1 s',
  seconds: (seconds: number) => `${seconds} s`,
  minutes: (minutes: number, seconds: number) => (seconds === 0 ? `${minutes} min` : `${minutes} min ${seconds} s`),
  hours: (hours: number, minutes: number) => (minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`),
  days: (days: number, hours: number) =>
    hours === 0 ? `${days.toLocaleString(numberLocale)} d` : `${days.toLocaleString(numberLocale)} d ${hours} h`,
} as const;

export const timeDisplayTexts = {
  relative: 'Relative times',
  local: 'Local times',
  utc: 'Times in UTC',
} as const;
