import { createHash } from 'node:crypto';
import { entryOf, historyOf, locksOf, readText, stateFile, TransferError } from '../diy/diy-layout.ts';
import { readHistoryInfo } from '../diy/history-info.ts';
import { markOf } from '../diy/move-document.ts';
import type { Folder } from '../platform/blobs/folder.ts';
import type { Config } from '../platform/config/config.ts';
import { OperatorError } from '../platform/errors/errors.ts';
import { type BundleSecret, bundleSecretOf } from './bundle-key.ts';
import type { BundleLocation } from './bundle-repository.ts';

export interface BundleSettings {
  readonly location: string;
  readonly secret: BundleSecret;
}

export function bundleOf(config: Pick<Config, 'bundleUrl' | 'bundleKms' | 'secrets'>): BundleSettings | null {
  return config.bundleUrl === null ? null : { location: config.bundleUrl, secret: bundleSecretOf(config) };
}

/** The bundle contains something that must not be overwritten, or lacks something that it had. */
export class BundleChangedError extends OperatorError {
  override readonly name = 'BundleChangedError';
}

export function pathOf({ project, stack }: BundleLocation): string {
  return `${project}/${stack}`;
}

export interface StateThere {
  readonly name: string;
  readonly sha256: string;
  readonly mark: string | null;
}

/** Longer than the text before the mark of a state file. */
const headBytes = 2048;

/** A stack usually has one state file, or two if a user has also compressed it. */
export async function readThere(folder: Folder, where: BundleLocation): Promise<StateThere[]> {
  const found: StateThere[] = [];
  for (const name of stateNames(where)) {
    const file = await folder.open(name);
    if (file === null) continue;
    const hash = createHash('sha256');
    let head: Buffer = Buffer.alloc(0);
    for await (const chunk of file) {
      hash.update(chunk);
      if (head.length < headBytes) head = Buffer.concat([head, chunk.subarray(0, headBytes)]);
    }
    found.push({ name, sha256: hash.digest('hex'), mark: markOf(head) });
  }
  return found;
}

/** The CLI reads a state under these names. */
export function stateNames(where: BundleLocation): string[] {
  const name = stateFile(pathOf(where));
  return [name, `${name}.gz`, `${name}.zst`];
}

/** Whether a worker has written the state file. */
export function isOurs(
  { mark, sha256 }: StateThere,
  known: { readonly sha256: string | null; readonly attempts: readonly string[] },
): boolean {
  return sha256 === known.sha256 || (mark !== null && known.attempts.includes(mark));
}

/** Whether somebody works on the stack in the bundle. */
export async function isLocked(folder: Folder, where: BundleLocation): Promise<boolean> {
  for await (const _ of folder.list(locksOf(pathOf(where)))) return true;
  return false;
}

/**
 * Finds an update of the CLI after `entry`. If the state file is a worker's, this worker was frozen while it wrote, and has overwritten the
 * state of the update. Workers store the number of the version in their entries.
 */
export async function findOverwritten(
  folder: Folder,
  where: BundleLocation,
  entry: string | null,
): Promise<string | null> {
  const updates = new Map<string, string>();
  const states = new Set<string>();
  for await (const { name } of folder.list(historyOf(pathOf(where)))) {
    const id = entryOf(name);
    if (id === null || BigInt(id) <= BigInt(entry ?? 0)) continue;
    if (name.includes('.history.')) updates.set(id, name);
    else states.add(id);
  }
  for (const [id, name] of updates) if (states.has(id) && isOfCli(name, await readText(folder, name))) return id;
  return null;
}

/** Workers write no unreadable entries. */
function isOfCli(name: string, text: string | null): boolean {
  try {
    return text !== null && readHistoryInfo(name, text).version === null;
  } catch (error) {
    if (error instanceof TransferError) return true;
    throw error;
  }
}

export function overwrittenText(where: BundleLocation, entry: string): string {
  return `a worker wrote over the state of update ${entry} in the bundle: bring what it did into the stack here, then delete its checkpoint from ${historyOf(pathOf(where))}`;
}
