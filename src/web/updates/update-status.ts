import type { UpdateItem } from '../platform/app/contract.ts';

export type StatusTone = 'neutral' | 'success' | 'failure' | 'running' | 'warning';

/** The status of an update as one label and one colour. */
export interface StatusView {
  word: string;
  tone: StatusTone;
}

const views: Readonly<Record<UpdateItem['status'], StatusView>> = {
  'not started': { word: 'Waiting', tone: 'warning' },
  running: { word: 'Running', tone: 'running' },
  succeeded: { word: 'Succeeded', tone: 'success' },
  failed: { word: 'Failed', tone: 'failure' },
  cancelled: { word: 'Cancelled', tone: 'neutral' },
};

/** Statuses and results have several spellings in histories of the CLI. */
export function viewStatus(status: string): StatusView {
  const plain = status === 'in-progress' ? 'running' : status === 'not-started' ? 'not started' : status;
  return Object.hasOwn(views, plain) ? views[plain as UpdateItem['status']] : { word: status, tone: 'neutral' };
}

/** Whether the update may still change. */
export function isActive(update: Pick<UpdateItem, 'status'>): boolean {
  return ['not started', 'not-started', 'running', 'in-progress', 'requested'].includes(update.status);
}

const kinds: Readonly<Record<UpdateItem['kind'] | 'resource-import', string>> = {
  update: 'Update',
  preview: 'Preview',
  refresh: 'Refresh',
  destroy: 'Destroy',
  import: 'Import',
  'resource-import': 'Import',
  rename: 'Rename',
};

/** The kind of an update, as named by the CLI. */
export function viewKind({ kind, dryRun }: { kind: string; dryRun?: boolean }): string {
  const word = Object.hasOwn(kinds, kind) ? kinds[kind as UpdateItem['kind']] : kind;
  return dryRun === true && word !== 'Preview' ? `Preview of ${word.toLowerCase()}` : word;
}

/** Short form of a commit's name. */
export function shortCommit(commit: string): string {
  return /^[0-9a-f]{12,64}$/.test(commit) ? commit.slice(0, 8) : commit;
}

/** The permission needed to cancel an update: the same as to start it. */
export function neededPermission({ dryRun }: Pick<UpdateItem, 'dryRun'>): 'preview' | 'write' {
  return dryRun ? 'preview' : 'write';
}

export const endReasons: Readonly<Record<Exclude<UpdateItem['endReason'], 'cancelled' | null>, string>> = {
  'lease-expired': 'Its CLI stopped renewing the lease, so it lost the lock',
  'token-revoked': 'Its API token was revoked while it ran',
  'token-expired': 'Its API token expired while it ran',
  'user-deactivated': 'The user who started it was deactivated while it ran',
  'membership-ended': 'The user who started it may no longer update stacks of this organization',
  'grant-ended': 'Its token may no longer update this stack',
  'time-limit': 'It reached the maximum duration of an update',
  'database-restored':
    'The server’s database was restored or failed over and may lack saved state: run `pulumi refresh`',
};

/** Why an update ended other than by its CLI; null where its status says so already. A newer server may have other reasons. */
export function viewEndReason(reason: string | null): string | null {
  if (reason === null || reason === 'cancelled') return null;
  return Object.hasOwn(endReasons, reason)
    ? endReasons[reason as keyof typeof endReasons]
    : `Ended: ${reason.replaceAll('-', ' ')}`;
}
