import { scanMembers, sliceOf } from '../../../../platform/json/json-text.ts';
import { type ResourceText, readResource } from '../../../deployments/resource.ts';
import { parseUrn } from '../../../deployments/urn.ts';
import type { EntryFields } from './entry-fields.ts';
import { JournalReplayError } from './replay-error.ts';
import type { ReplayState } from './replay-state.ts';

const migrationVersion = 2;
/** Twice the length of an item of a layout as the CLI writes it. */
const maxItemBytes = 64;

type Migrated = Pick<
  ReplayState,
  'base' | 'added' | 'removed' | 'markedDelete' | 'markedPendingReplacement' | 'swapped'
>;

/** A position in the old base, or in the states that the entry inserts. */
type LayoutItem = { readonly base: number } | { readonly inserted: number };

/** Keyed by the position in the base, or by the operation that added the resource. */
type Patches = ReadonlyMap<number, ResourceText>;

/**
 * Applies an entry that a program's `stateMigrations` cause. Its `layout` lists the resources of the new base, taken from the old base and
 * the entry's `states`. Its patches replace resources whose references changed. References of earlier entries to positions in the old base
 * then refer to the new one. Does not change `state`, but returns the changes. Throws JournalReplayError.
 *
 * Same as applyStateMigration in Pulumi's pkg/backend/journal_state_migration.go, except that the integrity of the whole result is not
 * checked. It is not checked after other entries either, and a state that the engine has left unsound is still the newest one.
 */
export function migrateState(state: ReplayState, fields: EntryFields): Migrated {
  const { base } = state;
  if (fields.requiredInteger('version') !== migrationVersion)
    throw fields.malformed(`A migration has version ${migrationVersion}`);
  const inserted = readInserted(state, fields);
  const counts = { base: base.resources.length, inserted: inserted.length };
  const layout = readLayout(fields, counts);
  const positions = placeItems(layout, counts, fields);
  const basePatches = readPatches(fields, 'baseStatePatches', 'index', (position) => positions.has(position));
  const added = [...state.added];
  const addedAt = (operationId: number): number => state.addedBy.get(operationId) ?? -1;
  const isAdded = (operationId: number): boolean => Boolean(added[addedAt(operationId)]);
  const addedPatches = readPatches(fields, 'newStatePatches', 'operationID', isAdded);
  if (base.pendingOperations.length > 0 || [...state.open.values()].some((operation) => operation !== null))
    throw invalid(fields, 'migrates the state while operations are pending');
  if (inserted.length === 0) throw invalid(fields, 'migrates the state without a new resource');

  for (const [operationId, resource] of addedPatches) added[addedAt(operationId)] = resource;
  const resources = layout.map((item) =>
    'base' in item ? (basePatches.get(item.base) ?? base.resources[item.base]) : inserted[item.inserted],
  ) as ResourceText[];
  const moved = (marked: ReadonlySet<number>): Set<number> =>
    new Set([...marked].map((position) => positions.get(position)).filter((position) => position !== undefined));
  return {
    base: { ...base, resources },
    added,
    removed: moved(state.removed),
    markedDelete: moved(state.markedDelete),
    markedPendingReplacement: moved(state.markedPendingReplacement),
    swapped: new Map(
      [...state.swapped].flatMap(([position, resource]): [number, ResourceText][] => {
        const to = positions.get(position);
        // A patch includes earlier swaps of the resource.
        return to === undefined || basePatches.has(position) ? [] : [[to, resource]];
      }),
    ),
  };
}

interface Counts {
  readonly base: number;
  readonly inserted: number;
}

/** Keyed by old position. Each resource may be placed once; each inserted one must be placed. */
function placeItems(layout: readonly LayoutItem[], counts: Counts, fields: EntryFields): ReadonlyMap<number, number> {
  const positions = new Map<number, number>();
  const placed = new Set<number>();
  layout.forEach((item, at) => {
    const [index, count, isRepeated] =
      'base' in item
        ? [item.base, counts.base, positions.has(item.base)]
        : [item.inserted, counts.inserted, placed.has(item.inserted)];
    if (index >= count)
      throw invalid(fields, `item ${at} of "layout" refers to resource ${index}, but there are ${count}`);
    if (isRepeated) throw invalid(fields, `item ${at} of "layout" repeats a resource`);
    if ('base' in item) positions.set(index, at);
    else placed.add(index);
  });
  if (placed.size !== counts.inserted)
    throw invalid(fields, `"layout" contains ${placed.size} of ${counts.inserted} new resources`);
  return positions;
}

