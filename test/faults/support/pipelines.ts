import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { RawClient, ResponseError, type Update } from '../../../bench/support/raw-client.ts';
import { creation } from '../../support/journal-entries.ts';
import { deltaTo, documentOf, sha256 } from './documents.ts';
import { DocumentLedger, type EventLedger, JournalLedger } from './ledger.ts';

/** The target of the pipelines. */
export interface Target {
  readonly url: string;
  readonly token: string;
  readonly organization: string;
  /** Token of somebody else, who can approve what the pipelines ask for. */
  readonly reviewerToken: string;
  /** When the clock that leases depend on was last set, or a failover was noticed; an older lease may have ended. */
  readonly clockSetAt?: () => number;
  /** How many times as long as usual pipelines pause; always 1 without it. */
  readonly pauses?: () => number;
}

/** A pause of a pipeline, which usually takes `ms`. */
export function pauseFor({ pauses }: Target, ms: number): Promise<void> {
  return sleep(ms * (pauses?.() ?? 1));
}

export interface PipelineStatistics {
  updates: number;
  acknowledged: number;
  /** Updates that ended because of a clock change or a failover, or that took longer than their lease on a busy machine. */
  lostLeases: number;
  /** Calls that failed although they were repeated as the CLI would. */
  failedCalls: string[];
  /** Responses that no fault explains. */
  wrongAnswers: string[];
}

/** A bit less than a lease, which pipelines do not renew. */
const sureLeaseMs = 280_000;

/** One CI pipeline that speaks the protocol: it runs update after update on one stack until it is stopped. */
export abstract class Pipeline {
  readonly name: string;
  readonly client: RawClient;
  /** For writes of state; the same one unless they are hasty. */
  readonly writer: RawClient;
  readonly counts: PipelineStatistics = {
    updates: 0,
    acknowledged: 0,
    lostLeases: 0,
    failedCalls: [],
    wrongAnswers: [],
  };
  readonly target: Target;
  readonly project = 'faults';
  stackPath = '';
  protected stopping = false;
  #abandoned = false;
  #begunAt = 0;
  #run: Promise<void> = Promise.resolve();

  constructor(target: Target, name: string, options: { timeoutMs?: number } = {}) {
    this.target = target;
    this.name = name;
    this.client = new RawClient(target.url, target.token);
    this.writer = options.timeoutMs === undefined ? this.client : new RawClient(target.url, target.token, options);
  }

  async start(): Promise<void> {
    this.stackPath = await this.createStack();
    this.#run = this.#loop();
  }

  /** Returns its path. */
  protected async createStack(stack: object = { stackName: this.name }, name = this.name): Promise<string> {
    const path = `/api/stacks/${this.target.organization}/${this.project}`;
    await this.client.call('POST', path, stack).catch((error: unknown) => {
      // An earlier attempt, or another pipeline, has created it.
      if (!(error instanceof ResponseError && error.status === 409)) throw error;
    });
    return `${path}/${name}`;
  }

  /** Resolves when the current update has ended. */
  async stop(): Promise<void> {
    this.stopping = true;
    await this.#run;
  }

  /** Like `stop`, for a failed run: leaves the pipeline's locks as they are. */
  abandon(): Promise<void> {
    this.#abandoned = true;
    return this.stop();
  }

  /** One update, or another unit of the pipeline's work. Throws when a call failed permanently. */
  protected abstract once(): Promise<void>;

