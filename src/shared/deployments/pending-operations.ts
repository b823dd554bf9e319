import { InvalidRequestError } from '../platform/errors/errors.ts';
import { JsonScanner, type Span } from '../platform/json/json-scanner.ts';
import { scanMembers, sliceOf } from '../platform/json/json-text.ts';
import { editMembers, joinParts } from '../platform/json/member-edits.ts';
import { RecentText } from '../platform/json/recent-text.ts';
import { inTurns } from '../platform/turns/turns.ts';

/** A larger operation is not read, in bytes. */
const maxOperationBytes = 8 * 1024 * 1024;
/** More are not read; nor are more bytes of them in total. */
const maxOperations = 1_000;
const maxTotalBytes = 32 * 1024 * 1024;

/** A step that had begun when its update ended: nobody knows whether it was done. */
export interface PendingStep {
  /** `creating`, `updating`, `deleting`, `reading` or `importing`. */
  readonly operation: string;
  readonly urn: string;
  readonly type: string;
  /** The id of its resource; empty if it has none yet. */
  readonly id: string;
  readonly isCustom: boolean;
  /** As raw JSON. */
  readonly text: Buffer;
}

/** The pending operations of a deployment, in their order. */
export interface PendingSteps {
  readonly steps: readonly PendingStep[];
  /** Whether there are more, or larger ones, which were not read. */
  readonly isCut: boolean;
  /** Where the list stands in the document; null if there is none. */
  readonly place: Span | null;
}

/** What becomes of a pending operation. */
export type StepRepair = { readonly action: 'clear' } | { readonly action: 'import'; readonly id: string };

/** Finds the pending operations in a deployment document that arrives in chunks. */
export class PendingStepScanner {
  readonly #texts = new RecentText(maxOperationBytes);
  readonly #scanner: JsonScanner;
  #current: PendingStep[] = [];
  #found: PendingSteps = { steps: [], isCut: false, place: null };
  #isCut = false;
  #bytes = 0;

  constructor() {
    this.#scanner = new JsonScanner({
      reportDepth: 3,
      onValue: (path, kind, start, end) => {
        const [top, list] = path;
        // The CLI's delta mode writes the second spelling (pkg/backend/httpstate/diffs.go).
        const isList = top === 'deployment' && (list === 'pending_operations' || list === 'pendingOperations');
        if (isList && path.length === 3) this.#add(start, end);
        if (isList && path.length === 2 && kind === 'array') {
          this.#found = { steps: this.#current, isCut: this.#isCut, place: { start, end } };
          this.#current = [];
        }
        this.#texts.pass(end);
      },
    });
  }

  /** Throws JsonSyntaxError. */
  write(chunk: Buffer): void {
    this.#texts.beginChunk(chunk);
    this.#scanner.write(chunk);
    this.#texts.endChunk();
  }

  /** Throws JsonSyntaxError. */
  end(): PendingSteps & { readonly bytes: number } {
    return { ...this.#found, bytes: this.#scanner.end() };
  }

  #add(start: number, end: number): void {
    const text = this.#texts.textOf(start, end);
    this.#bytes += end - start;
    if (text === null || this.#current.length === maxOperations || this.#bytes > maxTotalBytes) this.#isCut = true;
    else this.#current.push(readStep(Buffer.from(text)));
  }
}

/**
 * The document with some of its pending operations cleared, or turned into imports as `pulumi refresh --import-pending-creates` does:
 * the next refresh then reads the resource from its provider. All other bytes are kept. `repairOf` is called for each operation;
 * null leaves it as it is. Throws InvalidRequestError.
 */
export async function repairPendingSteps(
  document: () => AsyncIterable<Buffer>,
  repairOf: (step: PendingStep, index: number) => StepRepair | null,
): Promise<(Buffer | Span)[]> {
  const scanner = new PendingStepScanner();
  for await (const chunk of inTurns(document())) scanner.write(chunk);
  const { bytes, isCut, place, steps } = scanner.end();
  if (isCut) throw new InvalidRequestError('The state has more pending operations than can be repaired here');
  const kept = steps.flatMap((step, index) => {
    const repair = repairOf(step, index);
    if (repair === null) return [step.text];
    return repair.action === 'clear' ? [] : [asImport(step, repair.id)];
  });
  if (place === null) return [{ start: 0, end: bytes }];
  return [{ start: 0, end: place.start }, joinParts('[', kept, ']'), { start: place.end, end: bytes }];
}

/** Throws InvalidRequestError. */
function asImport({ isCustom, operation, text, urn }: PendingStep, id: string): Buffer {
  if (operation !== 'creating' || !isCustom)
    throw new InvalidRequestError(`Only a resource that was being created can be imported, and ${urn} is none`);
  const idText = Buffer.from(JSON.stringify(id));
  return editMembers(
    text,
    new Map([
      ['type', () => Buffer.from('"importing"')],
      ['resource', (resource: Buffer | null) => resource && editMembers(resource, new Map([['id', () => idText]]))],
    ]),
  );
}

function readStep(text: Buffer): PendingStep {
  const members = scanMembers(text);
  const resourceSpan = members?.get('resource');
  const resource = resourceSpan?.kind === 'object' ? sliceOf(text, resourceSpan) : null;
  const fields = (resource && scanMembers(resource)) ?? new Map();
  const fieldOf = (name: string): unknown => {
    const span = fields.get(name);
    return span === undefined || resource === null || span.kind === 'object' || span.kind === 'array'
      ? null
      : (JSON.parse(sliceOf(resource, span).toString('utf8')) as unknown);
  };
  const stringOf = (name: string): string => {
    const value = fieldOf(name);
    return typeof value === 'string' ? value : '';
  };
  const operation = members?.get('type');
  return {
    operation: operation?.kind === 'string' ? String(JSON.parse(sliceOf(text, operation).toString('utf8'))) : '',
    urn: stringOf('urn'),
    type: stringOf('type'),
    id: stringOf('id'),
    isCustom: fieldOf('custom') === true,
    text,
  };
}
