import type { AuditSource } from '../../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../../shared/audit/audit-repository.ts';
import type { AppContext } from '../../../shared/context.ts';
import { reencryptConfig } from '../../../shared/diy/history-info.ts';
import { type DocumentSecrets, type Reencrypt, reencryptDocument } from '../../../shared/diy/reencrypt-document.ts';
import { EventsDamagedError } from '../../../shared/events/event-segments.ts';
import type { Folder } from '../../../shared/platform/blobs/folder.ts';
import { formatStackRef } from '../../../shared/stacks/names.ts';
import type { StackRow } from '../../../shared/stacks/stack-repository.ts';
import { DocumentDamagedError } from '../../../shared/state/checkpoints/document-reader.ts';
import { StateDeletedError } from '../../../shared/state/retention/deleted-errors.ts';
import type { StateDocument } from '../../../shared/state/state-reader.ts';
import type { ArchiveClaim } from './archive-claim.ts';
import { writeArchived, writeJson } from './archive-files.ts';
import type { ArchiveKey } from './archive-key.ts';
import {
  type ArchiveCounts,
  type ArchivedFile,
  type ArchivedUpdate,
  type ArchivePage,
  eventsFile,
  indexFile,
  pageFile,
  type StackIndex,
  stateFile,
} from './archive-layout.ts';
import { archivedEvents } from './archived-events.ts';
import { type ArchivedUpdateRow, createArchivedStackRepository } from './archived-stack-repository.ts';
import { deletedFault, withoutEvents, withoutState } from './unreadable-parts.ts';
import { readWritten, type Written } from './written-parts.ts';

interface ArchiverParts {
  readonly context: AppContext;
  readonly folder: Folder;
  readonly key: ArchiveKey;
  /** Ids of all keys of the archive. */
  readonly keyIds: ReadonlySet<string>;
  readonly claim: ArchiveClaim;
  /** The operator who exports, for the audit log. */
  readonly source: AuditSource;
  /** For the audit log. */
  readonly to: string;
  readonly onVersion: (count: number) => void;
  readonly pageRows: number;
}

export interface ArchivedStack {
  readonly index: ArchivedFile;
  readonly counts: ArchiveCounts;
  readonly notes: readonly string[];
  /** Versions that this export has added. */
  readonly added: number;
}

interface WrittenState {
  readonly file: ArchivedFile | null;
  readonly fault: string | null;
  readonly warning: string | null;
}

const without = (fault: string | null): WrittenState => ({ file: null, fault, warning: null });

/**
 * Writes all missing parts of a stack. Pages are added, and the index that lists them is replaced after each page, so an interrupted export
 * continues where it was.
 */
export class StackArchiver {
  readonly #parts: ArchiverParts;
  readonly #stack: StackRow;
  readonly #notes: string[] = [];
  /** Whether the decryption was recorded in the audit log. */
  #isAudited = false;
  #had = 0;
  #latest: ArchivedStack | null = null;

  constructor(parts: ArchiverParts, stack: StackRow) {
    this.#parts = parts;
    this.#stack = stack;
  }

  /** According to the last written index; null if none was written. */
  get latest(): ArchivedStack | null {
    return this.#latest;
  }

