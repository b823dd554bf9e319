import type { CiRefusal } from '../platform/app/contract.ts';

export const refusalLabels: Readonly<Record<CiRefusal['reason'], string>> = {
  busy: 'Stack was busy',
  frozen: 'Frozen',
  limit: 'Concurrency limit',
  'preview-needed': 'No preview',
  'has-consumers': 'Outputs in use',
  superseded: 'Superseded',
  evicted: 'Removed from the queue',
  'change-limit': 'Change limit exceeded',
  'protected-types': 'Protected resource',
  'require-preview': 'Differs from the preview',
};

/** Why a run was refused, in a few words. A newer server may have other reasons. */
export function viewReason(reason: string): string {
  return Object.hasOwn(refusalLabels, reason)
    ? refusalLabels[reason as CiRefusal['reason']]
    : reason.replaceAll('-', ' ');
}

/** Whether the run had begun, and a rule stopped it. */
export function isStop(reason: CiRefusal['reason']): boolean {
  return reason === 'change-limit' || reason === 'protected-types' || reason === 'require-preview';
}
