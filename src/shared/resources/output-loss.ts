import { formatUrn, rootStackType } from '../deployments/urn.ts';
import type { EventReader } from '../events/event-reader.ts';
import { textOf } from '../events/event-text.ts';
import type { StackRef } from '../stacks/names.ts';

/** A larger event says nothing here, in bytes. */
const maxEventBytes = 8 * 1024 * 1024;
const appetite = { events: 1, bytes: maxEventBytes };
/** Longer names, and more of them, are cut. */
const maxNameChars = 200;
const maxNames = 1_000;
const maxToldNames = 5;

/**
 * The names of the outputs that an update or a preview removes, as the last event about the outputs of its stack says. Empty if there
 * is no such event: the program failed, or a policy of the CLI drops it. Throws the errors of EventReader.
 */
export async function readOutputLoss(events: EventReader, updateId: string, stack: StackRef): Promise<string[]> {
  const urn = formatUrn({
    stack: stack.stack,
    project: stack.project,
    type: rootStackType,
    name: `${stack.project}-${stack.stack}`,
  });
  const selection = { beyond: Number.MAX_SAFE_INTEGER, newestFirst: true, urn, types: ['resOutputsEvent'] };
  for await (const [event] of events.read({ id: updateId, mayHaveRows: true }, selection, appetite))
    if (event) return event.bytes <= maxEventBytes ? outputLossOf(await textOf(event)) : [];
  return [];
}

/** The names of outputs that are in the old state of a resource and not in its new one. No value is looked at. */
export function outputLossOf(text: string): string[] {
  const { resOutputsEvent } = parsed(text);
  const metadata = objectOf(objectOf(resOutputsEvent)?.['metadata']);
  const before = objectOf(objectOf(metadata?.['old'])?.['outputs']);
  // Without a new state, the stack itself goes: that is for whoever looks at destroys.
  const next = objectOf(metadata?.['new']);
  if (!before || !next) return [];
  const after = objectOf(next['outputs']) ?? {};
  return Object.keys(before)
    .filter((name) => !Object.hasOwn(after, name))
    .map((name) => name.slice(0, maxNameChars).toWellFormed().replaceAll('\0', ''))
    .sort()
    .slice(0, maxNames);
}

/** As in `"a", "b" and 3 more`. */
export function listOutputs(names: readonly string[]): string {
  const told = names.slice(0, maxToldNames).map((name) => JSON.stringify(name));
  const more = names.length - told.length;
  return more > 0 ? `${told.join(', ')} and ${more} more` : told.join(', ');
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return objectOf(JSON.parse(text)) ?? {};
  } catch {
    return {};
  }
}
