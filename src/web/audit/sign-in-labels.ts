import type { AuditItem } from '../platform/app/contract.ts';
import { signInTexts } from './texts.ts';

/** How the actor of an event signed in. */
export const signInLabels: Readonly<Record<AuditItem['signIn'], string>> = signInTexts.by;
