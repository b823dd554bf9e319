import { ciRunOf, operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import { MovingError } from '../../shared/diy/diy-layout.ts';
import { type HistoryInfo, requesterIn, storedOutcome, unrecordedInfo } from '../../shared/diy/history-info.ts';
import type { EngineEventText } from '../../shared/events/event-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { UnavailableError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';
import {
  createCheckpointRepository,
  type NewCheckpoint,
} from '../../shared/state/checkpoints/checkpoint-repository.ts';
import { storeDeployment } from '../../shared/state/store-deployment.ts';
import { operator } from '../admin/operator.ts';
import { assertWritable } from './assert-writable.ts';
import { messageOf, type StackPlan } from './import-plan.ts';
import { chooseIds } from './imported-ids.ts';
import { createImportedVersionRepository } from './imported-version-repository.ts';
import { counted } from './moving-report.ts';
import type { SourceContent, SourceEntry, SourceState } from './moving-source.ts';
import { insertPreview, type PreparedPreview, placePreviews } from './preview-importer.ts';
import { retryBroken, SourceUnavailableError } from './service-client.ts';
import { isDamage } from './source-damage.ts';
import { readEvents } from './source-events.ts';
import { StackSecrets, serverUrl } from './stack-secrets.ts';

/** What waits for one commit, in bytes of compressed states and of texts; more of a stack is committed in several transactions. */
const maxHeldBytes = 16 * 1024 * 1024;
const maxHeldVersions = 500;
/** Fewer of a service, because each takes calls over the network that an interruption would waste. */
const maxHeldOfService = 50;

interface ImportParts {
  readonly context: AppContext;
  readonly organization: { readonly id: string; readonly name: string };
  /** For the audit log. */
  readonly from: string;
  /** Ids of users here, by the names of users of the source. */
  readonly users?: ReadonlyMap<string, string>;
  /** Changes what arrives: other keys encrypt its secrets here. */
  readonly arrival?: Arrival;
  /** Runs in the transaction that commits versions, up to an entry of the source; null: up to a state without one. */
  readonly onCommit?: (
    tx: Queryable,
    committed: { stackId: string; stackVersion: number; entry: string | null },
  ) => Promise<unknown>;
}

/** What becomes of the secrets of a source. */
export interface Arrival {
  document(document: AsyncIterable<Buffer>): AsyncIterable<Buffer>;
  /** The configuration of an update, as the service has it. */
  config(stored: string): Promise<string>;
  /** Secrets that stayed as they were since the last call, although the source was asked for them. */
  takeKept(): number;
}

/** An update whose state is stored, to be committed. */
interface PreparedVersion {
  readonly entry: string;
  /** Its version in the source; null if the source does not number them. */
  readonly stackVersion: number | null;
  /** Its id in the source; null if it has none. */
  readonly updateId: string | null;
  readonly info: HistoryInfo;
  readonly state: NewCheckpoint | null;
  readonly events: readonly EngineEventText[];
}

type Prepared = PreparedVersion | PreparedPreview;

/** What was done with a stack. */
export interface ImportedStack {
  readonly versions: number;
  readonly previews: number;
  /** Entries that were left out, with the reason. */
  readonly leftOut: readonly string[];
}

/**
 * Imports what a plan found of a stack. Versions are committed together with the note that they are, so an interrupted import goes on
 * where it was, and none is there twice. A stack is seen when its first versions are committed: usually all at once.
 */
export class StackImporter {
  readonly #parts: ImportParts;

  constructor(parts: ImportParts) {
    this.#parts = parts;
  }

  /** `onVersion` is called for each entry that was read. Throws MovingError if the stack here has changed since the plan. */
  async import(
    { content, entries, hasUnrecordedState, head, planned, previews, tags }: StackPlan,
    onVersion: () => void,
  ): Promise<ImportedStack> {
    if (content === null) throw new MovingError('it could not be read');
    const { arrival = null, organization } = this.#parts;
    const ref = { organization: organization.name, project: planned.project as string, stack: planned.stack };
    const leftOut: string[] = [];
    const target = { ref, tags: JSON.stringify(tags), head };
    // Secrets are encrypted for the id of the stack.
    if (content.decrypt !== null && head === null) target.head = await this.#commit(target, [], { isLast: false });
    const secrets = arrival ?? this.#secretsOf(content, ref, target.head);
    const maxHeld = content.decrypt === null ? maxHeldVersions : maxHeldOfService;
    let [held, heldBytes]: [Prepared[], number] = [[], 0];
    const done = { versions: 0, previews: 0 };
    // Before the next one is read, so that the last commit, which ends the import, has what came last.
    const makeRoom = async (): Promise<void> => {
      if (heldBytes < maxHeldBytes && held.length < maxHeld) return;
      target.head = await this.#commit(target, held, { isLast: false });
      [held, heldBytes] = [[], 0];
    };
    const hold = (prepared: Prepared): void => {
      held.push(prepared);
      if (isVersion(prepared)) heldBytes += prepared.state?.document.inlineBytes?.length ?? 0;
      heldBytes += prepared.events.reduce((sum, { text }) => sum + text.length, 0);
      heldBytes += prepared.info.config.length + prepared.info.environment.length;
      done[isVersion(prepared) ? 'versions' : 'previews']++;
    };
    const take = async (name: string, prepare: (name: string) => Promise<Prepared>): Promise<void> => {
      await makeRoom();
      try {
        hold(await prepare(name));
      } catch (error) {
        if (!isDamage(error)) throw error;
        leftOut.push(`${name}: ${messageOf(error)}`);
      }
      const kept = secrets?.takeKept() ?? 0;
      if (kept > 0) leftOut.push(`${name}: the source could not decrypt ${counted(kept, 'secret')}`);
    };
    for (const { entry, previews: earlier } of placePreviews(entries, previews)) {
      for (const each of earlier)
        await take(`preview ${each.id}`, async (name) => ({
          ...{ baseVersion: each.baseVersion, updateId: each.id },
          ...(await this.#read(each, name, secrets, leftOut)),
        }));
      if (entry === null) break;
      await take(entry.state.name, async (name) => ({
        ...{ stackVersion: entry.stackVersion, updateId: entry.updateId },
        ...(await this.#read(entry, name, secrets, leftOut)),
        state: await this.#store(entry.state, secrets),
      }));
      onVersion();
    }
    if (hasUnrecordedState) {
      await makeRoom();
      const info = unrecordedInfo(content.state.modifiedAt);
      const state = await this.#store(content.state, secrets);
      hold({ entry: '', stackVersion: null, updateId: null, info, state, events: [] });
      onVersion();
    }
    await this.#commit(target, held, { isLast: true });
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

  /** All that an update or a preview has except a state. */
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

  /** Stores a state of the source without making it one of a stack; null if the source has none there. */
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
      if (isEmpty) throw new MovingError(`${state.name} has no state`);
    };
    try {
      return await retryBroken(() => storeDeployment(context.documents, document));
    } catch (error) {
      if (isEmpty) return null;
      throw error;
    }
  }

  async #commit(
    { head, ref, tags }: { ref: StackRef; tags: string; head: StackPlan['head'] },
    prepared: readonly Prepared[],
    { isLast }: { readonly isLast: boolean },
  ): Promise<NonNullable<StackPlan['head']>> {
    const { context, organization } = this.#parts;
    // Before the transaction, because other stacks of the project would wait for its end.
    const projectId = head === null ? await context.stacks.ensureProject(organization.id, ref.project) : null;
    return context.db.inTransaction(async (tx) => {
      await assertWritable(tx);
      const stacks = createStackRepository(tx);
      const stack = head ? await stacks.lockById(head.stackId) : await this.#create(tx, ref, projectId as string, tags);
      const isSame = stack?.stackVersion === (head?.stackVersion ?? 0) && formatStackRef(stack) === formatStackRef(ref);
      if (!stack || !isSame || stack.activeUpdateId !== null)
        throw new MovingError(`${formatStackRef(ref)} was changed here during the import: plan it again`);
      // Nobody may update a stack between two transactions: the state that it has then is an old one.
      if (stack.isImportUnfinished === isLast) await stacks.setImportUnfinished(stack.id, !isLast);
      if (stack.tags !== tags) await stacks.setTags(stack.id, tags);
      if (prepared.length === 0) return { stackId: stack.id, stackVersion: stack.stackVersion };
      const { previews, stackVersion } = await this.#insert(tx, stack, prepared);
      const versions = prepared.filter(isVersion);
      const entry = versions.at(-1)?.entry || null;
      await this.#parts.onCommit?.(tx, { stackId: stack.id, stackVersion, entry });
      await createAuditRepository(tx).insert(operatorSource(operator()), {
        ...{ action: 'stack.import', organization: organization.name, object: formatStackRef(ref) },
        details: { stackId: stack.id, stackVersion, versions: versions.length, previews, from: this.#parts.from },
      });
      return { stackId: stack.id, stackVersion };
    });
  }

  async #create(tx: Queryable, ref: StackRef, projectId: string, tags: string): Promise<StackRow | null> {
    const stacks = createStackRepository(tx);
    if (await stacks.find(ref)) throw new MovingError(`${formatStackRef(ref)} was created here during the import`);
    const id = await stacks.insert({ projectId, name: ref.stack, tags }).catch((error: unknown) => {
      if (violatedConstraint(error) !== 'stacks_name_key') throw error;
      throw new MovingError(`${formatStackRef(ref)} was created here during the import`);
    });
    await createAuditRepository(tx).insert(operatorSource(operator()), {
      ...{ action: 'stack.create', organization: ref.organization, object: formatStackRef(ref) },
      details: { stackId: id, from: this.#parts.from },
    });
    return stacks.lockById(id);
  }

  async #insert(tx: Queryable, stack: StackRow, prepared: readonly Prepared[]) {
    const rows = createImportedVersionRepository(tx);
    const checkpoints = createCheckpointRepository(tx);
    const stacks = createStackRepository(tx);
    let { checkpointId, stackVersion } = stack;
    let previews = 0;
    const ids = await chooseIds(rows, prepared);
    for (const [at, each] of prepared.entries()) {
      const id = ids[at] as string;
      const environment = JSON.parse(each.info.environment) as object;
      const requestedBy = this.#parts.users?.get(requesterIn(environment) ?? '') ?? null;
      if (!isVersion(each)) {
        const own = { ...each, id, requestedBy };
        if (await insertPreview(tx, { id: stack.id, stackVersion, checkpointId }, own)) previews++;
        continue;
      }
      const { entry, events, info, state, stackVersion: number } = each;
      stackVersion = Math.max(stackVersion + 1, number ?? 0);
      const startedAt = new Date(Math.round((info.startTime || info.endTime) * 1000));
      await rows.insert({
        ...{ id, stackId: stack.id, entry, stackVersion, ...storedOutcome(info), baseCheckpointId: checkpointId },
        ...{ message: info.message, environment: info.environment, config: info.config },
        ...{ resourceChanges: info.resourceChanges, ciRun: ciRunOf(environment) },
        ...{ requestedBy, hasEvents: events.length > 0 },
        ...{ startedAt, endedAt: new Date(Math.max(Math.round(info.endTime * 1000), startedAt.getTime())) },
      });
      if (events.length > 0) await rows.insertEvents(id, events);
      if (state === null) continue;
      checkpointId = await checkpoints.insert({ stackId: stack.id, updateId: id }, state);
      if (checkpointId === null) throw new UnavailableError('Storing the states took too long; run the import again');
    }
    await stacks.setHead(stack.id, checkpointId);
    await stacks.publishVersion(stack.id, stackVersion);
    return { previews, stackVersion };
  }
}

function isVersion(prepared: Prepared): prepared is PreparedVersion {
  return 'state' in prepared;
}
