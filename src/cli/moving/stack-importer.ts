import { TransferError } from '../../shared/diy/diy-layout.ts';
import { unrecordedInfo } from '../../shared/diy/history-info.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import type { NewCheckpoint } from '../../shared/state/checkpoints/checkpoint-repository.ts';
import { storeDeployment } from '../../shared/state/checkpoints/save-document.ts';
import { counted } from '../output/text.ts';
import { messageOf, type StackPlan } from './import-plan.ts';
import type { SourceContent, SourceEntry, SourceState } from './moving-source.ts';
import { placePreviews } from './preview-importer.ts';
import { isRefusal, orNewerVersion, retryBroken, SourceUnavailableError } from './service-client.ts';
import { isDamage } from './source-damage.ts';
import { readEvents } from './source-events.ts';
import { type CommitParts, commitStack, isVersion, type Prepared } from './stack-commit.ts';
import { StackSecrets, serverUrl } from './stack-secrets.ts';
import { versionInSource } from './version-numbers.ts';

/** Compressed states and texts; a larger stack is committed in several transactions. */
const maxHeldBytes = 16 * 1024 * 1024;
const maxHeldVersions = 500;
/** The limit is low for a service, because each entry takes calls over the network that an interruption would waste. */
const maxHeldOfService = 50;

interface ImportParts extends CommitParts {
  /** Changes imported data: other keys encrypt its secrets here. */
  readonly arrival?: Arrival;
}

export interface Arrival {
  document(document: AsyncIterable<Buffer>): AsyncIterable<Buffer>;
  /** Re-encrypts the configuration of an update. */
  config(stored: string): Promise<string>;
  /** Secrets that were kept unchanged since the last call, although the source was asked to decrypt them. */
  takeKept(): number;
}

export interface ImportedStack {
  readonly versions: number;
  readonly previews: number;
  /** Entries that were left out, with the reason. */
  readonly leftOut: readonly string[];
}

/**
 * Versions are committed together with their import records, so an interrupted import continues where it was, and no version is imported
 * twice. A stack becomes visible when its first versions are committed: usually all at once.
 */
export class StackImporter {
  readonly #parts: ImportParts;

  constructor(parts: ImportParts) {
    this.#parts = parts;
  }

