import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { stringify } from 'yaml';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { formatStackRef } from '../../shared/stacks/names.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { bytesOf } from '../../shared/state/documents/byte-source.ts';
import type { StateDocument } from '../../shared/state/state-reader.ts';
import { operator } from '../admin/operator.ts';
import { diyOrganization, MovingError, root } from './diy-layout.ts';
import { createExportedStackRepository, type ExportedVersionRow } from './exported-stack-repository.ts';
import { toHistoryConfig } from './history-info.ts';
import { checkpointOfDocument } from './move-document.ts';
import type { PassphraseCrypter } from './passphrase-crypter.ts';
import { type DocumentSecrets, type Reencrypt, reencryptDocument } from './reencrypt-document.ts';

const pageRows = 50;

interface ExportParts {
  readonly context: AppContext;
  readonly folder: Folder;
  /** The place, for the audit log. */
  readonly to: string;
  /** The newest update of each stack that is in the folder, by its id. */
  readonly there: ReadonlyMap<string, string>;
  /** How many updates of each stack. */
  readonly history: number;
  /** Called when the first secret of the server's keys is found. Throws MovingError if there is no passphrase. */
  readonly crypter: () => Promise<PassphraseCrypter>;
}

/** What was written of a stack. */
export interface ExportedStack {
  readonly versions: number;
  readonly reencrypted: number;
  readonly notes: readonly string[];
}

/** The CLI finds no other projects in a folder (sdk/go/common/tokens/names.go). */
const projectPattern = /^[A-Za-z_.][A-Za-z0-9_.-]*$/;

/** Writes a stack as the CLI's own backend has it. Its newest state is written last, so a stack that is there is complete. */
export async function exportStack(parts: ExportParts, stack: StackRow): Promise<ExportedStack> {
  if (!projectPattern.test(stack.project))
    throw new MovingError(`the CLI does not list projects named ${stack.project}`);
  return new StackExport(parts, stack).run();
}

class StackExport {
  readonly #parts: ExportParts;
  readonly #stack: StackRow;
  readonly #place: string;
  readonly #notes: string[] = [];
  #reencrypted = 0;
  /** Whether the decryption is in the audit log. */
  #isAudited = false;

  constructor(parts: ExportParts, stack: StackRow) {
    this.#parts = parts;
    this.#stack = stack;
    this.#place = `${stack.project}/${stack.stack}`;
  }

