import type { Static, TSchema } from 'typebox';
import { TransferError } from '../../shared/diy/diy-layout.ts';
import { readServiceInfo } from '../../shared/diy/history-info.ts';
import type { MovingSource, SourceContent, SourceEntry, SourceGap, SourceStack } from './moving-source.ts';
import { answers, type ListedUpdate, readAnswer } from './service-answers.ts';
import { type Call, isRefusal, ServiceClient, SourceRefusedError, SourceUnavailableError } from './service-client.ts';
import { incompleteList, PageTokens, pageSize, readPages } from './service-pages.ts';
import { PackedPage, readPreviews } from './service-previews.ts';

/** Maximum number in one request, as in the CLI (pkg/resource/stack/secrets.go). */
const maxCiphertexts = 1000;

/** Pulumi Cloud, or another Holdfast. */
export class ServiceSource implements MovingSource {
  readonly location: string;
  readonly #client: ServiceClient;
  readonly #organization: string;

  /** Throws TransferError if the address cannot be one. */
  constructor(parts: { readonly from: string; readonly organization: string; readonly token: string | null }) {
    const { from, organization, token } = parts;
    const origin = originOf(from);
    if (token === null) throw new TransferError('Set PULUMI_ACCESS_TOKEN to a token of the source');
    this.#client = new ServiceClient({ origin, token });
    this.#organization = organization;
    this.location = `${origin}/${organization}`;
  }

