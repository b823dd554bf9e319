import { randomUUID } from 'node:crypto';
import { serverSource } from '../../shared/audit/audit-event.ts';
import {
  BundleChangedError,
  findOverwritten,
  isLocked,
  isOurs,
  overwrittenText,
  pathOf,
  readThere,
  type StateThere,
  stateNames,
} from '../../shared/bundle/bundle-location.ts';
import type { BundledRow, BundleLocation, BundleRepository, DueRow } from '../../shared/bundle/bundle-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import { configFile, entryOf, historyOf, stateFile, TransferError, tagsFile } from '../../shared/diy/diy-layout.ts';
import { createExportedStackRepository } from '../../shared/diy/exported-stack-repository.ts';
import type { SecretsCrypter } from '../../shared/diy/secrets-crypter.ts';
import { exportStack } from '../../shared/diy/stack-exporter.ts';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { OperatorError } from '../../shared/platform/errors/errors.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import type { StateDocument } from '../../shared/state/state-reader.ts';

/** The kept versions of each stack in the bundle. */
const keptVersions = 10;

/** Files that the CLI adds to a file: the previous one, and the attributes that its store keeps of both. */
const cliSuffixes = ['', '.bak', '.attrs', '.bak.attrs'];

interface Parts {
  readonly context: Pick<AppContext, 'cipher' | 'db' | 'stacks' | 'states' | 'updates'>;
  readonly rows: BundleRepository;
  readonly crypter: SecretsCrypter;
  /** For the audit log. */
  readonly location: string;
  /** Holds the task's claim. A worker that has lost the claim confirms nothing. */
  readonly holder: string;
  readonly signal: AbortSignal;
}

/** The written bytes of the state; null if nothing was written. */
type Written = number | null;

/**
 * Writes and removes the files of single stacks. A mark is recorded before a write's first file, and confirmed after its last, so the file
 * of a killed or slow worker is recognized and written again. Files that people have changed are never overwritten.
 */
export class BundleWriter {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async write(folder: Folder, due: DueRow): Promise<Written> {
    const { context, rows, holder } = this.#parts;
    const stack = await context.stacks.findById(due.stackId);
    // The stack was renamed or deleted since. Another row is due.
    if (stack === null || !isAt(stack, due)) return null;
    const bundledVersion = due.bundledId === stack.id ? due.stackVersion : null;
    const isVersion = bundledVersion === stack.stackVersion;
    const checkpointId = bundledVersion === null ? null : await this.#findCheckpoint(stack, bundledVersion);
    const isCompleted = checkpointId !== null && checkpointId !== due.checkpointId;
    const isWritten = isVersion && !isCompleted && due.tags === stack.tags;
    // For example, an update that has only begun.
    if (isWritten && due.attempts.length === 0) {
      await rows.pass(due, holder, due.changedAt);
      return null;
    }
    // The removal of a former stack may have been interrupted.
    const there = await this.#assertUntouched(folder, due, due.bundledId === stack.id);
    if (there.length > 0) await assertNotOverwritten(folder, due, due.entry);
    if (isWritten && there.length === 1 && there[0]?.sha256 === due.sha256) {
      await rows.settle(due);
      if (due.isChanged) await rows.pass(due, holder, due.changedAt);
      return null;
    }
    // A version that was completed after it was written takes its entry in the history again.
    if (isCompleted && bundledVersion !== null) {
      const entry = due.entry === null ? null : String(BigInt(due.entry) - 1n);
      return this.#replace(folder, { ...due, entry }, stack, there, bundledVersion - 1);
    }
    return this.#replace(folder, due, stack, there, bundledVersion);
  }

  /** Removes the files of a stack that was deleted here, or has another name. Throws BundleChangedError. */
  async remove(folder: Folder, row: BundledRow): Promise<void> {
    // The state may be missing if this was interrupted before.
    await this.#assertUntouched(folder, row, false);
    const path = pathOf(row);
    // The state goes first: without it, the CLI does not list the stack.
    for (const name of [...stateNames(row), tagsFile(path)])
      for (const suffix of cliSuffixes) await folder.delete(name + suffix);
    await folder.delete(configFile(row));
    await this.#clearHistory(folder, row, 0);
    await this.#parts.rows.delete(row, this.#parts.holder);
  }

