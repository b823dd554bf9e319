import type { OperatorHealth, OperatorQueues, OperatorTasks } from '../platform/app/contract.ts';

/** A problem that needs an operator's attention, and the page that shows it. */
export interface Problem {
  readonly what: string;
  /** The consequence, or the fix. */
  readonly hint: string;
  readonly page: '/~/operator/queues' | '/~/operator/tasks' | null;
}

/** Unchained or unsent events older than this indicate a problem, in seconds. */
export const lateSeconds = 300;

/** All problems of the installation, the worst first. */
export function listProblems(
  { blobs, database, processes, queue }: Pick<OperatorHealth, 'blobs' | 'database' | 'processes' | 'queue'>,
  { queues }: Pick<OperatorQueues, 'queues'>,
  { audit, runs }: Pick<OperatorTasks, 'audit' | 'runs'>,
): Problem[] {
  const problems: Problem[] = [];
  const add = (what: string, hint: string, page: Problem['page'] = null): number => problems.push({ what, hint, page });
  if (!database.isUp) add('Postgres does not answer', 'Nothing can be read or written until it does.');
  if (!blobs.isUp) add('The blob store does not answer', 'Large states cannot be read or written until it does.');
  if (queue !== null && !queue.isUp)
    add('Redis does not answer', 'Large writes are refused until it does; nothing is lost.', '/~/operator/queues');
  for (const { failed, name, workers } of queues) {
    if (workers === 0) add(`No worker processes ${name} writes`, 'Start a worker.', '/~/operator/queues');
    if (failed > 0)
      add(
        `${failed.toLocaleString()} ${failed === 1 ? 'job' : 'jobs'} of the ${name} writes failed`,
        'Retry or discard them.',
        '/~/operator/queues',
      );
  }
  const late = processes.filter(({ isLate }) => isLate).length;
  if (late > 0)
    add(
      `${late} ${late === 1 ? 'process sends' : 'processes send'} no heartbeat`,
      'It was stopped on purpose, or it crashed: see the list below.',
    );
  for (const { error, failedAt, name } of runs)
    if (failedAt !== null) add(`The task "${name.replaceAll('-', ' ')}" fails`, error ?? '', '/~/operator/tasks');
  if ((audit.unchainedSeconds ?? 0) > lateSeconds)
    add(
      'Audit events are not chained',
      'Events from a few minutes ago can still be changed without a trace.',
      '/~/operator/tasks',
    );
  if ((audit.unsentSeconds ?? 0) > lateSeconds)
    add('The audit log is not forwarded', 'The server that receives it is slow or down.', '/~/operator/tasks');
  return problems;
}