  /** Throws TransferError if the local stack has changed since the plan. */
  async import(plan: StackPlan): Promise<ImportedStack> {
    const { content, entries, head, planned, previews, tags, unrecordedState } = plan;
    if (content === null) throw new TransferError('it could not be read');
    const { arrival = null, organization } = this.#parts;
    const ref = { organization: organization.name, project: planned.project as string, stack: planned.stack };
    const leftOut: string[] = [];
    const wanted = { tags: tags && JSON.stringify(tags), quarantine: planned.quarantine };
    const target = { ref, ...wanted, head, formerNames: content.formerNames ?? [] };
    // Secrets are encrypted for the id of the stack, so the stack is created first.
    if (content.decrypt !== null && head === null)
      target.head = await commitStack(this.#parts, target, [], { isLast: false });
    const secrets = arrival ?? this.#secretsOf(content, ref, target.head);
    const maxHeld = content.decrypt === null ? maxHeldVersions : maxHeldOfService;
    let [held, heldBytes]: [Prepared[], number] = [[], 0];
    const done = { versions: 0, previews: 0 };
    // Called before the next entry is read, so that the last commit, which ends the import, contains the last entry.
    const makeRoom = async (): Promise<void> => {
      if (heldBytes < maxHeldBytes && held.length < maxHeld) return;
      target.head = await commitStack(this.#parts, target, held, { isLast: false });
      [held, heldBytes] = [[], 0];
    };
    const hold = (prepared: Prepared): void => {
      held.push(prepared);
      if (isVersion(prepared)) heldBytes += prepared.state?.document.inlineBytes?.length ?? 0;
      heldBytes += prepared.events.reduce((sum, { text }) => sum + text.length, 0);
      heldBytes += prepared.info.config.length + prepared.info.environment.length;
      done[isVersion(prepared) ? 'versions' : 'previews']++;
    };
    const noteKept = (name: string): void => {
      const kept = secrets?.takeKept() ?? 0;
      if (kept > 0) leftOut.push(`${name}: the source could not decrypt ${counted(kept, 'secret')}`);
    };
    let newestFault: unknown = null;
    const take = async (name: string, prepare: (name: string) => Promise<Prepared>): Promise<unknown> => {
      let fault: unknown = null;
      await makeRoom();
      try {
        hold(await prepare(name));
      } catch (error) {
        if (!isDamage(error)) throw error;
        leftOut.push(`${name}: ${messageOf(error)}`);
        fault = error;
      }
      noteKept(name);
      return fault;
    };
    for (const { entry, previews: earlier } of placePreviews(entries, previews)) {
      for (const each of earlier)
        await take(`preview ${each.id}`, async (name) => ({
          ...{ baseVersion: each.baseVersion, updateId: each.id },
          ...(await this.#read(each, name, secrets, leftOut)),
        }));
      if (entry === null) break;
      newestFault = await take(entry.state.name, async (name) => {
        const read = await this.#read(entry, name, secrets, leftOut);
        const inSource = versionInSource(entry, read.info);
        return { ...read, inSource, updateId: entry.updateId, state: await this.#store(entry.state, secrets) };
      });
    }
    const unrecorded = unrecordedState === null ? null : await this.#store(content.state, secrets);
    noteKept(content.state.name);
    if (unrecordedState === 'version') {
      await makeRoom();
      const info = unrecordedInfo(content.state.modifiedAt);
      hold({ entry: '', inSource: null, updateId: null, info, state: unrecorded, events: [] });
    }
    const initial = unrecordedState === 'initial' ? unrecorded : null;
    // A later run may get a newest version that the source has refused; until then, the stack has an older state.
    if (isRefusal(newestFault)) leftOut.push(`it cannot be updated here until a pass has ${orNewerVersion}`);
    await commitStack(this.#parts, target, held, { isLast: !isRefusal(newestFault), initial });
    return { ...done, leftOut };
  }

  #secretsOf({ decrypt }: SourceContent, ref: StackRef, head: StackPlan['head']): StackSecrets | null {
    if (decrypt === null || head === null) return null;
    const { cipher, config } = this.#parts.context;
    const { organization: owner, project, stack } = ref;
    return new StackSecrets({
      decrypt,
      encrypt: (plaintexts) => cipher.encrypt(head.stackId, plaintexts),
      provider: { type: 'service', state: { url: serverUrl(config), owner, project, stack } },
    });
  }

  /** All parts of an update or a preview except its state. */
  async #read(
    { events, id, info }: Pick<SourceEntry, 'events' | 'id' | 'info'>,
    name: string,
    secrets: Arrival | null,
    leftOut: string[],
  ) {
    const read = await info();
    const config = secrets === null ? read.config : await secrets.config(read.config);
    const found = events === null ? [] : await this.#eventsOf(events, name, leftOut);
    return { entry: id, info: { ...read, config }, events: found };
  }

  async #eventsOf(read: NonNullable<SourceEntry['events']>, name: string, leftOut: string[]) {
    try {
      return await readEvents(read, this.#parts.context.config.limits.maxEventBytes);
    } catch (error) {
      if (error instanceof SourceUnavailableError || !isDamage(error)) throw error;
      leftOut.push(`${name}: without its events: ${messageOf(error)}`);
      return [];
    }
  }

  /** It does not become the state of a stack; null if the source has none. */
  async #store(state: SourceState, secrets: Arrival | null): Promise<NewCheckpoint | null> {
    const { context } = this.#parts;
    let isEmpty = false;
    const document = async function* (): AsyncGenerator<Buffer> {
      let hasBytes = false;
      const read = state.document();
      for await (const chunk of secrets === null ? read : secrets.document(read)) {
        hasBytes = true;
        yield chunk;
      }
      isEmpty = !hasBytes;
      if (isEmpty) throw new TransferError(`${state.name} has no state`);
    };
    try {
      return await retryBroken(() => storeDeployment(context.documents, document));
    } catch (error) {
      if (isEmpty) return null;
      throw error;
    }
  }
}
