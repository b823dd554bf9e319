import type { AppContext } from '../../../shared/context.ts';
import { EventsDamagedError } from '../../../shared/events/event-segments.ts';
import { DocumentDamagedError } from '../../../shared/state/checkpoints/document-reader.ts';
import { StateDeletedError } from '../../../shared/state/retention/deleted-errors.ts';
import type { ArchivedUpdate } from './archive-layout.ts';
import { archivedEvents } from './archived-events.ts';

/** The reason why a state is missing forever: retention has deleted it. */
export const deletedFault = 'retention has deleted it';

/** The note about a version without its state. */
export function withoutState(version: number, fault: string): string {
  return `without the state of version ${version}: ${fault}`;
}

/** The note about an update without its events. */
export function withoutEvents(
  { id, version }: { readonly id: string; readonly version: number | null },
  fault: string,
): string {
  return `without the events of ${version === null ? `preview ${id}` : `version ${version}`}: ${fault}`;
}

/** Notes about missing parts of an archive's updates; null if a missing part can be read now, or if a state lacks other entries now. */
export async function findLacks(
  context: Pick<AppContext, 'eventReader' | 'states'>,
  stackId: string,
  updates: readonly Pick<ArchivedUpdate, 'eventsFault' | 'id' | 'stateFault' | 'stateWarning' | 'version'>[],
): Promise<string[] | null> {
  const notes: string[] = [];
  for (const { eventsFault, id, stateFault, stateWarning, version } of updates) {
    if (stateWarning !== undefined && version !== null) {
      const state = await context.states.readVersion(stackId, version).catch(unlessDamaged);
      if (state !== null && (await isReadable(state.bytes)) && state.warning !== stateWarning) return null;
      notes.push(stateWarning);
    }
    if (stateFault !== null && stateFault !== deletedFault && version !== null) {
      const state = await context.states.readVersion(stackId, version).catch(unlessDamaged);
      if (state !== null && (await isReadable(state.bytes))) return null;
      notes.push(withoutState(version, stateFault));
    }
    if (eventsFault === undefined) continue;
    if (await isReadable(archivedEvents(context.eventReader, id).lines)) return null;
    notes.push(withoutEvents({ id, version }, eventsFault));
  }
  return notes;
}

async function isReadable(bytes: AsyncIterable<Buffer>): Promise<boolean> {
  try {
    for await (const _ of bytes);
    return true;
  } catch (error) {
    unlessDamaged(error);
    return false;
  }
}

function unlessDamaged(error: unknown): null {
  const isDamage = [DocumentDamagedError, EventsDamagedError, StateDeletedError].some((each) => error instanceof each);
  if (!isDamage) throw error;
  return null;
}
