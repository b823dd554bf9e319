import { LRUCache } from 'lru-cache';
import { type JsonSpan, scanMembersInSlices, sliceOf } from '../../shared/platform/json/json-text.ts';
import { denseSliceBytes, inSlices, Slices } from '../../shared/platform/slices/slices.ts';
import { cutText } from '../../shared/platform/text/cut-text.ts';
import type { StateScan } from '../platform/admission/state-scans.ts';
import { PendingStepScanner } from './resources/pending-operations.ts';
import { listSecretsInSlices } from './resources/redacted-json.ts';
import { readRootOutputs } from './resources/root-outputs.ts';

/** A secret output has only its name. */
export interface OutputView {
  readonly name: string;
  /** A text unchanged, other values as JSON; null: secret. */
  readonly value: string | null;
  readonly isSecret: boolean;
  readonly isCut: boolean;
}

/** A step in progress when its update ended. */
export interface StepView {
  readonly operation: string;
  readonly urn: string;
  readonly type: string;
  readonly id: string | null;
  /** The created resource can be added by id. */
  readonly isImportable: boolean;
}

export interface StateSummary {
  readonly outputs: readonly OutputView[];
  readonly pending: readonly StepView[];
  /** There are more pending operations. */
  readonly isCut: boolean;
}

const empty: StateSummary = { outputs: [], pending: [], isCut: false };
const maxOutputs = 500;
const maxValueChars = 20_000;
/** The output that describes the stack, as Markdown. */
const readmeName = 'readme';
const maxReadmeChars = 200_000;
/** Total size of the kept data, in characters. */
const maxKept = 8 * 1024 * 1024;

interface Reading {
  readonly summary: Promise<StateSummary>;
  isDone: boolean;
}

/** All concurrent viewers of a version share one scan of its state. */
export class StateSummaries {
  /** A summary that is larger than the whole cache is not kept. */
  readonly #recent = new LRUCache<string, Reading>({ max: 1_000, maxSize: maxKept });

  /** `key` identifies the state that `open` opens; null: there is no state. Also throws the errors of `scan`. */
  async read(scan: StateScan, key: string, open: () => Promise<AsyncIterable<Buffer> | null>): Promise<StateSummary> {
    const known = this.#recent.get(key);
    if (known?.isDone) return known.summary;
    // Callers that wait for another call's scan need a slot, too: they could otherwise hold the slots that it waits for.
    await scan.begin();
    const others = this.#recent.get(key);
    if (others === undefined) return this.#begin(key, open).summary;
    try {
      return await others.summary;
    } catch {
      // The client of that call may have gone.
      scan.assertWanted();
      return (this.#recent.get(key) ?? this.#begin(key, open)).summary;
    }
  }

  #begin(key: string, open: () => Promise<AsyncIterable<Buffer> | null>): Reading {
    const summary = (async () => {
      const state = await open();
      return state === null ? empty : scanState(state);
    })();
    const reading: Reading = { summary, isDone: false };
    // A placeholder until the size is known.
    this.#recent.set(key, reading, { size: 1 });
    const isKept = (): boolean => this.#recent.peek(key) === reading;
    summary.then(
      (found) => {
        reading.isDone = true;
        if (!isKept()) return;
        // Deleted first, because the cache does not measure the same value again.
        this.#recent.delete(key);
        this.#recent.set(key, reading, { size: sizeOf(found) });
      },
      () => isKept() && this.#recent.delete(key),
    );
    return reading;
  }
}

function sizeOf({ outputs, pending }: StateSummary): number {
  return (
    outputs.reduce((sum, { name, value }) => sum + name.length + (value?.length ?? 0), 100) +
    pending.reduce((sum, { id, type, urn }) => sum + urn.length + type.length + (id?.length ?? 0), 0)
  );
}

async function scanState(state: AsyncIterable<Buffer>): Promise<StateSummary> {
  const scanner = new PendingStepScanner();
  const both = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of inSlices(state, denseSliceBytes)) {
      scanner.write(chunk);
      yield chunk;
    }
  };
  const { outputs } = await readRootOutputs(both());
  const { isCut, steps } = await scanner.end();
  const pending = steps.map(({ id, isCustom, operation, type, urn }) => ({
    ...{ operation, urn, type, id: id || null },
    isImportable: operation === 'creating' && isCustom,
  }));
  return { outputs: outputs === null ? [] : await redactedOutputs(outputs), pending, isCut };
}

async function redactedOutputs(outputs: Buffer): Promise<OutputView[]> {
  const members = (await scanMembersInSlices(outputs)) ?? new Map<string, JsonSpan>();
  const slices = new Slices();
  const views: OutputView[] = [];
  for (const [name, span] of members) {
    if (views.length === maxOutputs) break;
    const json = sliceOf(outputs, span);
    await slices.spend(json.length);
    if ((await listSecretsInSlices(json)).length > 0) {
      views.push({ name, value: null, isSecret: true, isCut: false });
      continue;
    }
    const text = textOf(json);
    const maxChars = name === readmeName ? maxReadmeChars : maxValueChars;
    views.push({ name, value: cutText(text, maxChars), isSecret: false, isCut: text.length > maxChars });
  }
  return views;
}

function textOf(json: Buffer): string {
  const text = json.toString('utf8');
  return text.startsWith('"') ? (JSON.parse(text) as string) : text;
}
