import type { ReactNode } from 'react';
import { counted } from '../../platform/ui/counted.ts';

export const attentionTexts = {
  allFound: 'No stack is failed, interrupted, drifted or frozen, and nothing waits for you.',
  allIsWell: 'All is well',
  approvals: 'Approvals',
  by: 'By',
  ciRun: 'CI run',
  drifted: 'Drifted',
  ends: (at: ReactNode) => <>ends {at}</>,
  failed: 'Failed',
  freezes: (stacks: number) => `Freezes ${counted(stacks, 'stack')}`,
  freezesMoreThan: (stacks: number) => `Freezes more than ${stacks} stacks`,
  frozen: 'Frozen',
  interrupted: 'Interrupted',
  isPartial:
    'This page does not check all stacks and requests: it may miss failures, interruptions, drift, freezes and approvals. The lists of stacks and approvals cover all.',
  longWaits: 'Long waits',
  nothingFound: 'Nothing found',
  operator: 'an operator',
  reason: 'Reason',
  run: 'Run',
  showAll: 'Show all',
  /** Continues `showAll`, for screen readers. */
  showAllOf: (group: string) => `${group.toLowerCase()} stacks`,
  since: 'Since',
  stack: 'Stack',
  title: 'Needs attention',
  trouble: {
    drifted: (update: string) => `${update} found drift`,
    failed: (update: string) => `${update} failed`,
    interrupted: (update: string) => `${update} was interrupted`,
  },
  waitsAt: (run: string, position: number | null) => `${run} waits at position ${position}`,
  waitsForApproval: (run: string) => `${run} waits for your approval`,
} as const;
