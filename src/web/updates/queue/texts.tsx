import type { ReactNode } from 'react';
import { numberLocale } from '../../platform/ui/locale.ts';

const waiting = (count: number): string => `${count.toLocaleString(numberLocale)} ${count === 1 ? 'waits' : 'wait'}`;

export const queueTexts = {
  /** `hasMore`: the list continues. */
  sum: (running: number, waits: number, hasMore: boolean) => {
    const runs = `${running.toLocaleString(numberLocale)} ${running === 1 ? 'run holds a lock' : 'runs hold locks'}`;
    const rest = waits > 0 ? `, ${waiting(waits)}` : hasMore ? '' : ', none waiting';
    return `${hasMore ? 'At least ' : ''}${runs}${rest}`;
  },
  waiting,
  waitsForStack: 'waits for the stack',
  waitsForLimit: 'waits for a limit',
  frozen: 'frozen',
  aboutToStart: 'about to start',
  showMore: 'Show more',
  queueOf: (project: string, stack: string) => `Queue of ${project}/${stack}`,
  run: 'Run',
  runBy: (run: string, by: string | null) => `${run}${by === null ? '' : ` by ${by}`}`,
  runs: 'Runs',
  ciRun: 'CI run',
  since: (isWaiting: boolean, since: ReactNode) => (
    <>
      {isWaiting ? 'waits ' : 'for '}
      {since}
    </>
  ),
  noStackIsLocked: 'No stack is locked',
  noStackIsLockedHint:
    'Runs appear here while they hold a lock or wait for one. A second run is refused unless it may wait:',
  order: 'Runs start in the order in which they arrived, and each CLI shows why its run waits.',
} as const;

export const runActionsTexts = {
  dialogs: {
    evict: {
      title: (stack: string, position: number) => `Remove number ${position} from the queue of ${stack}?`,
      description: (run: string) =>
        `${run}: its pulumi command ends with an error that says so. It has changed nothing; the runs behind it move up.`,
      action: 'Remove it',
      stay: 'Keep it waiting',
    },
    drain: {
      title: (stack: string) => `Drain the update of ${stack}?`,
      description: (run: string) =>
        `${run}: it starts no new steps. The steps in progress are finished and saved, and then the CLI ends the update.`,
      action: 'Drain the update',
      stay: 'Keep it running',
    },
    cancel: {
      title: (stack: string) => `Cancel the update of ${stack}?`,
      description: (run: string) =>
        `${run}: the CLI loses its lock at once. Steps in progress may finish in the cloud without being saved; the stack then has pending operations.`,
      action: 'Cancel the update',
      stay: 'Keep it running',
    },
  },
  removeNumber: (position: number, name: string) => `Remove number ${position} of ${name}`,
  remove: 'Remove',
  drainStack: (name: string) => `Drain ${name}`,
  drain: 'Drain',
  cancelStack: (name: string) => `Cancel ${name}`,
  cancel: 'Cancel',
  reason: 'Reason',
  drainReasonHint: 'For the audit log. Optional.',
  evictReasonHint: 'Its command prints it. Optional.',
} as const;