  async #replace(
    folder: Folder,
    due: DueRow,
    stack: StackRow,
    there: readonly StateThere[],
    bundledVersion: number | null,
  ): Promise<Written> {
    const { context, crypter, holder, location, rows, signal } = this.#parts;
    const { stackVersion } = stack;
    const mark = randomUUID();
    const begin = async (): Promise<void> => {
      if (!(await rows.begin(due, { stackId: due.bundledId ?? stack.id, mark, holder }))) throw new ClaimLostError();
    };
    await begin();
    // Before the state is read: a checkpoint that is replaced meanwhile is written again.
    const checkpointId = await this.#findCheckpoint(stack, stackVersion);
    if (bundledVersion === null) await this.#clearHistory(folder, due, 0);
    const oldest = await createExportedStackRepository(context.db).findFirstVersion(stack.id, keptVersions);
    let bytes = 0;
    const readState = async (): Promise<StateDocument> => {
      const state = await readNewest(context, stack);
      bytes = state.sizeBytes;
      return state;
    };
    const { newest, sha256 } = await exportStack(
      {
        ...{ context, folder, to: location, source: serverSource, history: keptVersions, signal },
        crypter: async () => crypter,
        part: {
          ...{ readState, mark, lastEntry: bundledVersion === null ? null : due.entry },
          fromVersion: oldest === null ? null : Math.max(oldest, (bundledVersion ?? 0) + 1),
          toVersion: stackVersion,
        },
        // A large state takes long. Another worker may have taken over, and a user may have begun to work in the bundle.
        beforeState: async () => {
          await begin();
          await this.#assertUntouched(folder, due, false);
        },
      },
      stack,
    );
    for (const { name } of there) if (name !== stateFile(pathOf(due))) await folder.delete(name);
    const entry = newest === 0n ? (bundledVersion === null ? null : due.entry) : String(newest);
    // This process may have been frozen after its last check.
    await assertNotOverwritten(folder, due, bundledVersion === null ? entry : due.entry);
    await this.#clearHistory(folder, due, keptVersions);
    const written = {
      stackId: stack.id,
      ...{ stackVersion, checkpointId },
      changedAt: due.changedAt,
      tags: stack.tags,
      entry,
      sha256,
      mark,
    };
    if (await rows.confirm(due, holder, written)) return bytes;
    await rows.doubt(due);
    throw new ClaimLostError();
  }

  /** Returns null if there is none, or it was deleted. A running update replaces only the stack's checkpoint. */
  async #findCheckpoint(stack: StackRow, version: number): Promise<string | null> {
    if (version === 0) return stack.checkpointId;
    return (await this.#parts.context.updates.findByVersion(stack.id, version))?.checkpointId ?? null;
  }

  /** Returns the state files, all of which workers have written. `isNeeded` means that a worker's file must exist. */
  async #assertUntouched(
    folder: Folder,
    known: BundleLocation & Pick<DueRow, 'attempts' | 'sha256'>,
    isNeeded: boolean,
  ): Promise<readonly StateThere[]> {
    if (await isLocked(folder, known)) throw new BundleChangedError('it is locked in the bundle');
    const there = await readThere(folder, known);
    if (there.some((file) => !isOurs(file, known)))
      throw new BundleChangedError('it was changed in the bundle: see holdfast bundle return');
    if (isNeeded && there.length === 0 && known.sha256 !== null && known.attempts.length === 0)
      throw new BundleChangedError('it was removed from the bundle');
    return there;
  }

  async #clearHistory(folder: Folder, where: BundleLocation, kept: number): Promise<void> {
    const files: { name: string; entry: bigint }[] = [];
    for await (const { name } of folder.list(historyOf(pathOf(where))))
      files.push({ name, entry: BigInt(entryOf(name) ?? -1) });
    const entries = [...new Set(files.map(({ entry }) => entry))].sort((a, b) => (a < b ? 1 : -1));
    const newest = new Set(entries.slice(0, kept));
    const names = new Set(files.map(({ name }) => name));
    for (const { entry, name } of files) {
      const isDouble = !name.endsWith('.gz') && names.has(`${name}.gz`);
      if (!newest.has(entry) || entry < 0n || isDouble) await folder.delete(name);
    }
  }
}

/** Throws BundleChangedError. */
async function assertNotOverwritten(folder: Folder, where: BundleLocation, entry: string | null): Promise<void> {
  const overwritten = await findOverwritten(folder, where, entry);
  if (overwritten !== null) throw new BundleChangedError(overwrittenText(where, overwritten));
}

/** Another worker has taken over. */
export class ClaimLostError extends OperatorError {
  override readonly name = 'ClaimLostError';

  constructor() {
    super('Another worker has taken over the bundle');
  }
}

/** Returns the state of the newest version or, for a stack without versions, its first state. */
async function readNewest({ states }: Parts['context'], stack: StackRow): Promise<StateDocument> {
  const state =
    stack.stackVersion > 0
      ? await states.readVersion(stack.id, stack.stackVersion)
      : ((await states.readHead(stack))?.state ?? null);
  if (state === null) throw new TransferError('it was deleted or renamed meanwhile');
  return state;
}

function isAt(stack: StackRow, { organization, project, stack: name }: BundleLocation): boolean {
  return stack.organization === organization && stack.project === project && stack.stack === name;
}
