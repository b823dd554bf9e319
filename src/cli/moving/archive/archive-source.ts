import { TransferError } from '../../../shared/diy/diy-layout.ts';
import type { Folder } from '../../../shared/platform/blobs/folder.ts';
import { OperatorError } from '../../../shared/platform/errors/errors.ts';
import { isSegmentName } from '../../../shared/stacks/names.ts';
import type {
  MovingSource,
  SourceContent,
  SourceEntry,
  SourceListing,
  SourcePreview,
  SourceState,
} from '../moving-source.ts';
import { describeRemainder } from './archive-export.ts';
import { ArchiveDamagedError, readArchived, readJson, readManifest, readStored } from './archive-files.ts';
import { type ArchiveAccess, type ArchiveKey, openKey } from './archive-key.ts';
import {
  type ArchivedFile,
  type ArchivedUpdate,
  type ArchivePage,
  indexFile,
  type Manifest,
  type ManifestStack,
  manifestFile,
  PageContent,
  runFile,
  StackIndex,
  stacksFolder,
} from './archive-layout.ts';
import { readArchivedEvents } from './archived-events.ts';
import { infoOf } from './archived-info.ts';

export class ArchiveSource implements MovingSource {
  readonly location: string;
  readonly #folder: Folder;
  readonly #access: ArchiveAccess;

  constructor(folder: Folder, location: string, access: ArchiveAccess) {
    this.#folder = folder;
    this.location = location;
    this.#access = access;
  }

