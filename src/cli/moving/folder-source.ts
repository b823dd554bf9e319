import { type FolderStack, listFolder, readBytes, readText, TransferError } from '../../shared/diy/diy-layout.ts';
import { readHistoryInfo } from '../../shared/diy/history-info.ts';
import { documentOfCheckpoint, initialMark, markOf } from '../../shared/diy/move-document.ts';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import type { MovingSource, SourceContent, SourceState } from './moving-source.ts';
import { isDamage } from './source-damage.ts';

/** Longer than the text before the mark of a state file. */
const headBytes = 2048;

export class FolderSource implements MovingSource {
  readonly location: string;
  readonly #folder: Folder;

  constructor(folder: Folder, location: string) {
    this.#folder = folder;
    this.location = location;
  }

  async list() {
    const { stacks, strays } = await listFolder(this.#folder);
    if (stacks.length === 0)
      throw new TransferError(`There are no stacks in ${this.location}: it needs a folder .pulumi/stacks`);
    const opened = stacks.map((each) => ({
      ...{ name: each.name, project: each.project, stack: each.stack },
      open: () => openFolderStack(this.#folder, each),
    }));
    const gaps = strays.map((name) => ({
      name,
      text: `${name} is left out: it is not in the layout of this folder (pulumi state upgrade)`,
    }));
    return { stacks: opened, strays, remarks: [], leftOut: [], gaps };
  }

  close(): Promise<void> {
    return this.#folder.close();
  }
}

export async function openFolderStack(folder: Folder, stack: FolderStack): Promise<SourceContent> {
  const { history, locks, state, tags, withoutState } = stack;
  const stateOf = ({ bytes, name }: { readonly name: string; readonly bytes: number }): SourceState => ({
    ...{ name, bytes },
    document: () => documentOfCheckpoint(() => readBytes(folder, name)),
  });
  return {
    state: { ...stateOf(state), modifiedAt: state.modifiedAt },
    // `pulumi state` and `pulumi stack import` record no update.
    mayHaveUnrecordedState: true,
    isInitial: history.length === 0 && (await readMark(folder, state.name)) === initialMark,
    history: history.map(({ id, state: left, update }) => ({
      ...{ id, stackVersion: null, updateId: null, state: stateOf(left), events: null },
      info: async () => readHistoryInfo(update.name, (await readText(folder, update.name)) ?? ''),
    })),
    notes: withoutState > 0 ? [`without ${withoutState} updates: the source lacks their states`] : [],
    fault: locks.length > 0 ? await describeLock(folder, locks[0] as string) : null,
    isBusy: locks.length > 0,
    tags: async () => {
      const text = tags === null ? null : await readText(folder, tags.name);
      return text === null ? {} : tagsIn(tags?.name ?? '', text);
    },
    ...{ check: null, decrypt: null },
  };
}

/** Throws TransferError, and SyntaxError. */
function tagsIn(name: string, text: string): object {
  const file: unknown = JSON.parse(text);
  const tags: unknown = typeof file === 'object' && file !== null ? ((file as { tags?: unknown }).tags ?? {}) : null;
  if (typeof tags !== 'object' || tags === null) throw new TransferError(`${name} is not a file of tags`);
  return tags;
}

/** Returns null if the file has no mark, or is damaged. */
async function readMark(folder: Folder, name: string): Promise<string | null> {
  let head: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of readBytes(folder, name)) {
      head = Buffer.concat([head, chunk.subarray(0, headBytes)]);
      if (head.length >= headBytes) break;
    }
  } catch (error) {
    // Damage of the state is reported where it is read.
    if (!isDamage(error)) throw error;
  }
  return markOf(head);
}

async function describeLock(folder: Folder, name: string): Promise<string> {
  let who = '';
  try {
    const { hostname, timestamp, username } = JSON.parse((await readText(folder, name)) ?? '{}');
    who = ` by ${username}@${hostname} since ${timestamp}`;
  } catch {
    // The lock counts, whatever it contains.
  }
  return `it is locked${who}: wait for the update, or end it with \`pulumi cancel\``;
}