function readLayout(fields: EntryFields, { base, inserted }: Counts): LayoutItem[] {
  const text = fields.raw('layout') ?? Buffer.from('[]');
  // Parsed in one piece: it has an item for each resource of the state, and must therefore not have many more.
  if (text.length > maxItemBytes * (base + inserted + 1)) throw invalid(fields, '"layout" is too long');
  const items: unknown = JSON.parse(text.toString('utf8'));
  if (!Array.isArray(items)) throw fields.malformed('"layout" is not a list');
  return items.map((item, at) => {
    const { baseIndex, stateIndex } = Object(item) as Record<string, unknown>;
    const index = baseIndex ?? stateIndex;
    const isOne = (baseIndex ?? null) === null || (stateIndex ?? null) === null;
    if (!isOne || !Number.isSafeInteger(index) || (index as number) < 0)
      throw fields.malformed(`Item ${at} of "layout" does not refer to one resource`);
    return index === baseIndex ? { base: index as number } : { inserted: index as number };
  });
}

/** Each element names, in `key`, the resource that it replaces. */
function readPatches(fields: EntryFields, list: string, key: string, exists: (of: number) => boolean): Patches {
  const patches = new Map<number, ResourceText>();
  fields.elements(list, (text) => {
    const members = scanMembers(text);
    const [keySpan, stateSpan] = [members?.get(key), members?.get('state')];
    const of = keySpan?.kind === 'number' ? Number(sliceOf(text, keySpan).toString('latin1')) : -1;
    if (!Number.isSafeInteger(of) || of < 0 || stateSpan?.kind !== 'object')
      throw fields.malformed(`An element of "${list}" has no "${key}" or no "state"`);
    if (!exists(of)) throw invalid(fields, `"${list}" has ${key} ${of}, which does not exist`);
    if (patches.has(of)) throw invalid(fields, `"${list}" has ${key} ${of} twice`);
    patches.set(of, readResource(sliceOf(text, stateSpan)));
  });
  return patches;
}

/** Rejects a resource that no program could have registered. */
function readInserted(state: ReplayState, fields: EntryFields): ResourceText[] {
  const urns = new Set<string>();
  let extensions: ReadonlySet<string> | undefined;
  const hasExtension = (reference: string): boolean => {
    extensions ??= knownExtensions(state);
    return extensions.has(reference);
  };
  return fields.elements('states', (text, at) => {
    const members = scanMembers(text);
    if (!members) throw fields.malformed(`Element ${at} of "states" is not an object`);
    const valueAt = (name: string): unknown => {
      const span = members.get(name);
      return span && JSON.parse(sliceOf(text, span).toString('utf8'));
    };
    const urn = String(valueAt('urn') ?? '');
    const type = parseUrn(urn)?.type;
    const reference = valueAt('extensionRef');
    const flaw =
      (type === undefined && 'has no valid URN') ||
      (type?.slice(type.lastIndexOf('$') + 1) !== valueAt('type') && 'has another type than its URN') ||
      (valueAt('delete') === true && 'is marked for deletion') ||
      (Boolean(valueAt('viewOf')) && 'is a view') ||
      (valueAt('custom') === true && !valueAt('id') && 'has no id') ||
      (Boolean(reference) && !hasExtension(String(reference)) && 'refers to an unknown extension') ||
      (urns.has(urn) && 'has the URN of an earlier one');
    if (flaw) throw invalid(fields, `element ${at} of "states" ${flaw}`);
    urns.add(urn);
    return readResource(text);
  });
}

function knownExtensions({ base, extensions }: ReplayState): ReadonlySet<string> {
  const ofBase = scanMembers(base.members.get('extensions') ?? Buffer.from('{}'));
  return new Set([...extensions.keys(), ...(ofBase?.keys() ?? [])]);
}

function invalid(fields: EntryFields, message: string): JournalReplayError {
  return new JournalReplayError('invalid-migration', message, fields.sequenceId);
}
