import { type Config, parseConfig } from '../../src/shared/platform/config/config.ts';
import type { Tuning } from '../../src/shared/platform/config/tuning.ts';

/** With values that no setting says by their names. */
export type TestSettings = Partial<Tuning> & { readonly [name: `HOLDFAST_${string}`]: string };

/** The configuration of a process with these settings. */
export function configOf(settings: TestSettings): Config {
  const isVariable = ([name]: readonly [string, unknown]): boolean => name.startsWith('HOLDFAST_');
  const entries = Object.entries(settings);
  return parseConfig(
    Object.fromEntries(entries.filter(isVariable)) as Record<string, string>,
    Object.fromEntries(entries.filter((entry) => !isVariable(entry))),
  );
}
