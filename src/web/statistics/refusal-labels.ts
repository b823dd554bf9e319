import type { CiRefusal } from '../platform/app/procedure-types.ts';
import { refusalTexts } from './texts.ts';

export const refusalLabels: Readonly<Record<CiRefusal['reason'], string>> = refusalTexts.reasons;

/** A newer server may have other reasons. */
export function viewReason(reason: string): string {
  return Object.hasOwn(refusalLabels, reason)
    ? refusalLabels[reason as CiRefusal['reason']]
    : reason.replaceAll('-', ' ');
}

/** The run had begun, and a rule stopped it. */
export function isStop(reason: CiRefusal['reason']): boolean {
  return reason === 'change-limit' || reason === 'protected-types' || reason === 'require-preview';
}