  async list(): Promise<SourceListing> {
    const manifest = await readManifest(this.#folder);
    if (manifest === null) throw new TransferError(`There is no archive in ${this.location}: it needs ${manifestFile}`);
    if (!manifest.isComplete)
      throw new TransferError(`The export to ${this.location} has not ended: run it again to continue`);
    const keys = await Promise.all(manifest.keys.map((key) => openKey(key, this.#access)));
    const stacks = manifest.stacks.map((stack) => ({
      ...{ name: `${stack.project}/${stack.stack}`, project: stack.project, stack: stack.stack },
      open: () => this.#open(stack, keys),
    }));
    const { missing, organization, remainder } = manifest;
    const strays = await this.#listStrays(manifest);
    const remarks = [
      `The archive of ${organization} was exported at ${manifest.exportedAt} by release ${manifest.release}.`,
    ];
    const leftOut = [
      ...strays.map((name) => `${name} is left out: the archive does not name it`),
      describeRemainder(remainder),
    ].filter((line) => line !== '');
    const gaps = missing.map(({ reason, stack }) => ({
      name: stack,
      text: `${stack} is not completely in the archive: ${reason}`,
    }));
    return { stacks: stacks.sort((a, b) => (a.name < b.name ? -1 : 1)), strays, remarks, leftOut, gaps };
  }

  close(): Promise<void> {
    return this.#folder.close();
  }

  /** Files of stacks that are not in the manifest. */
  async #listStrays({ stacks }: Manifest): Promise<string[]> {
    const ids = new Set(stacks.map(({ id }) => id));
    const found = new Set<string>();
    for await (const { name } of this.#folder.list('')) {
      const [, id] = name.startsWith(stacksFolder) ? name.split('/') : [];
      if (id === undefined ? name !== manifestFile && name !== runFile : !ids.has(id))
        found.add(id === undefined ? name : stacksFolder + id);
    }
    return [...found].sort();
  }

  async #open(stack: ManifestStack, keys: readonly ArchiveKey[]): Promise<SourceContent> {
    const folder = this.#folder;
    const index = await readJson(folder, stack.index, StackIndex);
    if (index.id !== stack.id || stack.index.name !== indexFile(stack.id))
      throw new ArchiveDamagedError(`${stack.index.name} belongs to another stack`);
    const { history, order, withoutState } = await readHistory(folder, index);
    const previews = await readPreviews(folder, index, history);
    const newest = history.at(-1);
    const state = newest?.state ?? stateOf(folder, index.initialState, `the state of ${stack.project}/${stack.stack}`);
    const notes = withoutState.map((reason) => `without ${reason}`);
    if (newest?.warning !== undefined) notes.push(newest.warning);
    if (index.isBusy) notes.push('an update of it ran during the export, and comes with the next one');
    return {
      state: { ...state, modifiedAt: new Date() },
      mayHaveUnrecordedState: newest === undefined,
      ...{ history, order, previews, notes, fault: null, isBusy: false },
      formerNames: index.formerNames.filter(
        ({ project, stack: name }) => isSegmentName(project) && isSegmentName(name),
      ),
      tags: async () => JSON.parse(index.tags) as object,
      check: (entries) => faultOf(folder, index, entries),
      decrypt: async (ciphertexts) => ciphertexts.map((each) => decryptWith(keys, stack.id, each)),
    };
  }
}

interface WithFiles {
  readonly files: readonly ArchivedFile[];
}
type ArchivedEntry = SourceEntry & WithFiles & { readonly number: number; readonly warning: string | undefined };

/** Versions with their states, oldest first, and why others have no state. Throws ArchiveDamagedError. */
async function readHistory(
  folder: Folder,
  index: StackIndex,
): Promise<{ history: readonly ArchivedEntry[]; order: readonly string[]; withoutState: readonly string[] }> {
  const history: ArchivedEntry[] = [];
  const order: string[] = [];
  const withoutState = new Map<string, number[]>();
  const pages = new Pages(folder);
  let last = 0;
  for (const page of index.versions) {
    for (const [at, update] of (await pages.read(page)).entries()) {
      const version = update.version ?? 0;
      if (version <= last)
        throw new ArchiveDamagedError(`${page.name} is not in order: version ${version} follows ${last}`);
      last = version;
      order.push(update.id);
      const fault = update.stateFault ?? 'it has no state';
      if (update.state !== null) history.push(entryOf(folder, pages, { page, at }, update));
      else withoutState.set(fault, [...(withoutState.get(fault) ?? []), version]);
    }
  }
  const reasons = [...withoutState].map(([fault, versions]) =>
    versions.length > 1 ? `the states of ${versions.length} versions: ${fault}` : `version ${versions[0]}: ${fault}`,
  );
  return { history, order, withoutState: reasons };
}

/** Previews, oldest first. Throws ArchiveDamagedError. */
async function readPreviews(
  folder: Folder,
  index: StackIndex,
  history: readonly ArchivedEntry[],
): Promise<readonly (SourcePreview & WithFiles)[]> {
  const pages = new Pages(folder);
  const found: (Omit<SourcePreview, 'before'> & WithFiles & { readonly number: number })[] = [];
  for (const page of index.previews)
    for (const [at, { baseVersion, events, id, number }] of (await pages.read(page)).entries())
      found.push({
        ...{ id, number, baseVersion },
        info: async () => infoOf((await pages.read(page))[at] as ArchivedUpdate),
        events: events === null ? null : () => readArchivedEvents(folder, events),
        files: events === null ? [] : [events],
      });
  let next = 0;
  return found
    .sort((a, b) => a.number - b.number)
    .map((preview) => {
      while (next < history.length && (history[next]?.number ?? 0) < preview.number) next++;
      return { ...preview, before: history[next]?.id ?? null };
    });
}

/** Pages of updates; only the last one is kept, because the settings of all updates may be large. */
class Pages {
  readonly #folder: Folder;
  #last: { readonly name: string; readonly updates: Promise<readonly ArchivedUpdate[]> } | null = null;

  constructor(folder: Folder) {
    this.#folder = folder;
  }

  read(page: ArchivePage): Promise<readonly ArchivedUpdate[]> {
    if (this.#last?.name === page.name) return this.#last.updates;
    const updates = readJson(this.#folder, page, PageContent).then((content) => content.updates);
    this.#last = { name: page.name, updates };
    return updates;
  }
}

function entryOf(
  folder: Folder,
  pages: Pages,
  { at, page }: { readonly page: ArchivePage; readonly at: number },
  { events, id, number, state, stateWarning, version }: ArchivedUpdate,
): ArchivedEntry {
  return {
    ...{ id, number, updateId: id, stackVersion: version, warning: stateWarning },
    state: stateOf(folder, state, ''),
    info: async () => infoOf((await pages.read(page))[at] as ArchivedUpdate),
    events: events === null ? null : () => readArchivedEvents(folder, events),
    files: [state, events].filter((file) => file !== null),
  };
}

function stateOf(folder: Folder, file: ArchivedFile | null, name: string): SourceState {
  const nothing = async function* (): AsyncGenerator<Buffer> {};
  if (file === null) return { name, bytes: 0, document: nothing };
  return { name: file.name, bytes: file.bytes, document: () => readArchived(folder, file) };
}

/** Reads all files of the entries, so that no part of a damaged stack is imported. */
async function faultOf(folder: Folder, index: StackIndex, entries: readonly object[]): Promise<string | null> {
  const own = `${stacksFolder}${index.id}/`;
  const initial = index.initialState === null ? [] : [index.initialState];
  try {
    for (const file of [...initial, ...entries.flatMap((entry) => (entry as WithFiles).files)]) {
      if (!file.name.startsWith(own)) return `${file.name} belongs to another stack`;
      for await (const _ of readStored(folder, file));
    }
    return null;
  } catch (error) {
    if (error instanceof OperatorError) return error.message;
    throw error;
  }
}

function decryptWith(keys: readonly ArchiveKey[], stackId: string, ciphertext: string): Buffer | null {
  for (const key of keys) {
    const plaintext = key.decrypt(stackId, ciphertext);
    if (plaintext !== null) return plaintext;
  }
  return null;
}