  async list() {
    const { githubLogin } = await this.#read(answers.user, '/api/user');
    if (githubLogin === undefined)
      throw new TransferError(`${this.#client.origin}/api/user does not answer as a service of the Pulumi CLI`);
    const stacks = new Map<string, SourceStack>();
    const gaps: SourceGap[] = [];
    const tokens = new PageTokens(() => gaps.push({ name: null, text: incompleteList(this.location, 'stacks') }));
    for (let token: string | null = ''; token !== null; ) {
      const after: string = token === '' ? '' : `&continuationToken=${encodeURIComponent(token)}`;
      const path = `/api/user/stacks?organization=${encodeURIComponent(this.#organization)}${after}`;
      const page = await this.#read(answers.stacks, path);
      for (const each of page.stacks ?? []) {
        if (each?.orgName !== this.#organization) continue;
        const stack = this.#stackOf(each.projectName, each.stackName);
        stacks.set(stack.name, stack);
      }
      token = tokens.next(page.continuationToken, { hasItems: (page.stacks ?? []).length > 0 });
    }
    if (stacks.size === 0)
      throw new TransferError(
        `${githubLogin} sees no stacks of the organization ${this.#organization} in ${this.location}`,
      );
    const sorted = [...stacks.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    return { stacks: sorted, strays: [], remarks: [], leftOut: [], gaps };
  }

  async close(): Promise<void> {}

  #stackOf(project: string, stack: string): SourceStack {
    return { name: `${project}/${stack}`, project, stack, open: () => this.#open(project, stack) };
  }

  async #open(project: string, stack: string): Promise<SourceContent> {
    const path = `/api/stacks/${[this.#organization, project, stack].map(encodeURIComponent).join('/')}`;
    const { gaps, isBusy, order, previews, updates } = await this.#readHistory(path);
    const withoutState = order.length - updates.length;
    const newest = updates.at(-1);
    const notes = isBusy ? ['an update is running in the source; the next pass imports it'] : [];
    if (withoutState > 0) notes.push(`without ${withoutState} updates: the source lacks their states`);
    return {
      state: {
        ...this.#stateAt(path, newest === undefined ? 'export' : `export/${newest.stackVersion}`),
        modifiedAt: new Date(),
      },
      // While the first update runs, its state would count as the state before it.
      mayHaveUnrecordedState: newest === undefined && !isBusy,
      ...{ history: updates, order, previews, notes, gaps, fault: null, isBusy },
      tags: async () => (await this.#read(answers.stack, path)).tags ?? {},
      check: null,
      decrypt: (ciphertexts) => this.#decrypt(path, ciphertexts),
    };
  }

  /** Ended updates, oldest first. */
  async #readHistory(path: string) {
    // An update that is added meanwhile moves others to the next page, so they are collected by version.
    const found = new Map<number, SourceEntry & { readonly startTime: number }>();
    const gone = new Map<number, string>();
    let isBusy = false;
    const gaps: string[] = [];
    const onRepeated = (what: string) => () => void gaps.push(incompleteList('the source', what));
    const read = (number: number) =>
      this.#read(answers.updates, `${path}/updates?output-type=service&pageSize=${pageSize}&page=${number}`);
    // Version 1 is the oldest, so nothing can follow it.
    const onRepeatedUpdates = () => void (found.has(1) || gone.has(1) || onRepeated('updates')());
    for await (const updates of readPages(read, onRepeatedUpdates)) {
      const page = new PackedPage(updates);
      for (const [at, update] of updates.entries()) {
        if (update === null) continue;
        const { kind = '', result, startTime = 0 } = update.info ?? update;
        const stackVersion = update.version ?? update.info?.version ?? 0;
        if (/^(preview$|P)/.test(kind)) continue;
        const id = `${stackVersion}@${startTime}`;
        if (result === 'in-progress' || result === 'not-started') isBusy = true;
        else if (update.stateDeletedAt !== undefined) {
          gone.set(stackVersion, id);
          found.delete(stackVersion);
        } else if (stackVersion > 0)
          // An update that never began is listed with the version of the update before it; the older one keeps the version.
          found.set(stackVersion, {
            ...{ id, stackVersion, startTime, updateId: update.updateID ?? null },
            state: this.#stateAt(path, `export/${stackVersion}`),
            info: async () => readServiceInfo(page.at(at)),
            events: this.#eventsOf(path, update),
          });
      }
    }
    const updates = [...found].sort(([a], [b]) => a - b).map(([, entry]) => entry);
    const eventsOf = (update: ListedUpdate) => this.#eventsOf(path, update);
    const previews = await readPreviews(
      { client: this.#client, path, eventsOf, onRepeated: onRepeated('previews') },
      updates,
    );
    const ids = [...gone, ...[...found].map(([version, { id }]) => [version, id] as const)];
    const order = ids.sort(([a], [b]) => a - b).map(([, id]) => id);
    return { updates, previews, gaps, isBusy, order };
  }

  #stateAt(stack: string, below: string) {
    const name = `${stack}/${below}`;
    const client = this.#client;
    const begin = async () => {
      const bytes = client.bytes(name);
      return { bytes, first: await bytes.next() };
    };
    const orAgain = () => this.#orAgain(stack, begin);
    const document = async function* (): AsyncGenerator<Buffer> {
      const { bytes, first } = await orAgain();
      if (first.done === true) return;
      try {
        yield first.value;
        yield* bytes;
      } finally {
        await bytes.return(undefined);
      }
    };
    return { name, bytes: null, document };
  }

  /**
   * Repeats a read that the service has answered with "not found". Throws SourceUnavailableError if the service now lacks the stack: then
   * the part is not damaged.
   */
  async #orAgain<Result>(stack: string, read: () => Promise<Result>): Promise<Result> {
    try {
      return await read();
    } catch (error) {
      if (!isRefusal(error)) throw error;
      await this.#client.json(stack).catch((cause: unknown) => {
        throw new SourceUnavailableError(`the source no longer has it: ${(cause as Error).message}`, { cause });
      });
      return read();
    }
  }

  /** Updates of every kind have their events under `update`, where the CLI reads them. */
  #eventsOf(path: string, { eventsDeletedAt, updateID }: ListedUpdate): SourceEntry['events'] {
    if (updateID === undefined || eventsDeletedAt !== undefined) return null;
    const read = (call: string) => this.#orAgain(path, () => this.#client.buffer(call));
    return async function* () {
      const tokens = new PageTokens(() => {
        throw new TransferError(incompleteList('the source', 'events'));
      });
      for (let token: string | null = null; ; ) {
        const after: string = token === null ? '' : `?continuationToken=${encodeURIComponent(token)}`;
        const page = await read(`${path}/update/${encodeURIComponent(updateID)}/events${after}`);
        const answer = JSON.parse(page.toString('utf8')) as { events?: unknown; continuationToken?: unknown } | null;
        const { continuationToken: next, events } = answer ?? {};
        const hasEvents = Boolean(events) && !(Array.isArray(events) && events.length === 0);
        // An answer that is no list is refused where its events are read.
        if (hasEvents) yield page;
        token = tokens.next(next, { hasItems: hasEvents });
        if (token === null) return;
      }
    };
  }

  async #read<Schema extends TSchema>(schema: Schema, path: string, call: Call = {}): Promise<Static<Schema>> {
    return readAnswer(schema, await this.#client.json(path, call), `${this.#client.origin}${path}`);
  }

  async #decrypt(path: string, ciphertexts: readonly string[]): Promise<(Buffer | null)[]> {
    const found: (Buffer | null)[] = [];
    for (let from = 0; from < ciphertexts.length; from += maxCiphertexts)
      found.push(...(await this.#decryptBatch(path, ciphertexts.slice(from, from + maxCiphertexts))));
    return found;
  }

  /** A service refuses a batch that contains a ciphertext of another stack, so the batch is split to decrypt the others. */
  async #decryptBatch(path: string, ciphertexts: readonly string[]): Promise<(Buffer | null)[]> {
    try {
      const call = { method: 'POST', body: { ciphertexts } } as const;
      const { plaintexts = {} } = await this.#read(answers.plaintexts, `${path}/batch-decrypt`, call);
      return ciphertexts.map((each) =>
        plaintexts[each] === undefined ? null : Buffer.from(plaintexts[each], 'base64'),
      );
    } catch (error) {
      if (!(error instanceof SourceRefusedError)) throw error;
      if (ciphertexts.length === 1) return [null];
      const middle = Math.ceil(ciphertexts.length / 2);
      const first = await this.#decryptBatch(path, ciphertexts.slice(0, middle));
      return [...first, ...(await this.#decryptBatch(path, ciphertexts.slice(middle)))];
    }
  }
}

/** Whether `--from` names a service. */
export function isService(from: string): boolean {
  return /^https?:/i.test(from);
}

function originOf(from: string): string {
  const url = URL.canParse(from) ? new URL(from) : null;
  if (url === null || url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '')
    throw new TransferError(
      `${JSON.stringify(from.replace(/\/\/[^/]*@/, '//'))} is not the address of a service, such as https://api.pulumi.com`,
    );
  if (url.protocol === 'http:' && !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname))
    throw new TransferError(`${url.host} would get the token in plain text: name an https:// address`);
  return url.href.replace(/\/+$/, '');
}
