import { type JsonKind, JsonScanner, JsonSyntaxError } from '../../../../platform/json/json-scanner.ts';
import { type JsonSpan, scanJson } from '../../../../platform/json/json-text.ts';
import { MalformedDeploymentError, type PendingOperation } from '../../../deployments/deployment-parts.ts';
import { ResourceReader, type ResourceText } from '../../../deployments/resource.ts';
import type { JournalEntryText } from '../../journal-batch.ts';
import { JournalReplayError } from './replay-error.ts';

/** As in Pulumi's sdk/go/common/apitype/journal.go. */
export const JournalEntryKind = {
  begin: 0,
  success: 1,
  failure: 2,
  refreshSuccess: 3,
  outputs: 4,
  write: 5,
  secretsManager: 6,
  rebuiltBaseState: 7,
  extensionParameterize: 8,
  snippets: 9,
  stateMigration: 10,
} as const;

/**
 * Reads fields on demand, so that unused fields of a kind are not validated. An absent field is the same as `null`. Every method throws
 * JournalReplayError for a value of the wrong type.
 */
export class EntryFields {
  readonly #entry: JournalEntryText;
  readonly #members = new Map<string, JsonSpan>();
  readonly #state = new ResourceReader();
  readonly #operationResource = new ResourceReader();
  #stateText: ResourceText | null = null;
  #operation: PendingOperation | null = null;
  #isCreating = false;

  constructor(entry: JournalEntryText) {
    this.#entry = entry;
    const scanner = new JsonScanner({
      reportDepth: 3,
      onValue: (path, kind, start, end) => this.#addValue(path, kind, start, end),
      skips: isUnread,
    });
    try {
      scanner.write(entry.text);
      scanner.end();
    } catch (error) {
      if (!(error instanceof JsonSyntaxError)) throw error;
      throw this.malformed(error.message, error);
    }
  }

  get sequenceId(): number {
    return this.#entry.sequenceId;
  }

  raw(name: string): Buffer | null {
    const span = this.#nonNull(name);
    return span ? this.#entry.text.subarray(span.start, span.end) : null;
  }

  object(name: string): Buffer | null {
    const span = this.#nonNull(name);
    if (!span) return null;
    if (span.kind !== 'object') throw this.malformed(`"${name}" is not an object`);
    return this.#entry.text.subarray(span.start, span.end);
  }

  string(name: string): string | null {
    const span = this.#nonNull(name);
    if (!span) return null;
    if (span.kind !== 'string') throw this.malformed(`"${name}" is not a string`);
    return JSON.parse(this.#entry.text.toString('utf8', span.start, span.end)) as string;
  }

  integer(name: string): number | null {
    const span = this.#nonNull(name);
    if (!span) return null;
    const value = span.kind === 'number' ? Number(this.#entry.text.toString('latin1', span.start, span.end)) : -1;
    if (!Number.isSafeInteger(value) || value < 0) throw this.malformed(`"${name}" is not a whole number`);
    return value;
  }

  requiredInteger(name: string): number {
    const value = this.integer(name);
    if (value === null) throw this.malformed(`"${name}" is missing`);
    return value;
  }

  /** Passes each element as raw JSON. An absent list is the same as an empty one. */
  elements<T>(name: string, read: (text: Buffer, at: number) => T): T[] {
    const text = this.raw(name);
    const values: T[] = [];
    if (!text) return values;
    scanJson(text, 1, (path, { kind, start, end }) => {
      if (path.length === 1) values.push(read(text.subarray(start, end), values.length));
      else if (kind !== 'array') throw this.malformed(`"${name}" is not a list`);
    });
    return values;
  }

  flag(name: string): boolean {
    const span = this.#nonNull(name);
    return span !== null && this.#entry.text[span.start] === 0x74;
  }

  state(): ResourceText | null {
    return this.object('state') && this.#stateText;
  }

  operation(): PendingOperation | null {
    return this.object('operation') && this.#operation;
  }

  malformed(message: string, cause?: Error): JournalReplayError {
    return new JournalReplayError('malformed-entry', message, this.#entry.sequenceId, cause && { cause });
  }

  /** Converts MalformedDeploymentError to JournalReplayError. */
  readPart<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof MalformedDeploymentError) throw this.malformed(error.message, error);
      throw error;
    }
  }

  #addValue(path: readonly (string | number)[], kind: JsonKind, start: number, end: number): void {
    const text = this.#entry.text;
    const name = path[0];
    if (path.length === 0) {
      if (kind !== 'object') throw this.malformed('Not an object');
    } else if (path.length === 1) {
      this.#members.set(String(name), { kind, start, end });
      if (name === 'state') this.#stateText = this.#state.finish(text.subarray(start, end));
      else if (name === 'operation') {
        const { features } = this.#operationResource.finish(text);
        this.#operation = { text: text.subarray(start, end), features, isCreating: this.#isCreating };
        this.#isCreating = false;
      }
    } else if (name === 'state') {
      if (path.length === 2) this.#state.addMember(path[1], text, start, end);
    } else if (name === 'operation') {
      if (path.length === 3 && path[1] === 'resource') {
        this.#operationResource.addMember(path[2], text, start, end);
      } else if (path.length === 2 && path[1] === 'type') {
        this.#isCreating = kind === 'string' && JSON.parse(text.toString('utf8', start, end)) === 'creating';
      }
    }
  }

  #nonNull(name: string): JsonSpan | null {
    const span = this.#members.get(name);
    return span && !(span.kind === 'literal' && this.#entry.text[span.start] === 0x6e) ? span : null;
  }
}

function isUnread(path: readonly (string | number)[]): boolean {
  if (path.length === 1) return path[0] !== 'state' && path[0] !== 'operation';
  return path.length === 2 && !(path[0] === 'operation' && path[1] === 'resource');
}
