import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';
import { type JsonKind, JsonScanner, type Span } from '../../../shared/platform/json/json-scanner.ts';
import { scanMembersInSlices } from '../../../shared/platform/json/json-text.ts';
import { joinParts, replaceRanges } from '../../../shared/platform/json/member-edits.ts';
import { ScanWindow } from '../../../shared/platform/json/scan-window.ts';
import { denseSliceBytes, inSlices, Slices } from '../../../shared/platform/slices/slices.ts';
import { viewResource } from '../../../shared/search/resource-facts.ts';
import { EarlierResources } from '../../../shared/state/deployments/earlier-resources.ts';
import { urnKey } from '../../../shared/state/deployments/live-urns.ts';
import { readReferences } from '../../../shared/state/deployments/references.ts';

/** A larger operation is not read. */
const maxOperationBytes = 8 * 1024 * 1024;
/** Number and total size of the operations that are read. */
const maxOperations = 1_000;
const maxTotalBytes = 32 * 1024 * 1024;

/** A step in progress when its update ended: its outcome is unknown. */
export interface PendingStep {
  /** `creating`, `updating`, `deleting`, `reading` or `importing`. */
  readonly operation: string;
  readonly urn: string;
  readonly type: string;
  /** Empty if the resource has none yet. */
  readonly id: string;
  readonly isCustom: boolean;
  /** Raw JSON. */
  readonly text: Buffer;
}

/** The pending operations of a deployment, in their order. */
export interface PendingSteps {
  readonly steps: readonly PendingStep[];
  /** Some operations were not read: too many, or too large. */
  readonly isCut: boolean;
  /** The position of the list in the document. */
  readonly span: Span | null;
}

export type StepRepair = { readonly action: 'clear' } | { readonly action: 'import'; readonly id: string };

/** Scans a deployment document that arrives in chunks. */
export class PendingStepScanner {
  readonly #texts = new ScanWindow(maxOperationBytes);
  readonly #scanner: JsonScanner;
  #current: Buffer[] = [];
  #found: Omit<PendingSteps, 'steps'> & { readonly texts: readonly Buffer[] } = { texts: [], isCut: false, span: null };
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
          this.#found = { texts: this.#current, isCut: this.#isCut, span: { start, end } };
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

  /** Works in time slices. Throws JsonSyntaxError. */
  async end(): Promise<PendingSteps & { readonly bytes: number }> {
    const bytes = this.#scanner.end();
    const { isCut, span, texts } = this.#found;
    const slices = new Slices(denseSliceBytes);
    const steps: PendingStep[] = [];
    for (const text of texts) {
      steps.push(await readStep(text));
      await slices.spend(text.length);
    }
    return { steps, isCut, span, bytes };
  }

  #add(start: number, end: number): void {
    const text = this.#texts.textOf(start, end);
    this.#bytes += end - start;
    if (text === null || this.#current.length === maxOperations || this.#bytes > maxTotalBytes) this.#isCut = true;
    else this.#current.push(Buffer.from(text));
  }
}

/** `imported`: the number of added resources. */
export interface RepairedDocument {
  readonly parts: (Buffer | Span)[];
  readonly imported: number;
}

/**
 * Clears pending operations, or adds their resources with the given ids: the next refresh reads these from their provider. (A refresh drops
 * what `pulumi refresh --import-pending-creates` writes.) All other bytes are kept. `repairOf`: null leaves an operation unchanged. Throws
 * InvalidRequestError.
 */
export async function repairPendingSteps(
  document: () => AsyncIterable<Buffer>,
  repairOf: (step: PendingStep, index: number) => StepRepair | null,
): Promise<RepairedDocument> {
  const scanner = new PendingStepScanner();
  const resources = new ResourceList();
  for await (const chunk of inSlices(document(), denseSliceBytes)) {
    scanner.write(chunk);
    resources.write(chunk);
  }
  const { bytes, isCut, span, steps } = await scanner.end();
  if (isCut) throw new InvalidRequestError('The state has more pending operations than can be repaired here');
  const added: Buffer[] = [];
  const kept: Buffer[] = [];
  for (const [index, step] of steps.entries()) {
    const repair = repairOf(step, index);
    if (repair === null) kept.push(step.text);
    else if (repair.action === 'import') {
      const text = await asResource(step, repair.id);
      resources.append(step, text, repair.id);
      added.push(text);
    }
  }
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

/** Repairs never use longer URNs and ids; measured as JSON. */
const maxNameBytes = 64 * 1024;

/** Resources by hashes of their URNs, and the end of the list. */
class ResourceList {
  readonly #texts = new ScanWindow(maxNameBytes);
  readonly #scanner: JsonScanner;
  /** Resources that are not pending deletion. */
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

  /** The resource is added at the end. Throws InvalidRequestError if the CLI would not load the resulting state. */
  append({ type, urn }: PendingStep, text: Buffer, id: string): void {
    if (this.#live.has(urnKey(urn))) throw new InvalidRequestError(replacesExisting(urn));
    const missing = this.#earlier.findMissing(readReferences({ text }));
    if (missing !== null) throw new InvalidRequestError(lacks(urn, missing));
    this.#add({ urn, type, id });
  }

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

/** The resource of an interrupted creation. Throws InvalidRequestError. */
async function asResource({ isCustom, operation, text, urn }: PendingStep, id: string): Promise<Buffer> {
  const resource = (await viewResource(text)).raw('resource');
  if (operation !== 'creating' || !isCustom || resource === null)
    throw new InvalidRequestError(`${urn} cannot be imported: only a resource whose creation was interrupted can`);
  const known = (await scanMembersInSlices(resource))?.get('id');
  const idText = Buffer.from(JSON.stringify(id));
  // A comma is right: the resource has other members, at least `custom`.
  const end = resource.lastIndexOf('}');
  const edit = known
    ? { ...known, by: idText }
    : { start: end, end, by: Buffer.concat([Buffer.from(',"id":'), idText]) };
  return replaceRanges(resource, [edit]);
}

async function readStep(text: Buffer): Promise<PendingStep> {
  const step = await viewResource(text);
  const resource = await viewResource(step.raw('resource') ?? Buffer.from('null'));
  return {
    operation: step.string('type'),
    urn: resource.string('urn'),
    type: resource.string('type'),
    id: resource.string('id'),
    isCustom: resource.isTrue('custom'),
    text,
  };
}
