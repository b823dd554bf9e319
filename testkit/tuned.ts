/** The environment of a process in which these values of `config/tuning.ts`, which are no settings, are others. */
export function tuned(tuning: Readonly<Record<string, number>>): { readonly HOLDFAST_TEST_TUNING: string } {
  return { HOLDFAST_TEST_TUNING: JSON.stringify(tuning) };
}
