import type { UpdateItem } from '../platform/app/procedure-types.ts';
import { updateStatusTexts } from './status/texts.ts';

export type StatusTone = 'neutral' | 'success' | 'failure' | 'running' | 'warning';

export interface StatusView {
  word: string;
  tone: StatusTone;
}

const { statuses } = updateStatusTexts;

const views: Readonly<Record<UpdateItem['status'], StatusView>> = {
  'not started': { word: statuses['not started'], tone: 'warning' },
  running: { word: statuses.running, tone: 'running' },
  succeeded: { word: statuses.succeeded, tone: 'success' },
  failed: { word: statuses.failed, tone: 'failure' },
  cancelled: { word: statuses.cancelled, tone: 'neutral' },
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

const kinds: Readonly<Record<UpdateItem['kind'] | 'resource-import', string>> = updateStatusTexts.kinds;

/** The words are the CLI's. */
export function viewKind({ kind, dryRun }: { kind: string; dryRun?: boolean }): string {
  const word = Object.hasOwn(kinds, kind) ? kinds[kind as UpdateItem['kind']] : kind;
  return dryRun === true && word !== kinds.preview ? updateStatusTexts.previewOf(word) : word;
}

/** Short form of a commit's name. */
export function shortCommit(commit: string): string {
  return /^[0-9a-f]{12,64}$/.test(commit) ? commit.slice(0, 8) : commit;
}

export const endReasons: Readonly<Record<Exclude<UpdateItem['endReason'], 'cancelled' | null>, string>> =
  updateStatusTexts.endReasons;

/** Returns null if the status already says why. A newer server may have other reasons. */
export function viewEndReason(reason: string | null): string | null {
  if (reason === null || reason === 'cancelled') return null;
  return Object.hasOwn(endReasons, reason)
    ? endReasons[reason as keyof typeof endReasons]
    : updateStatusTexts.otherEnd(reason);
}