  async run(): Promise<ArchivedStack> {
    const { context, pageRows, to } = this.#parts;
    const { id, isImportUnfinished, organization } = this.#stack;
    if (isImportUnfinished) this.#notes.push('its import has not ended, so its newest state is an old one');
    const details = { stackId: id, to };
    const event = { action: 'stack.export', organization, object: formatStackRef(this.#stack), details } as const;
    await createAuditRepository(context.db).insert(this.#parts.source, event);
    const written = await readWritten(this.#parts, id, this.#notes);
    this.#had = countsOf(written.versions).versions;
    this.#parts.onVersion(this.#had);
    const rows = createArchivedStackRepository(context.db);
    for (;;) {
      const page = await rows.listVersions(id, written.lastVersion, pageRows);
      if (page.length > 0) await this.#writePage('versions', written, page);
      if (page.length < pageRows) break;
    }
    for (let after = 0; ; ) {
      const page = await rows.listPreviews(id, after, pageRows);
      const missing = page.filter((row) => !written.previewIds.has(row.id));
      if (missing.length > 0) await this.#writePage('previews', written, missing);
      if (page.length < pageRows) break;
      after = (page.at(-1) as ArchivedUpdateRow).number;
    }
    // Without its own state, an empty stack would lack the state that it was created with.
    const initial = written.versions.length === 0 ? await this.#writeInitialState() : null;
    return this.#writeIndex(written, initial);
  }

  async #writePage(of: 'versions' | 'previews', written: Written, rows: readonly ArchivedUpdateRow[]): Promise<void> {
    const { folder, key } = this.#parts;
    const updates: ArchivedUpdate[] = [];
    let [events, bytes] = [0, 0];
    for (const row of rows) {
      const state = row.stackVersion === null ? without(null) : await this.#writeVersion(row);
      const engine = row.areEventsDeleted ? { file: null, count: 0 } : await this.#writeEvents(row);
      updates.push({
        ...(await this.#updateOf(row, state, engine.file)),
        ...(engine.fault === undefined ? {} : { eventsFault: engine.fault }),
      });
      events += engine.count;
      bytes += (state.file?.bytes ?? 0) + (engine.file?.bytes ?? 0);
      if (of === 'versions') {
        written.lastVersion = row.stackVersion ?? written.lastVersion;
        this.#parts.onVersion(1);
      }
    }
    const at = written[of].reduce((sum, page) => sum + page[of], 0) + 1;
    const file = await writeJson(folder, pageFile(this.#stack.id, of, at), { updates, key: key.id });
    const counts = { versions: 0, previews: 0, [of]: rows.length, events, bytes: bytes + file.bytes };
    written[of].push({ ...counts, ...file });
    await this.#writeIndex(written, null);
  }

  async #updateOf(row: ArchivedUpdateRow, state: WrittenState, events: ArchivedFile | null): Promise<ArchivedUpdate> {
    const { baseVersion, endReason, environment, id, kind, message, number, requestedBy, resourceChanges, status } =
      row;
    return {
      ...{
        id,
        number,
        kind,
        version: row.stackVersion,
        baseVersion,
        status,
        endReason,
        message,
        environment,
        resourceChanges,
      },
      config: await reencryptConfig(row.config, this.#reencrypt),
      ...{ requestedBy, startedAt: row.startedAt.toISOString(), endedAt: row.endedAt.toISOString() },
      ...{ state: state.file, stateFault: state.fault, events },
      ...(state.warning === null ? {} : { stateWarning: state.warning }),
    };
  }

  /** A version without a readable state is listed with the reason. */
  async #writeVersion(row: ArchivedUpdateRow): Promise<WrittenState> {
    if (row.isStateDeleted) return without(deletedFault);
    const version = row.stackVersion as number;
    const read = async (): Promise<StateDocument> => {
      const state = await this.#parts.context.states.readVersion(this.#stack.id, version);
      if (!state) throw new StateDeletedError(version);
      return state;
    };
    try {
      const state = await read();
      const file = await this.#writeState(stateFile(this.#stack.id, row.id), state, `version ${version}`);
      if (state.warning !== null) this.#notes.push(state.warning);
      return { file, fault: null, warning: state.warning };
    } catch (error) {
      if (error instanceof StateDeletedError) return without(deletedFault);
      if (!(error instanceof DocumentDamagedError)) throw error;
      this.#notes.push(withoutState(version, error.message));
      return without(error.message);
    }
  }

  async #writeInitialState(): Promise<ArchivedFile | null> {
    const head = await this.#parts.context.states.readHead(this.#stack);
    if (!head || head.state.checkpointId === null || head.stack.activeUpdateId !== null) return null;
    return this.#writeState(stateFile(this.#stack.id, 'initial'), head.state, 'its state');
  }

  async #writeState(name: string, state: StateDocument, what: string): Promise<ArchivedFile> {
    const found: DocumentSecrets = { provider: null, reencrypted: 0, kept: 0 };
    const change = { provider: async () => null, reencrypt: this.#reencrypt };
    const file = await writeArchived(this.#parts.folder, name, reencryptDocument(state.bytes, change, found));
    if (found.provider?.type === 'service' && found.kept > 0)
      this.#notes.push(`${found.kept} secrets of ${what} are encrypted with the keys of another stack, and stay so`);
    return file;
  }

  async #writeEvents({
    id,
    stackVersion,
  }: ArchivedUpdateRow): Promise<{ file: ArchivedFile | null; count: number; fault?: string }> {
    const events = archivedEvents(this.#parts.context.eventReader, id);
    try {
      const first = await events.lines.next();
      if (first.done === true) return { file: null, count: 0 };
      const lines = async function* (): AsyncGenerator<Buffer> {
        yield first.value;
        yield* events.lines;
      };
      const file = await writeArchived(this.#parts.folder, eventsFile(this.#stack.id, id), lines());
      return { file, count: events.count() };
    } catch (error) {
      if (!(error instanceof EventsDamagedError)) throw error;
      this.#notes.push(withoutEvents({ id, version: stackVersion }, error.message));
      return { file: null, count: 0, fault: error.message };
    }
  }

  async #writeIndex(written: Written, initialState: ArchivedFile | null): Promise<ArchivedStack> {
    const { claim, context, folder } = this.#parts;
    await claim.assertHeld();
    const { activeUpdateId, id, project, stack, tags } = this.#stack;
    const formerNames = [...(await createArchivedStackRepository(context.db).listFormerNames(id))];
    const { previews, versions } = written;
    const isBusy = activeUpdateId !== null;
    const content: StackIndex = { id, project, stack, tags, formerNames, isBusy, initialState, versions, previews };
    const index = await writeJson(folder, indexFile(id), content);
    const all = countsOf([...versions, ...previews]);
    const counts = { ...all, bytes: all.bytes + (initialState?.bytes ?? 0) + index.bytes };
    this.#latest = { index, counts, notes: this.#notes, added: counts.versions - this.#had };
    return this.#latest;
  }

  readonly #reencrypt: Reencrypt & ((ciphertexts: readonly string[]) => Promise<(string | null)[]>) = async (
    ciphertexts,
  ) => {
    const { context, key, source, to } = this.#parts;
    const { id, organization } = this.#stack;
    const plaintexts = await context.cipher.decryptEach(
      [id],
      ciphertexts.map((each) => Buffer.from(each, 'base64')),
    );
    if (!this.#isAudited && plaintexts.some((each) => each !== null)) {
      this.#isAudited = true;
      const event = { action: 'secret.decrypt', organization, object: formatStackRef(this.#stack) } as const;
      await createAuditRepository(context.db).insert(source, { ...event, details: { stackId: id, to } });
    }
    return plaintexts.map((each) => each && key.encrypt(id, each));
  };
}

function countsOf(pages: readonly ArchivePage[]): ArchiveCounts {
  const sum = (of: keyof ArchiveCounts): number => pages.reduce((total, page) => total + page[of], 0);
  return { versions: sum('versions'), previews: sum('previews'), events: sum('events'), bytes: sum('bytes') };
}
