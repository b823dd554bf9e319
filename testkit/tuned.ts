/** The environment of a process that overrides these values of `config/tuning.ts`, which are no settings. */
export function tuned(tuning: Readonly<Record<string, number>>): { readonly HOLDFAST_TEST_TUNING: string } {
  return { HOLDFAST_TEST_TUNING: JSON.stringify(tuning) };
}
