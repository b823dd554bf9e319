import type { AuditItem } from '../platform/app/procedure-types.ts';
import { signInTexts } from './texts.ts';

/** How the actor of an event signed in. */
export const signInLabels: Readonly<Record<AuditItem['signIn'], string>> = signInTexts.by;
