import type { OperatorHealth, OperatorQueues, OperatorTasks } from '../platform/app/procedure-types.ts';
import { attentionTexts } from './texts.tsx';

export interface Problem {
  readonly what: string;
  /** The consequence, or the fix. */
  readonly hint: string;
  readonly page: '/~/operator/queues' | '/~/operator/tasks' | '/~/operator/backups' | null;
}

/** In seconds. Older unchained or unsent events are a problem. */
export const lateSeconds = 300;
const overdueSeconds = 86_400;

/** The worst first. Null: queues or tasks cannot be read. */
export function listProblems(
  { blobs, database, processes, queue }: Pick<OperatorHealth, 'blobs' | 'database' | 'processes' | 'queue'>,
  queues: OperatorQueues['queues'] | null,
  tasks: Pick<OperatorTasks, 'audit' | 'faults' | 'runs'> | null,
): Problem[] {
  const problems: Problem[] = [];
  const add = (what: string, hint: string, page: Problem['page'] = null): number => problems.push({ what, hint, page });
  if (!database.isUp) add(attentionTexts.databaseDown, attentionTexts.databaseDownHint);
  if (!blobs.isUp) add(attentionTexts.blobStoreDown, attentionTexts.blobStoreDownHint);
  if (queue !== null && !queue.isUp) add(attentionTexts.redisDown, attentionTexts.redisDownHint, '/~/operator/queues');
  if (queues === null || tasks === null) add(attentionTexts.unknown, '');
  const { audit, faults, runs = [] } = tasks ?? {};
  if (faults?.blockedStacks) add(attentionTexts.blocked(faults.blockedStacks), attentionTexts.blockedHint);
  if (faults?.damagedDocuments) add(attentionTexts.damaged(faults.damagedDocuments), attentionTexts.damagedHint);
  if (faults?.isOutgoingHeld) add(attentionTexts.held, attentionTexts.heldHint);
  for (const { failed, name, workers } of queues ?? []) {
    if (workers === 0) add(attentionTexts.noWorker(name), attentionTexts.noWorkerHint, '/~/operator/queues');
    if (failed > 0) add(attentionTexts.jobsFailed(failed, name), attentionTexts.jobsFailedHint, '/~/operator/queues');
  }
  const late = processes.filter(({ isLate }) => isLate).length;
  if (late > 0) add(attentionTexts.noHeartbeat(late), attentionTexts.noHeartbeatHint);
  for (const { error, failedAt, name } of runs)
    if (failedAt !== null) add(attentionTexts.taskFails(name.replaceAll('-', ' ')), error ?? '', '/~/operator/tasks');
  if ((faults?.backupOverdueSeconds ?? 0) > overdueSeconds)
    add(attentionTexts.backupOverdue, attentionTexts.backupOverdueHint, '/~/operator/backups');
  if ((audit?.unchainedSeconds ?? 0) > lateSeconds)
    add(attentionTexts.unchained, attentionTexts.unchainedHint, '/~/operator/tasks');
  if ((audit?.unsentSeconds ?? 0) > lateSeconds)
    add(attentionTexts.auditNotForwarded, attentionTexts.auditNotForwardedHint, '/~/operator/tasks');
  if ((audit?.unexportedSeconds ?? 0) > lateSeconds)
    add(attentionTexts.auditNotExported, attentionTexts.auditNotExportedHint, '/~/operator/tasks');
  return problems;
}
