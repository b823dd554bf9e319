import type { Tuning } from '../src/shared/platform/config/tuning.ts';

/** The environment of a process in which these values, which are no settings, are others. */
export function tuned(tuning: Partial<Tuning>): { readonly HOLDFAST_TEST_TUNING: string } {
  return { HOLDFAST_TEST_TUNING: JSON.stringify(tuning) };
}
