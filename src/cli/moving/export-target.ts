import { isLocked, readThere } from '../../shared/bundle/bundle-location.ts';
import { entryOf, historyOf, listFolder, metaFile, readText, TransferError } from '../../shared/diy/diy-layout.ts';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { bytesOf } from '../../shared/platform/bytes/byte-source.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';

/** Names the organization whose export the folder is. */
const noteFile = 'holdfast-export.json';

/**
 * Makes the folder readable for the CLI, and notes its organization. Throws TransferError if it has stacks that were not exported from the
 * organization.
 */
export async function openTarget(
  folder: Folder,
  { organization, to }: { readonly organization: string; readonly to: string },
): Promise<{ readonly isCaseless: boolean }> {
  const { stacks, strays } = await listFolder(folder);
  const note = JSON.stringify({ organization });
  if (stacks.length + strays.length > 0 && (await readText(folder, noteFile)) !== note)
    throw new TransferError(`${to} has stacks that are not of an export of ${organization}: name another folder`);
  await writeText(folder, noteFile, note);
  await writeText(folder, metaFile, 'version: 1\n');
  return { isCaseless: (await readText(folder, noteFile.toUpperCase())) !== null };
}

/** Stacks whose files would replace the files of an earlier stack if the folder ignores case. */
export function sameButForCase(names: readonly string[]): ReadonlySet<string> {
  const groups = Map.groupBy(names, (name) => name.toLowerCase());
  return new Set([...groups.values()].flatMap(([, ...others]) => others));
}

/** The note about the last export of a stack. */
interface Note {
  /** The exact name of the stack; absent in older notes. */
  readonly stack?: string;
  /** The id of the stack, by which a renamed stack is recognized; absent in older notes. */
  readonly id?: string;
  /** SHA-256 of the state files. */
  readonly states: readonly string[];
}

type ExportedRef = Pick<StackRow, 'id' | 'organization' | 'project' | 'stack'>;

/** Keeps an export from overwriting changes that the CLI has made to a stack in the folder. */
export class TargetGuard {
  readonly #folder: Folder;
  readonly #stack: ExportedRef;
  readonly #name: string;
  readonly #noteFile: string;

  constructor(folder: Folder, stack: ExportedRef) {
    this.#folder = folder;
    this.#stack = stack;
    this.#name = `${stack.project}/${stack.stack}`;
    this.#noteFile = `holdfast-export/${this.#name}.json`;
  }

  /** Notes to which stack the files belong, before the first of them is written. Throws TransferError. */
  async claim(): Promise<void> {
    await this.#note(await this.#assertUntouched());
  }

  /** Asserts that the CLI has not changed the stack. Throws TransferError. Returns the SHA-256 of the state files. */
  async #assertUntouched(): Promise<readonly string[]> {
    if (await isLocked(this.#folder, this.#stack)) throw new TransferError('it is locked in the folder');
    const newest = await this.#newestEntry();
    const there = (await readThere(this.#folder, this.#stack)).map(({ sha256 }) => sha256);
    const { id, stack = this.#name, states } = await this.#readNote();
    if (stack !== this.#name && id !== this.#stack.id && (newest !== null || there.length > 0))
      throw new TransferError(
        `another stack, ${stack}, has the same files there, where case makes no difference; if it is gone, delete its files`,
      );
    if (newest !== null && !isOfExport(await readText(this.#folder, newest)))
      throw new TransferError('it was updated in the folder since the last export');
    if (there.some((sha256) => !states.includes(sha256)))
      throw new TransferError('its state was changed in the folder since the last export');
    return there;
  }

  /** Called before a state with this hash becomes visible. Throws TransferError. */
  readonly beforeState = async (sha256: string): Promise<void> => {
    // Includes the present state, because this export may be killed now.
    await this.#note([sha256, ...(await this.#assertUntouched())]);
  };

  async #note(states: readonly string[]): Promise<void> {
    await writeText(this.#folder, this.#noteFile, JSON.stringify({ stack: this.#name, id: this.#stack.id, states }));
  }

  async #readNote(): Promise<Note> {
    const text = await readText(this.#folder, this.#noteFile);
    return text === null ? { states: [] } : (JSON.parse(text) as Note);
  }

  async #newestEntry(): Promise<string | null> {
    let newest: { readonly name: string; readonly entry: bigint } | null = null;
    const { project, stack } = this.#stack;
    for await (const { name } of this.#folder.list(historyOf(`${project}/${stack}`))) {
      const entry = BigInt(entryOf(name) ?? -1);
      if (name.includes('.history.json') && (newest === null || entry > newest.entry)) newest = { name, entry };
    }
    return newest?.name ?? null;
  }
}

/** Whether an export wrote the update: in a folder, the CLI does not number updates. */
function isOfExport(text: string | null): boolean {
  const { version } = JSON.parse(text ?? '{}') as { version?: number };
  return version !== undefined && version > 0;
}

async function writeText(folder: Folder, name: string, text: string): Promise<void> {
  await folder.write(name, bytesOf(Buffer.from(text))());
}