  async #loop(): Promise<void> {
    while (!this.stopping) {
      this.#begunAt = Date.now();
      try {
        await this.once();
        this.counts.updates++;
      } catch (error) {
        this.note(error);
        await this.free();
      }
      await pauseFor(this.target, 20 + Math.random() * 100);
    }
  }

  /** Cancels the update that locks the stack, as a person would after a failed run. */
  protected async free(): Promise<void> {
    for (let attempt = 1; attempt <= 30; attempt++) {
      if (this.#abandoned) return;
      try {
        const { activeUpdate } = JSON.parse(await this.client.call('GET', this.stackPath)) as { activeUpdate: string };
        if (activeUpdate === '') return;
        await this.client.call('POST', `${this.stackPath}/update/${activeUpdate}/cancel`);
        return;
      } catch {
        await sleep(500);
      }
    }
    this.counts.wrongAnswers.push(`${this.name}: its stack could not be freed`);
  }

  protected note(error: unknown): void {
    const text =
      error instanceof Error ? `${error.message} ${(error.cause as Error | undefined)?.message ?? ''}` : String(error);
    const line = `${new Date().toISOString()} ${this.name}: ${text.trim()}`;
    const isLeaseOver = this.#begunAt < (this.target.clockSetAt?.() ?? 0) || Date.now() - this.#begunAt > sureLeaseMs;
    if (error instanceof ResponseError && error.status === 403 && isLeaseOver) {
      this.counts.lostLeases++;
      return;
    }
    // 409: a create whose response was lost has acquired the lock; the next one finds it locked.
    const explained = !(error instanceof ResponseError) || error.status >= 500 || error.status === 409;
    (explained ? this.counts.failedCalls : this.counts.wrongAnswers).push(line);
  }

  protected pause(): Promise<void> {
    return pauseFor(this.target, 20 + Math.random() * 180);
  }

  /** Sends half of a body and disconnects, like a killed client. */
  protected async breakOff(path: string, lease: string): Promise<void> {
    const { hostname, port } = new URL(this.target.url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => {});
    const length = 50_000;
    const head = [
      `PATCH ${path} HTTP/1.1`,
      `Host: ${hostname}`,
      `Authorization: ${lease}`,
      'Accept: application/vnd.pulumi+9',
      'Content-Type: application/json',
      `Content-Length: ${length}`,
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n{"version":3,"untypedDeployment":${' '.repeat(length / 2)}`);
    await sleep(50);
    socket.destroy();
  }
}

/** Sends whole documents: as full checkpoints, or verbatim with deltas in between. */
export class DocumentPipeline extends Pipeline {
  readonly ledger = new DocumentLedger();
  readonly #mode: 'full' | 'delta';
  readonly #bytes: number;
  #mark = 0;

  constructor(
    target: Target,
    name: string,
    mode: 'full' | 'delta',
    bytes: number,
    options: { timeoutMs?: number } = {},
  ) {
    super(target, name, options);
    this.#mode = mode;
    this.#bytes = bytes;
  }

  protected override async once(): Promise<void> {
    const update = await this.client.startUpdate(this.stackPath);
    const writes = 2 + Math.floor(Math.random() * 5);
    for (let at = 1; at <= writes; at++) {
      const mark = `${this.name} ${++this.#mark}`;
      const document = documentOf(this.#bytes, mark);
      if (Math.random() < 0.05) await this.breakOff(`${update.path}/checkpointverbatim`, update.lease);
      this.ledger.attempt(document);
      if (this.#mode === 'full') await this.writer.checkpoint(update, document);
      else if (at === 1) await this.writer.verbatim(update, document, at);
      else await this.#delta(update, document, mark, at);
      this.ledger.acknowledge(document);
      this.counts.acknowledged++;
      await this.#look(0.1);
      await this.pause();
    }
    await this.client.complete(update);
    this.ledger.keepVersion(update.version);
    await this.#look(0.3);
  }

  async #delta(update: Update, document: Buffer, mark: string, at: number): Promise<void> {
    const options = { auth: update.lease, gzip: true };
    try {
      await this.writer.call('PATCH', `${update.path}/checkpointdelta`, deltaTo(document, mark, at), options);
    } catch {
      // Like the CLI after any failed delta: the whole document under the same number.
      await this.writer.verbatim(update, document, at);
    }
  }

  /** Now and then: nobody else writes to this stack, so its state is the last acknowledged one. */
  async #look(share: number): Promise<void> {
    if (Math.random() > share) return;
    const exported = await readState(this.target, `${this.stackPath}/export`);
    if (this.ledger.mayBe().has(sha256(exported))) return;
    const what = `${exported.length} bytes: ${exported.slice(0, 120)} … ${exported.slice(-40)}`;
    this.counts.wrongAnswers.push(`${this.name}: the export is not the last state, but ${what}`);
  }
}

/**
 * Reads a state as it is stored; retries after faults. Not compressed: Node does not detect a truncated compressed
 * body, and a proxy may end a truncated one normally.
 */
export async function readState(target: Pick<Target, 'url' | 'token'>, path: string): Promise<string> {
  const headers = {
    accept: 'application/vnd.pulumi+9',
    authorization: `token ${target.token}`,
    'accept-encoding': 'identity',
  };
  for (let attempt = 1; ; attempt++) {
    try {
      const response = await fetch(`${target.url}${path}`, { headers });
      const text = await response.text();
      if (response.ok) return text;
      throw new ResponseError(response.status, text);
    } catch (error) {
      const final = error instanceof ResponseError && error.status < 500;
      if (final || attempt === 30) throw error;
      await sleep(500);
    }
  }
}

/** Imports a document again and again; the CLI does not repeat this call. */
export class ImportPipeline extends Pipeline {
  readonly ledger = new DocumentLedger();
  readonly #bytes: number;
  #mark = 0;

  constructor(target: Target, name: string, bytes: number) {
    super(target, name);
    this.#bytes = bytes;
  }

  protected override async once(): Promise<void> {
    const document = documentOf(this.#bytes, `${this.name} ${++this.#mark}`);
    this.ledger.attempt(document);
    await this.client.once('POST', `${this.stackPath}/import`, document, { gzip: true });
    this.ledger.acknowledge(document);
    this.counts.acknowledged++;
    await this.pause();
  }
}

/** Sends a journal and events, like today's CLI. */
export class JournalPipeline extends Pipeline {
  readonly ledger = new JournalLedger();
  readonly events: EventLedger = new Map();
  readonly #resourcesPerBatch: number;
  #resource = 0;

  constructor(target: Target, name: string, resourcesPerBatch: number) {
    super(target, name);
    this.#resourcesPerBatch = resourcesPerBatch;
  }

  protected override async once(): Promise<void> {
    const update = await this.client.startUpdate(this.stackPath, { journal: true });
    const options = { auth: update.lease, gzip: true };
    const batches = 2 + Math.floor(Math.random() * 6);
    let sequence = 1;
    for (let at = 0; at < batches; at++) {
      const names = Array.from({ length: this.#resourcesPerBatch }, () => `r${++this.#resource}`);
      const entries = names.flatMap((name) => {
        const made = creation(sequence, name, { project: this.project, stack: this.name });
        sequence += made.length;
        return made;
      });
      for (const name of names) this.ledger.attempted.add(name);
      await this.client.call('PATCH', `${update.path}/journalentries`, { entries }, options);
      for (const name of names) this.ledger.acknowledged.add(name);
      this.counts.acknowledged += entries.length;
      if (at % 2 === 0) await this.#sendEvents(update, at * 5);
      await this.pause();
    }
    await this.client.complete(update);
  }

  async #sendEvents(update: Update, from: number): Promise<void> {
    const numbers = Array.from({ length: 10 }, (_, at) => from + at);
    const events = numbers.map((sequence) => ({
      sequence,
      timestamp: 1_700_000_000,
      diagnosticEvent: { message: `event ${sequence} of ${this.name}`, severity: 'info', color: 'never' },
    }));
    await this.client.call('POST', `${update.path}/events/batch`, { events }, { auth: update.lease, gzip: true });
    this.events.set(update.id, [...(this.events.get(update.id) ?? []), ...numbers]);
    this.counts.acknowledged += numbers.length;
  }
}

/** The usual mix: small and large, with every way of sending state. */
export function pipelineMix(target: Target): Pipeline[] {
  const journals = [1, 1, 1, 2, 5, 25, 60].map(
    (size, at) => new JournalPipeline(target, `journal-${at}-${size}`, size),
  );
  const deltas = [2_000, 20_000, 60_000, 300_000, 1_500_000].map(
    (bytes) => new DocumentPipeline(target, `delta-${bytes}`, 'delta', bytes),
  );
  const fulls = [2_000, 30_000, 150_000, 800_000].map(
    (bytes) => new DocumentPipeline(target, `full-${bytes}`, 'full', bytes),
  );
  // Pipelines whose writes do not wait for a hanging server: they are repeated elsewhere.
  const hasty = (['full', 'delta'] as const).flatMap((mode) =>
    [4_000, 90_000].map(
      (bytes) => new DocumentPipeline(target, `hasty-${mode}-${bytes}`, mode, bytes, { timeoutMs: 4_000 }),
    ),
  );
  // Above one part of a multipart upload.
  const large = [new DocumentPipeline(target, 'large-full', 'full', 9_000_000)];
  const imports = [4_000, 80_000, 500_000].map((bytes) => new ImportPipeline(target, `import-${bytes}`, bytes));
  return [...journals, ...deltas, ...fulls, ...hasty, ...large, ...imports];
}
