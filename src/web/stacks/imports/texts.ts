import { counted } from '../../platform/ui/counted.ts';
import { numberLocale } from '../../platform/ui/locale.ts';

export const importTexts = {
  archive: 'an archive of another Holdfast',
  bucket: 'a DIY backend (bucket)',
  comparison: 'Comparison',
  comparisonWith: (source: string) => `Comparison with ${source}`,
  folder: 'a DIY backend (folder)',
  import: 'Import',
  importFrom: (source: string) => `Import from ${source}`,
  previews: (count: number) => counted(count, 'preview'),
  rollback: 'Rollback',
  rollbackFrom: (source: string) => `Rollback of an import from ${source}`,
  service: 'a Pulumi-compatible service',
  stacks: (count: number) => counted(count, 'stack'),
  versions: (count: number) => counted(count, 'version'),
} as const;

export const importPageTexts = {
  compared: 'Compared with its source',
  count: 'Count',
  deleted: 'Deleted',
  differences: 'Differences',
  ended: 'Ended',
  equal: 'Equal',
  imported: 'Imported',
  kept: 'Kept',
  lead: 'Stacks already up to date are omitted.',
  noSecrets: 'none found',
  notes: 'Notes',
  nothing: 'nothing',
  nothingNew: 'Nothing new',
  nothingNewHint: 'A comparison with the source shows whether everything is here:',
  notYet: 'not yet',
  quarantine: 'quarantine',
  quarantined: (why: string) => `The CLI refuses its newest state: ${why}`,
  result: 'Result',
  runBy: 'Run by',
  runOnServer: (by: string) => `${by}, on a server`,
  secrets: 'Secrets',
  secretsAsBefore: (provider: string) => `${provider}, as before`,
  secretsOfService: 'of the service',
  skipped: 'Skipped',
  stack: 'Stack',
  stacks: 'Stacks',
  started: 'Started',
  stillRunning: 'still running, or interrupted',
  title: 'Import',
} as const;

export const importsTexts = {
  by: 'By',
  content: 'Content',
  imports: 'Imports',
  lead: 'Runs of holdfast import: imported stacks and history, and skipped items.',
  none: 'No imports yet',
  noneHint: 'An operator imports stacks with their history:',
  result: 'Result',
  run: 'Run',
  source: 'Source',
} as const;

export const importBadgeTexts = {
  differ: (different: number, stacks: number) =>
    `${different.toLocaleString(numberLocale)} of ${counted(stacks, 'stack')} differ`,
  inQuarantine: (stacks: number) => `${stacks.toLocaleString(numberLocale)} in quarantine`,
  kept: (stacks: number) => `${counted(stacks, 'stack')} kept`,
  noDifferences: 'no differences',
  notEnded: 'not ended',
  notVerified: 'not verified',
  verified: (stacks: number) => `verified: ${counted(stacks, 'stack')}`,
  withDifferences: (stacks: number) => `${counted(stacks, 'stack')} with differences`,
  withGaps: (stacks: number) => `${counted(stacks, 'stack')} with gaps`,
} as const;
