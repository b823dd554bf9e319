import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { AuditSource } from '../audit/audit-event.ts';
import { createAuditRepository } from '../audit/audit-repository.ts';
import type { Folder } from '../platform/blobs/folder.ts';
import { bytesOf } from '../platform/bytes/byte-source.ts';
import type { Database } from '../platform/db/database.ts';
import type { StackCipher } from '../secrets/stack-cipher.ts';
import { formatStackRef } from '../stacks/names.ts';
import type { StackRow } from '../stacks/stack-repository.ts';
import { readTags } from '../stacks/tags.ts';
import { DocumentDamagedError } from '../state/checkpoints/document-reader.ts';
import { StateDeletedError } from '../state/retention/deleted-errors.ts';
import type { StateDocument, StateReader } from '../state/state-reader.ts';
import { configText } from './config-text.ts';
import { configFile, diyOrganization, root, stateFile, TransferError, tagsFile } from './diy-layout.ts';
import { createExportedStackRepository, type ExportedVersionRow } from './exported-stack-repository.ts';
import { findEntryBefore, laterOf } from './history-entry.ts';
import { toHistoryConfig } from './history-info.ts';
import { checkpointOfDocument, initialMark } from './move-document.ts';
import { type DocumentSecrets, type Reencrypt, reencryptDocument } from './reencrypt-document.ts';
import { type SecretsCrypter, settingsOf } from './secrets-crypter.ts';

const pageRows = 50;

interface ExportParts {
  readonly context: { readonly db: Database; readonly cipher: StackCipher; readonly states: StateReader };
  readonly folder: Folder;
  /** The exporting actor, for the audit log. */
  readonly source: AuditSource;
  /** The location, for the audit log. */
  readonly to: string;
  /** Maximum number of updates of each stack. */
  readonly history: number;
  /** Called for the first secret under the server's keys. Throws TransferError without a passphrase. */
  readonly crypter: () => Promise<SecretsCrypter>;
  /** Called when the state was read completely, before it becomes visible. An error ends the export. */
  readonly beforeState: (sha256: string) => Promise<void>;
  /** A part of the stack, which is written over the existing files. */
  readonly part?: ExportPart;
  readonly signal?: AbortSignal;
}

interface ExportPart {
  /** The first version of the history to write; null for none. */
  readonly fromVersion: number | null;
  readonly toVersion: number;
  /** Replaces the current state. Called again if its bytes are read again. */
  readonly readState: () => Promise<StateDocument>;
  /** New entries are later, whatever the clock of the server says. */
  readonly lastEntry: string | null;
  /** A member by which the state file is recognized again. */
  readonly mark: string;
}

export interface ExportedStack {
  readonly versions: number;
  readonly reencrypted: number;
  readonly notes: readonly string[];
  /** The newest entry in the history; 0 if there is none. */
  readonly newest: bigint;
  /** Hash of the state file, in hex. */
  readonly sha256: string;
}

/** The CLI finds only projects with these names in a folder (sdk/go/common/tokens/names.go). */
const projectPattern = /^[A-Za-z_.][A-Za-z0-9_.-]*$/;

/** The newest state is written last, so an existing stack is complete. */
export async function exportStack(parts: ExportParts, stack: StackRow): Promise<ExportedStack> {
  if (!projectPattern.test(stack.project))
    throw new TransferError(`the CLI does not list projects named ${stack.project}`);
  return new StackExport(parts, stack).run();
}

class StackExport {
  readonly #parts: ExportParts;
  readonly #stack: StackRow;
  readonly #path: string;
  readonly #notes: string[] = [];
  #reencrypted = 0;
  /** Hash of the last written state. */
  #sha256 = '';
  /** Whether the decryption is in the audit log. */
  #isAudited = false;

  constructor(parts: ExportParts, stack: StackRow) {
    this.#parts = parts;
    this.#stack = stack;
    this.#path = `${stack.project}/${stack.stack}`;
  }

