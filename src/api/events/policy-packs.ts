import type { EventReader } from '../../shared/events/event-reader.ts';
import { textOf } from '../../shared/events/event-text.ts';

/** A larger summary says nothing here, in bytes. */
const maxBytes = 256 * 1024;
const maxPacks = 100;
const maxChars = 200;

/** The policy packs that checked an update, by its summary; empty before its end. Throws the errors of EventReader. */
export async function readPolicyPacks(
  events: EventReader,
  updateId: string,
): Promise<{ readonly name: string; readonly version: string }[]> {
  const selection = { beyond: Number.MAX_SAFE_INTEGER, newestFirst: true, urn: null, types: ['summaryEvent'] };
  const appetite = { events: 1, bytes: maxBytes };
  for await (const [event] of events.read({ id: updateId, mayHaveRows: true }, selection, appetite))
    if (event) return event.bytes <= maxBytes ? policyPacksOf(await textOf(event)) : [];
  return [];
}

/** What a client has sent: anything that is no text is left out. */
function policyPacksOf(text: string): { readonly name: string; readonly version: string }[] {
  const { summaryEvent } = JSON.parse(text) as { summaryEvent?: { PolicyPacks?: unknown } | null };
  const packs = summaryEvent?.PolicyPacks;
  if (typeof packs !== 'object' || packs === null) return [];
  return Object.entries(packs)
    .filter((entry): entry is [string, string] => typeof entry[1] === 'string')
    .slice(0, maxPacks)
    .map(([name, version]) => ({ name: name.slice(0, maxChars), version: version.slice(0, maxChars) }));
}