  async run(): Promise<ExportedStack> {
    const { context, folder, history, to } = this.#parts;
    const { id, organization, project, stack, tags } = this.#stack;
    const rows = createExportedStackRepository(context.db);
    await createAuditRepository(context.db).insert(operatorSource(operator()), {
      ...{ action: 'stack.export', organization, object: formatStackRef(this.#stack), details: { stackId: id, to } },
    });
    const first = history === 0 ? null : await rows.findFirstVersion(id, history);
    const { newest, versions } = first === null ? { newest: 0n, versions: 0 } : await this.#writeHistory(first);
    if (BigInt(this.#parts.there.get(this.#place) ?? '0') > newest)
      throw new MovingError('it was updated in the folder since the last export');
    const known = readTags(tags);
    if (Object.keys(known).length > 0) {
      const text = Buffer.from(JSON.stringify({ version: 1, tags: known }));
      await folder.write(`${root}/stacks/${this.#place}.pulumi-tags`, bytesOf(text)());
    }
    const readHead = async (): Promise<StateDocument> => {
      const head = await context.states.readHead({ organization, project, stack });
      if (!head) throw new MovingError('it was deleted or renamed meanwhile');
      this.#notes.length = 0;
      if (head.state.warning) this.#notes.push(head.state.warning);
      if (head.stack.activeUpdateId !== null)
        this.#notes.push('an update is running: this is its state at this moment');
      return head.state;
    };
    const secrets = await this.#writeState(`${root}/stacks/${this.#place}.json`, readHead, false);
    await this.#writeConfig(secrets, await rows.findNewestConfig(id));
    return { versions, reencrypted: this.#reencrypted, notes: this.#notes };
  }

  async #writeHistory(first: number): Promise<{ newest: bigint; versions: number }> {
    const { context, folder } = this.#parts;
    const rows = createExportedStackRepository(context.db);
    let versions = 0;
    let lastId = 0n;
    for (let from = first; ; ) {
      const page = await rows.listVersions(this.#stack.id, from, pageRows);
      for (const row of page) {
        const readVersion = async (): Promise<StateDocument> => {
          const state = await context.states.readVersion(this.#stack.id, row.stackVersion);
          if (!state) throw new MovingError(`its version ${row.stackVersion} was deleted meanwhile`);
          return state;
        };
        lastId = laterOf(lastId, row);
        const name = `${root}/history/${this.#place}/${this.#stack.stack}-${lastId}`;
        // The update is listed by its history file, so its state comes first.
        await this.#writeState(`${name}.checkpoint.json.gz`, readVersion, true);
        const info = Buffer.from(JSON.stringify(await this.#historyOf(row)));
        await folder.write(`${name}.history.json.gz`, gzipped(bytesOf(info)()));
        versions++;
      }
      if (page.length < pageRows) return { newest: lastId, versions };
      from = (page.at(-1) as ExportedVersionRow).stackVersion + 1;
    }
  }

  async #writeState(name: string, read: () => Promise<StateDocument>, isGzipped: boolean): Promise<DocumentSecrets> {
    const { folder } = this.#parts;
    const found: DocumentSecrets = { provider: null, reencrypted: 0, kept: 0 };
    const provider = async () => ({ type: 'passphrase', state: { salt: (await this.#parts.crypter()).salt } });
    const reencrypt = this.#reencrypt;
    // Read again if its version does not come first.
    const document = async function* (): AsyncGenerator<Buffer> {
      Object.assign(found, { provider: null, reencrypted: 0, kept: 0 });
      yield* reencryptDocument((await read()).bytes, { provider, reencrypt }, found);
    };
    const fullName = `${diyOrganization}/${this.#place}`;
    const checkpoint = checkpointOfDocument(document, fullName);
    const checked = async function* (): AsyncGenerator<Buffer> {
      yield* checkpoint;
      // Before the file becomes visible. The CLI could not load it.
      if (found.provider?.type === 'service' && found.kept > 0)
        throw new MovingError(`${found.kept} of its secrets are encrypted with the keys of another stack`);
    };
    await folder.write(name, isGzipped ? gzipped(checked()) : checked());
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

  /** `Pulumi.<stack>.yaml` for the secrets provider of the exported state, beside the folder that the CLI reads. */
  async #writeConfig({ provider }: DocumentSecrets, stored: string | null): Promise<void> {
    const before = this.#reencrypted;
    const config = stored === null ? {} : await toHistoryConfig(stored, this.#reencryptConfig);
    const isOurs = this.#reencrypted > before || provider === null || provider.type === 'service';
    let head: Record<string, unknown>;
    if (isOurs && (this.#reencrypted > 0 || provider?.type === 'service'))
      head = { encryptionsalt: (await this.#parts.crypter()).salt };
    else if (provider?.type === 'passphrase') head = { encryptionsalt: provider.state['salt'] };
    else if (provider?.type === 'cloud')
      head = { secretsprovider: provider.state['url'], encryptedkey: provider.state['encryptedkey'] };
    else if (provider === null) head = {};
    else {
      this.#notes.push(`no configuration was written for its secrets provider ${provider.type}`);
      return;
    }
    if (stored === null && Object.keys(head).length === 0) return;
    const text = stringify({ ...head, ...(stored === null ? {} : { config: JSON.parse(JSON.stringify(config)) }) });
    const name = `config/${this.#stack.project}/Pulumi.${this.#stack.stack}.yaml`;
    await this.#parts.folder.write(name, bytesOf(Buffer.from(text))());
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
      await createAuditRepository(context.db).insert(operatorSource(operator()), event);
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

/** The time of a version in ns, after that of the version before. An imported one keeps its own. */
function laterOf(last: bigint, { endedAt, entry }: ExportedVersionRow): bigint {
  // Entries of a service are no times.
  const own = entry && /^\d+$/.test(entry) ? BigInt(entry) : BigInt(endedAt.getTime()) * 1_000_000n;
  return own > last ? own : last + 1n;
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
