import { pipeline, Readable } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { parse } from 'yaml';
import type { Folder, FolderFile } from '../platform/blobs/folder.ts';
import { OperatorError } from '../platform/errors/errors.ts';
import { inSlices } from '../platform/slices/slices.ts';

/** The files of a DIY backend (pkg/backend/diy). A `path` is `project/stack`. */
export const root = '.pulumi';
export const metaFile = `${root}/meta.yaml`;
const stacksFolder = `${root}/stacks/`;
const historyFolder = `${root}/history/`;
const locksFolder = `${root}/locks/`;

/** The organization of every stack in a DIY backend. */
export const diyOrganization = 'organization';

/** The CLI may also have compressed it. */
export function stateFile(path: string): string {
  return `${stacksFolder}${path}.json`;
}

export function tagsFile(path: string): string {
  return `${stacksFolder}${path}.pulumi-tags`;
}

export function historyOf(path: string): string {
  return `${historyFolder}${path}/`;
}

export function locksOf(path: string): string {
  return `${locksFolder}${diyOrganization}/${path}/`;
}

/** The CLI reads other files beside it. */
export function configFile({ project, stack }: { readonly project: string; readonly stack: string }): string {
  return `config/${project}/Pulumi.${stack}.yaml`;
}

export function entryOf(file: string): string | null {
  return /-(\d+)\.(?:history|checkpoint)\.json(?:\.gz|\.zst)?$/.exec(file)?.[1] ?? null;
}

export class TransferError extends OperatorError {
  override readonly name = 'TransferError';
}

/** An update in the history of a stack, and the resulting state. */
export interface HistoryEntry {
  /** The time in its name, in ns: its identity and its position in the history. */
  readonly id: string;
  readonly update: FolderFile;
  readonly state: FolderFile;
}

export interface FolderStack {
  /** `project/stack`, or only the stack in the layout without projects. */
  readonly name: string;
  readonly project: string | null;
  readonly stack: string;
  readonly state: FolderFile;
  readonly tags: FolderFile | null;
  /** Oldest first. */
  readonly history: readonly HistoryEntry[];
  /** Updates whose state is missing. */
  readonly withoutState: number;
  readonly locks: readonly string[];
}

export interface FolderListing {
  readonly stacks: readonly FolderStack[];
  /** Files that look like stacks of the other layout. */
  readonly strays: readonly string[];
}

interface Found {
  state: FolderFile | null;
  tags: FolderFile | null;
  readonly updates: Map<string, FolderFile>;
  readonly states: Map<string, FolderFile>;
  readonly locks: string[];
}

export async function listFolder(folder: Folder): Promise<FolderListing> {
  const hasProjects = (await readLayoutVersion(folder)) === 1;
  const depth = hasProjects ? 2 : 1;
  const found = new Map<string, Found>();
  const strays: string[] = [];
  const at = (name: string): Found => {
    const entry = found.get(name) ?? { state: null, tags: null, updates: new Map(), states: new Map(), locks: [] };
    found.set(name, entry);
    return entry;
  };
  for await (const file of folder.list(stacksFolder)) {
    const parts = file.name.slice(stacksFolder.length).split('/');
    const [, stack, kind] = /^(.+?)(\.json|\.pulumi-tags)(\.gz|\.zst)?$/.exec(parts.at(-1) ?? '') ?? [];
    if (stack === undefined) continue;
    if (parts.length !== depth) {
      if (kind === '.json') strays.push(file.name);
      continue;
    }
    const entry = at([...parts.slice(0, -1), stack].join('/'));
    if (kind === '.pulumi-tags') entry.tags = file;
    // If a state exists in two encodings, the CLI reads the newer file.
    else if (entry.state === null || entry.state.modifiedAt < file.modifiedAt) entry.state = file;
  }
  for await (const file of folder.list(historyFolder)) {
    const parts = file.name.slice(historyFolder.length).split('/');
    const name = parts.slice(0, -1).join('/');
    const [, id, kind] = /-(\d+)\.(history|checkpoint)\.json(?:\.gz|\.zst)?$/.exec(file.name) ?? [];
    if (parts.length !== depth + 1 || id === undefined) continue;
    at(name)[kind === 'history' ? 'updates' : 'states'].set(id, file);
  }
  for await (const file of folder.list(locksFolder)) {
    const parts = file.name.slice(locksFolder.length).split('/').slice(0, -1);
    if (hasProjects && parts[0] === diyOrganization) parts.shift();
    at(parts.join('/')).locks.push(file.name);
  }
  const stacks = [...found].flatMap(([name, entry]) =>
    entry.state ? [toStack(name, entry.state, entry, hasProjects)] : [],
  );
  return { stacks: stacks.sort((a, b) => (a.name < b.name ? -1 : 1)), strays };
}

function toStack(name: string, state: FolderFile, found: Found, hasProjects: boolean): FolderStack {
  const { locks, states, tags, updates } = found;
  const parts = name.split('/');
  const ids = [...updates.keys()].sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
  const history = ids.flatMap((id): HistoryEntry[] => {
    const left = states.get(id);
    return left ? [{ id, update: updates.get(id) as FolderFile, state: left }] : [];
  });
  return {
    ...{ name, state, tags, locks, history },
    project: hasProjects ? (parts[0] as string) : null,
    stack: parts.at(-1) as string,
    withoutState: ids.length - history.length,
  };
}

/** 1 is the layout with projects. */
async function readLayoutVersion(folder: Folder): Promise<number> {
  const text = await readText(folder, metaFile);
  if (text === null) return 0;
  const version: unknown = (parse(text) as { version?: unknown } | null)?.version;
  if (version === 0 || version === 1) return version;
  throw new TransferError(`${metaFile} names version ${String(version)} of the layout; versions 0 and 1 are known`);
}

const maxTextBytes = 64 * 1024 * 1024;

export async function readText(folder: Folder, name: string): Promise<string | null> {
  const file = await folder.open(name);
  if (file === null) return null;
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of decompressed(file)) {
    bytes += part.length;
    if (bytes > maxTextBytes) throw new TransferError(`${name} is larger than ${maxTextBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

/** Throws TransferError if the file is gone. */
export async function* readBytes(folder: Folder, name: string): AsyncGenerator<Buffer> {
  const file = await folder.open(name);
  if (file === null) throw new TransferError(`${name} was deleted meanwhile`);
  yield* inSlices(decompressed(file));
}

/** Recognizes gzip and zstd by the first bytes, like the CLI. */
export async function* decompressed(file: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const chunks = file[Symbol.asyncIterator]();
  const head: Buffer[] = [];
  let bytes = 0;
  while (bytes < 4) {
    const step = await chunks.next();
    if (step.done === true) break;
    head.push(step.value);
    bytes += step.value.length;
  }
  const first = Buffer.concat(head);
  const whole = async function* (): AsyncGenerator<Buffer> {
    try {
      yield first;
      for (let step = await chunks.next(); step.done !== true; step = await chunks.next()) yield step.value;
    } finally {
      await chunks.return?.();
    }
  };
  const isGzip = first[0] === 0x1f && first[1] === 0x8b;
  const isZstd = bytes >= 4 && first.readUInt32LE(0) === 0xfd2fb528;
  if (!isGzip && !isZstd) {
    yield* whole();
    return;
  }
  const decoder = isGzip ? createGunzip({ chunkSize: 128 * 1024 }) : createZstdDecompress({ chunkSize: 128 * 1024 });
  const stream = pipeline(Readable.from(whole()), decoder, () => {});
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } finally {
    stream.destroy();
  }
}
