import type { HistoryInfo } from '../../shared/diy/history-info.ts';
import type { SourceContent, SourceEntry } from './moving-source.ts';
import type { StateFacts } from './state-facts.ts';

/**
 * The version of an imported update is its version in the source. Only updates that the source does not number are numbered consecutively.
 */

/** Returns null if the source does not number it. An export to a folder writes it into the history. */
export function versionInSource({ stackVersion }: Pick<SourceEntry, 'stackVersion'>, info: HistoryInfo): number | null {
  return stackVersion ?? info.version;
}

/** The version that an entry becomes after `stackVersion`. */
export function versionAfter(stackVersion: number, inSource: number | null): number {
  return Math.max(stackVersion + 1, inSource ?? 0);
}

/** The fault of an entry's version here, given that it follows `previous`; null if there is none. */
export function versionFault(stackVersion: number, inSource: number | null, previous: number): string | null {
  if (inSource !== null)
    return stackVersion === inSource ? null : `version ${stackVersion} is version ${inSource} in the source`;
  return stackVersion > previous ? null : `version ${stackVersion} is after version ${previous} in the source`;
}

/** Whether a service or an archive has this state of a stack without updates: a service also answers with an empty one. */
export function isState(facts: StateFacts | null): facts is StateFacts {
  return facts !== null && (facts.resources > 0 || facts.secretsProvider !== null);
}

/**
 * Whether a state that no update has left is the initial state of its stack, which has no version. If it had one, the next update would not
 * get its number in the source. A folder numbers nothing; its state with resources gets a version here, so that it can be restored, unless
 * an export says that it had none.
 */
export function isInitialState(
  { decrypt, history, isInitial = false }: Pick<SourceContent, 'decrypt' | 'history' | 'isInitial'>,
  facts: StateFacts,
  here: { readonly stackVersion: number; readonly hasState: boolean } | null,
): boolean {
  if (history.length > 0 || (here !== null && (here.stackVersion > 0 || here.hasState))) return false;
  return decrypt !== null || isInitial || facts.resources === 0;
}
