import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';
import { type JsonKind, JsonScanner, type Span } from '../../../shared/platform/json/json-scanner.ts';
import { scanMembers, sliceOf } from '../../../shared/platform/json/json-text.ts';
import { editMembers, joinParts } from '../../../shared/platform/json/member-edits.ts';
import { RecentText } from '../../../shared/platform/json/recent-text.ts';
import { EarlierResources } from '../../../shared/state/deployments/earlier-resources.ts';
import { urnKey } from '../../../shared/state/deployments/live-urns.ts';
import { readReferences } from '../../../shared/state/deployments/references.ts';

/** A larger operation is not read, in bytes. */
const maxOperationBytes = 8 * 1024 * 1024;
/** Maximum number of operations that are read, and their maximum total size. */
const maxOperations = 1_000;
const maxTotalBytes = 32 * 1024 * 1024;

/** A step in progress when its update ended: its outcome is unknown. */
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
  /** The position of the list in the document; null if there is none. */
  readonly span: Span | null;
}

/** The repair of a pending operation. */
export type StepRepair = { readonly action: 'clear' } | { readonly action: 'import'; readonly id: string };

/** Finds the pending operations in a deployment document that arrives in chunks. */
export class PendingStepScanner {
  readonly #texts = new RecentText(maxOperationBytes);
  readonly #scanner: JsonScanner;
  #current: PendingStep[] = [];
  #found: PendingSteps = { steps: [], isCut: false, span: null };
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
          this.#found = { steps: this.#current, isCut: this.#isCut, span: { start, end } };
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

/** A document with repaired operations, as its parts, and how many resources it has gained. */
export interface RepairedDocument {
  readonly parts: (Buffer | Span)[];
  readonly imported: number;
}

/**
 * The document with some of its pending operations cleared, or their resources added with the given ids: the next refresh reads
 * them from their provider. (What `pulumi refresh --import-pending-creates` writes is dropped by the refresh itself.) All other bytes are
 * kept. `repairOf` is called for each operation; null leaves it as it is. Throws InvalidRequestError.
 */
export async function repairPendingSteps(
  document: () => AsyncIterable<Buffer>,
  repairOf: (step: PendingStep, index: number) => StepRepair | null,
): Promise<RepairedDocument> {
  const scanner = new PendingStepScanner();
  const resources = new ResourceList();
  for await (const chunk of document()) {
    scanner.write(chunk);
    resources.write(chunk);
  }
  const { bytes, isCut, span, steps } = scanner.end();
  if (isCut) throw new InvalidRequestError('The state has more pending operations than can be repaired here');
  const added: Buffer[] = [];
  const kept = steps.flatMap((step, index) => {
    const repair = repairOf(step, index);
    if (repair === null) return [step.text];
    if (repair.action === 'import') {
      const text = asResource(step, repair.id);
      resources.append(step, text, repair.id);
      added.push(text);
    }
    return [];
  });
  if (span === null) return { parts: [{ start: 0, end: bytes }], imported: 0 };
  const edits = [{ ...span, by: joinParts('[', kept, ']') }];
  if (added.length > 0) edits.push(resources.appended(added));
  const parts: (Buffer | Span)[] = [];
  let from = 0;
  for (const { by, end, start } of edits.sort((one, other) => one.start - other.start)) {
    parts.push({ start: from, end: start }, by);
    from = end;
  }
  return { parts: [...parts, { start: from, end: bytes }], imported: added.length };
}

/** Repairs never name longer URNs and ids, in bytes of their JSON. */
const maxNameBytes = 64 * 1024;

/** The resources of a deployment, by hashes of their URNs, and the end of their list. */
class ResourceList {
  readonly #texts = new RecentText(maxNameBytes);
  readonly #scanner: JsonScanner;
  /** Except for those pending deletion. */
  readonly #live = new Set<string>();
  readonly #earlier = new EarlierResources();
  #span: (Span & { readonly isEmpty: boolean }) | null = null;
  #current = { urn: '', type: '', id: '' };
  #isDeleted = false;
  #count = 0;

  constructor() {
    this.#scanner = new JsonScanner({
      reportDepth: 4,
      onValue: (path, kind, start, end) => {
        if (path[0] === 'deployment' && path[1] === 'resources') this.#addValue(path, kind, start, end);
        this.#texts.pass(end);
      },
    });
  }

  write(chunk: Buffer): void {
    this.#texts.beginChunk(chunk);
    this.#scanner.write(chunk);
    this.#texts.endChunk();
  }

  /** A resource that is added at the end. Throws InvalidRequestError if the CLI would not load the state then. */
  append({ type, urn }: PendingStep, text: Buffer, id: string): void {
    if (this.#live.has(urnKey(urn))) throw new InvalidRequestError(replacesExisting(urn));
    const missing = this.#earlier.findMissing(readReferences({ text }));
    if (missing !== null) throw new InvalidRequestError(lacks(urn, missing));
    this.#add({ urn, type, id });
  }

  /** The edit that adds resources at the end of the list. Throws InvalidRequestError. */
  appended(texts: readonly Buffer[]): Span & { by: Buffer } {
    if (this.#span === null) throw new InvalidRequestError('The state has no list of resources');
    const { end, isEmpty, start } = this.#span;
    const list = joinParts('[', texts, ']');
    if (isEmpty) return { start, end, by: list };
    return { start: end - 1, end, by: Buffer.concat([Buffer.from(','), list.subarray(1)]) };
  }

  #addValue(path: readonly (string | number)[], kind: JsonKind, start: number, end: number): void {
    if (path.length === 2) {
      this.#span = { start, end, isEmpty: kind !== 'array' || this.#count === 0 };
      this.#count = 0;
    } else if (path.length === 3) {
      if (this.#isDeleted) this.#earlier.add(this.#current);
      else this.#add(this.#current);
      this.#current = { urn: '', type: '', id: '' };
      this.#isDeleted = false;
      this.#count++;
    } else this.#addMember(path[3], kind, () => this.#texts.textOf(start, end)?.toString('utf8') ?? '""');
  }

  #addMember(name: string | number | undefined, kind: JsonKind, readText: () => string): void {
    if (name === 'delete') this.#isDeleted = readText() === 'true';
    else if (name === 'urn' || name === 'type' || name === 'id')
      this.#current[name] = kind === 'string' ? (JSON.parse(readText()) as string) : '';
  }

  #add(resource: { readonly urn: string; readonly type: string; readonly id: string }): void {
    this.#live.add(urnKey(resource.urn));
    this.#earlier.add(resource);
  }
}

function replacesExisting(urn: string): string {
  return `${urn} is already in the state: its creation was a replacement. Discard the operation, and delete the new resource in the cloud`;
}

function lacks(urn: string, missing: string): string {
  return `${urn} needs ${missing}, which is not in the state. Discard the operation, and run \`pulumi import\``;
}

/** The resource of an interrupted creation, with the id that it got. Throws InvalidRequestError. */
function asResource({ isCustom, operation, text, urn }: PendingStep, id: string): Buffer {
  const span = scanMembers(text)?.get('resource');
  if (operation !== 'creating' || !isCustom || span?.kind !== 'object')
    throw new InvalidRequestError(`Only a resource that was being created can be imported, which ${urn} was not`);
  const idText = Buffer.from(JSON.stringify(id));
  return editMembers(sliceOf(text, span), new Map([['id', () => idText]]));
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