  async run(): Promise<ExportedStack> {
    const { context, history, part, to } = this.#parts;
    const { id, organization, tags } = this.#stack;
    const rows = createExportedStackRepository(context.db);
    await createAuditRepository(context.db).insert(this.#parts.source, {
      ...{ action: 'stack.export', organization, object: formatStackRef(this.#stack), details: { stackId: id, to } },
    });
    const first = part ? part.fromVersion : history === 0 ? null : await rows.findFirstVersion(id, history);
    const nothing = { list: null, newest: 0n, secrets: null, versions: 0 };
    const { list, newest, secrets, versions } = first === null ? nothing : await this.#writeHistory(first);
    if (!part) await list?.();
    const known = readTags(tags);
    if (Object.keys(known).length > 0) {
      const text = Buffer.from(JSON.stringify({ version: 1, tags: known }));
      await this.#write(tagsFile(this.#path), bytesOf(text)());
    } else if (part) await this.#parts.folder.delete(tagsFile(this.#path));
    const config = await rows.findNewestConfig(id, part?.toVersion);
    // A reader of the new state needs the configuration. The newest version has the secrets provider of the state.
    if (part && secrets !== null) await this.#writeConfig(secrets, config);
    const found = await this.#writeState(stateFile(this.#path), part?.readState ?? this.#readHead, false);
    // Not before the state: a return uses the history as the base of the changes in the bundle.
    if (part) await list?.();
    if (!part || secrets === null) await this.#writeConfig(found, config);
    return { versions, reencrypted: this.#reencrypted, notes: this.#notes, newest, sha256: this.#sha256 };
  }

  readonly #readHead = async (): Promise<StateDocument> => {
    const head = await this.#parts.context.states.readHead(this.#stack);
    if (!head) throw new TransferError('it was deleted or renamed meanwhile');
    if (this.#stack.stackVersion === 0 && head.stack.stackVersion > 0)
      throw new TransferError('its first update ended meanwhile: export it again');
    this.#notes.length = 0;
    if (head.state.warning) this.#notes.push(head.state.warning);
    if (head.stack.activeUpdateId !== null) this.#notes.push('an update is running: this is its state at this moment');
    return head.state;
  };

  async #writeHistory(first: number) {
    const { context, part } = this.#parts;
    const rows = createExportedStackRepository(context.db);
    let list: (() => Promise<void>) | null = null;
    let versions = 0;
    let lastId = part ? BigInt(part.lastEntry ?? 0) : await findEntryBefore(rows, this.#stack.id, first);
    let secrets: DocumentSecrets | null = null;
    for (let from = first; ; ) {
      const page = await rows.listVersions(this.#stack.id, { from, to: part?.toVersion }, pageRows);
      for (const row of page) {
        const readVersion = async (): Promise<StateDocument> => {
          const state = await context.states.readVersion(this.#stack.id, row.stackVersion);
          if (!state) throw new TransferError(`its version ${row.stackVersion} was deleted meanwhile`);
          return state;
        };
        lastId = laterOf(lastId, row);
        if (!row.hasState) continue;
        const name = `${root}/history/${this.#path}/${this.#stack.stack}-${lastId}`;
        // The history file lists the update, so its state comes first.
        try {
          secrets = await this.#writeState(`${name}.checkpoint.json.gz`, readVersion, true);
        } catch (error) {
          if (!part || !isOfOneVersion(error)) throw error;
          this.#notes.push(`without its version ${row.stackVersion}: ${(error as Error).message}`);
          continue;
        }
        const info = Buffer.from(JSON.stringify(await this.#historyOf(row)));
        await list?.();
        list = () => this.#write(`${name}.history.json.gz`, gzipped(bytesOf(info)()));
        versions++;
      }
      if (page.length < pageRows) return { list, newest: lastId, secrets, versions };
      from = (page.at(-1) as ExportedVersionRow).stackVersion + 1;
    }
  }

  async #writeState(name: string, read: () => Promise<StateDocument>, isGzipped: boolean): Promise<DocumentSecrets> {
    // The mark is the only sign in a folder that no update has left the state.
    const { beforeState, part } = this.#parts;
    let sha256 = '';
    const mark = part?.mark ?? (this.#stack.stackVersion === 0 ? initialMark : undefined);
    const found: DocumentSecrets = { provider: null, reencrypted: 0, kept: 0 };
    const provider = async ({ type }: { readonly type: string }) =>
      type === 'service' ? (await this.#parts.crypter()).provider : null;
    const reencrypt = this.#reencrypt;
    // Read again if the document's version does not come first.
    const document = async function* (): AsyncGenerator<Buffer> {
      Object.assign(found, { provider: null, reencrypted: 0, kept: 0 });
      yield* reencryptDocument((await read()).bytes, { provider, reencrypt }, found);
    };
    const fullName = `${diyOrganization}/${this.#path}`;
    const checkpoint = checkpointOfDocument(document, fullName, isGzipped ? undefined : mark);
    const hash = createHash('sha256');
    const checked = async function* (): AsyncGenerator<Buffer> {
      for await (const chunk of checkpoint) {
        hash.update(chunk);
        yield chunk;
      }
      // Checked before the file becomes visible, because the CLI could not load it.
      if (found.provider?.type === 'service' && found.kept > 0)
        throw new TransferError(`${found.kept} of its secrets are encrypted with the keys of another stack`);
      if (isGzipped) return;
      sha256 = hash.digest('hex');
      await beforeState(sha256);
    };
    await this.#write(name, isGzipped ? gzipped(checked()) : checked());
    this.#sha256 = sha256;
    this.#reencrypted += found.reencrypted;
    return found;
  }

  async #historyOf(row: ExportedVersionRow): Promise<object> {
    const seconds = (at: Date): number => Math.floor(at.getTime() / 1000);
    return {
      ...{ kind: row.kind, startTime: seconds(row.startedAt), message: row.message },
      environment: textsOf(JSON.parse(row.environment)),
      config: await toHistoryConfig(row.config, this.#reencryptConfig),
      ...{ version: row.stackVersion, result: row.status === 'succeeded' ? 'succeeded' : 'failed' },
      ...{ endTime: seconds(row.endedAt), resourceChanges: JSON.parse(row.resourceChanges) as unknown },
    };
  }

  /** Uses the secrets provider of the exported state. The file is beside the folder that the CLI reads. */
  async #writeConfig({ provider }: DocumentSecrets, stored: string | null): Promise<void> {
    const before = this.#reencrypted;
    const config = stored === null ? {} : await toHistoryConfig(stored, this.#reencryptConfig);
    const isOurs = this.#reencrypted > before || provider === null || provider.type === 'service';
    const target =
      isOurs && (this.#reencrypted > 0 || provider?.type === 'service')
        ? (await this.#parts.crypter()).provider
        : provider;
    const head = target === null ? {} : settingsOf(target);
    if (head === null) {
      this.#notes.push(`no configuration was written for its secrets provider ${target?.type}`);
      return;
    }
    if (stored === null && Object.keys(head).length === 0) return;
    const text = configText(head, stored === null ? null : config);
    const name = configFile(this.#stack);
    await this.#write(name, bytesOf(Buffer.from(text))());
  }

  #write(name: string, body: AsyncIterable<Buffer>): Promise<void> {
    return this.#parts.folder.write(name, body, this.#parts.signal);
  }

  readonly #reencrypt: Reencrypt = async (ciphertexts) => {
    const { context, crypter } = this.#parts;
    const { id, organization } = this.#stack;
    const plaintexts = await context.cipher.decryptEach(
      [id],
      ciphertexts.map((each) => Buffer.from(each, 'base64')),
    );
    if (plaintexts.every((each) => each === null)) return plaintexts.map(() => null);
    if (!this.#isAudited) {
      this.#isAudited = true;
      const details = { stackId: id, to: this.#parts.to };
      const event = { action: 'secret.decrypt', organization, object: formatStackRef(this.#stack), details } as const;
      await createAuditRepository(context.db).insert(this.#parts.source, event);
    }
    const target = await crypter();
    return plaintexts.map((each) => each && target.encrypt(each));
  };

  readonly #reencryptConfig = async (ciphertexts: readonly string[]): Promise<readonly string[]> => {
    const replaced = ciphertexts.length === 0 ? [] : await this.#reencrypt(ciphertexts);
    this.#reencrypted += replaced.filter((each) => each !== null).length;
    return ciphertexts.map((each, at) => replaced[at] ?? each);
  };
}

/** Whether the newest state may be complete nevertheless. */
function isOfOneVersion(error: unknown): boolean {
  return error instanceof TransferError || error instanceof DocumentDamagedError || error instanceof StateDeletedError;
}

/** The CLI reads no other values. */
function textsOf(environment: object): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );
}

async function* gzipped(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const stream = pipeline(Readable.from(bytes), createGzip(), () => {});
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } finally {
    stream.destroy();
  }
}
