import { UnavailableError } from '../../../shared/platform/errors/errors.ts';
import { TimeSlices } from '../../../shared/platform/slices/slices.ts';
import type { Metrics } from '../../../shared/platform/telemetry/metrics.ts';
import { type ResourceScan, scanResources } from '../../../shared/search/scan-resources.ts';
import type { StackRef } from '../../../shared/stacks/names.ts';
import type { StackRow } from '../../../shared/stacks/stack-repository.ts';
import type { StateDocument, StateReader } from '../../../shared/state/state-reader.ts';
import type { Caller } from '../http/request.ts';
import type { ReserveMemory } from '../http/response-memory.ts';
import { FairSemaphore, type SemaphoreLimits } from './fair-semaphore.ts';

/** The limits of one process: each request that reads whole states keeps some MiB, and all of them share the event loop. */
const limits: SemaphoreLimits = { atOnce: 4, atOncePerCaller: 2, atOncePerOrganization: 3 };
/** A state is processed in parts of this size: 2 to 5 ms each. */
const sliceBytes = 128 * 1024;

export interface Scanning {
  readonly caller: Pick<Caller, 'tokenId' | 'userId'>;
  readonly organization: string;
  /** Aborted when its client is gone. */
  readonly signal: AbortSignal;
  /** Reserves memory for the response. */
  readonly reserveMemory: ReserveMemory;
}

/** Lets requests read whole states: a few at once, fairly shared between organizations and callers. */
export class StateScans {
  readonly #states: StateReader;
  readonly #semaphore: FairSemaphore;
  readonly #slices = new TimeSlices();

  constructor(states: StateReader, metrics: Metrics) {
    this.#states = states;
    this.#semaphore = new FairSemaphore(limits);
    metrics.gauge(
      'holdfast_state_reads',
      'Requests of this process that read whole states.',
      () => this.#semaphore.running,
    );
    metrics.gauge(
      'holdfast_state_reads_waiting',
      'Requests of this process that wait to read whole states.',
      () => this.#semaphore.waiting,
    );
  }

  /** Takes no slot until the request reads its first state. */
  open(request: Scanning): StateScan {
    return new StateScan(request, { states: this.#states, semaphore: this.#semaphore, slices: this.#slices });
  }
}

/**
 * Reads whole states for a request. All requests do so through this class, except exports, which send states unchanged. A request takes a
 * slot with the first state that it reads, and keeps it until `end`, because the data takes memory until the request is answered.
 */
export class StateScan {
  readonly #request: Scanning;
  readonly #parts: { readonly states: StateReader; readonly semaphore: FairSemaphore; readonly slices: TimeSlices };
  #slot: Promise<() => void> | null = null;
  #hasEnded = false;

  constructor(
    request: Scanning,
    parts: { readonly states: StateReader; readonly semaphore: FairSemaphore; readonly slices: TimeSlices },
  ) {
    this.#request = request;
    this.#parts = parts;
  }

  /** Throws OwnQueueError, UnavailableError. */
  async begin(): Promise<void> {
    this.assertWanted();
    const { caller, organization, signal } = this.#request;
    this.#slot ??= this.#parts.semaphore.take({ ...caller, organization }, signal);
    const end = await this.#slot;
    if (this.#hasEnded) end();
    this.assertWanted();
  }

  /** Reserves memory for an answer, like ReserveMemory. */
  hold(bytes: number, organization: string): Promise<void> {
    return this.#request.reserveMemory(bytes, organization);
  }

  /** Like StateReader.readHead. Also throws the errors of `begin`. */
  async readHead(ref: StackRef): Promise<{ readonly stack: StackRow; readonly state: StateDocument } | null> {
    await this.begin();
    const head = await this.#parts.states.readHead(ref);
    return head && { ...head, state: this.#inSlices(head.state) };
  }

  /** Like StateReader.readVersion. Also throws the errors of `begin`. */
  async readVersion(stackId: string, stackVersion: number): Promise<StateDocument | null> {
    await this.begin();
    const state = await this.#parts.states.readVersion(stackId, stackVersion, this.#request.organization);
    return state && this.#inSlices(state);
  }

  scanResources(state: StateDocument, onResource: (text: Buffer) => Promise<void> | void): Promise<ResourceScan> {
    return scanResources(state.bytes, onResource, () => this.pause());
  }

  /** Call between steps of a long computation. */
  async pause(): Promise<void> {
    this.assertWanted();
    await this.#parts.slices.pause();
  }

  assertWanted(): void {
    if (this.#request.signal.aborted) throw new UnavailableError('The client has disconnected');
  }

  end(): void {
    this.#hasEnded = true;
    this.#slot?.then(
      (end) => end(),
      () => {},
    );
  }

  /** One part per tick of the event loop, as long as a client waits for the response. */
  #inSlices(state: StateDocument): StateDocument {
    const bytes = state.bytes[Symbol.asyncIterator]();
    return { ...state, bytes: { [Symbol.asyncIterator]: () => this.#slices(bytes) } };
  }

  #slices(bytes: AsyncIterator<Buffer>): AsyncIterator<Buffer> {
    let chunk: Buffer = Buffer.alloc(0);
    const close = async (): Promise<IteratorResult<Buffer>> => {
      await bytes.return?.();
      return { done: true, value: undefined };
    };
    return {
      next: async () => {
        if (this.#request.signal.aborted) await close();
        this.assertWanted();
        while (chunk.length === 0) {
          const step = await bytes.next();
          if (step.done) return step;
          chunk = step.value;
        }
        await this.#parts.slices.next();
        const value = chunk.subarray(0, sliceBytes);
        chunk = chunk.subarray(sliceBytes);
        return { done: false, value };
      },
      return: close,
    };
  }
}
