import type { UpdateItem } from '../platform/app/contract.ts';

export type StatusTone = 'neutral' | 'success' | 'failure' | 'running' | 'warning';

/** How an update stands, in one word and one colour. */
export interface StatusView {
  word: string;
  tone: StatusTone;
}

const views: Readonly<Record<string, StatusView>> = {
  'not started': { word: 'Waiting', tone: 'warning' },
  running: { word: 'Running', tone: 'running' },
  succeeded: { word: 'Succeeded', tone: 'success' },
  failed: { word: 'Failed', tone: 'failure' },
  cancelled: { word: 'Cancelled', tone: 'neutral' },
};

/** Statuses and results have several spellings in histories of the CLI. */
export function viewStatus(status: string): StatusView {
  const plain = status === 'in-progress' ? 'running' : status === 'not-started' ? 'not started' : status;
  return views[plain] ?? { word: status, tone: 'neutral' };
}

/** Whether more may happen. */
export function isActive(update: Pick<UpdateItem, 'status'>): boolean {
  return ['not started', 'not-started', 'running', 'in-progress', 'requested'].includes(update.status);
}

const kinds: Readonly<Record<string, string>> = {
  update: 'Update',
  preview: 'Preview',
  refresh: 'Refresh',
  destroy: 'Destroy',
  import: 'Import',
  'resource-import': 'Import',
  rename: 'Rename',
};

/** What an update does, in the CLI's words. */
export function viewKind({ kind, dryRun }: { kind: string; dryRun?: boolean }): string {
  const word = kinds[kind] ?? kind;
  return dryRun === true && word !== 'Preview' ? `Preview of ${word.toLowerCase()}` : word;
}

/** Short form of a commit's name. */
export function shortCommit(commit: string): string {
  return /^[0-9a-f]{12,64}$/.test(commit) ? commit.slice(0, 8) : commit;
}

/** Which permission somebody needs to cancel an update: the one to begin it. */
export function neededPermission({ dryRun }: Pick<UpdateItem, 'dryRun'>): 'preview' | 'write' {
  return dryRun ? 'preview' : 'write';
}

const endReasons: Readonly<Record<string, string>> = {
  'lease-expired': 'Its CLI stopped answering, so the lock was taken away',
  'token-revoked': 'Its API token was revoked while it ran',
  'token-expired': 'Its API token expired while it ran',
  'user-deactivated': 'Who started it was deactivated while it ran',
  'membership-ended': 'Who started it may no longer update stacks of this organization',
  'grant-ended': 'Its token may no longer update this stack',
  'time-limit': 'It reached the longest time that an update may take',
  'database-restored':
    'The database of the server was restored, or has failed over, and may lack what it had saved: run `pulumi refresh`',
  superseded: 'A newer run took its place',
};

/** Why an update ended other than by its CLI; null where its status says so already. A newer server may have other reasons. */
export function viewEndReason(reason: string | null): string | null {
  if (reason === null || reason === 'cancelled') return null;
  return Object.hasOwn(endReasons, reason) ? (endReasons[reason] as string) : `Ended: ${reason.replaceAll('-', ' ')}`;
}
