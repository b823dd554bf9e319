import { type JsonSpan, scanMembers, sliceOf } from '../../platform/json/json-text.ts';
import { parseQualifiedName, type StackRef } from '../../stacks/names.ts';
import { diffProperties } from './property-leaves.ts';
import { deletedKey, providerKey, resourceKey, shortHash, withoutStack } from './resource-key.ts';

export const stackReferenceType = 'pulumi:pulumi:StackReference';
const providerTypePrefix = 'pulumi:providers:';

/** Longer URNs, types and names are cut, in characters. */
const maxTextLength = 2_000;
const maxPlaceLength = 200;
/** How many dependencies of one resource are indexed. */
const maxDependencies = 2_000;

/** What the index says of a resource: no values of properties, except the name of a stack that is read and versions of providers. */
export interface ResourceFacts {
  readonly key: string;
  readonly digest: string;
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  readonly place: string;
  readonly parent: string | null;
  readonly provider: string | null;
  readonly providerVersion: string | null;
  readonly dependencies: readonly string[];
  readonly isCustom: boolean;
  readonly isExternal: boolean;
  readonly isProtected: boolean;
  readonly deletesFirst: boolean;
  readonly isDeleted: boolean;
  readonly inputsHash: string | null;
  readonly outputsHash: string | null;
  readonly reads: string | null;
}

/** A resource as raw JSON, with its members. */
export class ResourceView {
  readonly text: Buffer;
  readonly #members: ReadonlyMap<string, JsonSpan>;

  constructor(text: Buffer) {
    this.text = text;
    this.#members = scanMembers(text) ?? new Map();
  }

  get names(): Iterable<string> {
    return this.#members.keys();
  }

  /** The raw JSON of a member; null if it is absent or null. */
  raw(name: string): Buffer | null {
    const span = this.#members.get(name);
    if (span === undefined || (span.kind === 'literal' && this.text[span.start] === 0x6e)) return null;
    return sliceOf(this.text, span);
  }

  string(name: string): string {
    const value = this.#small(name, 'string');
    return typeof value === 'string' ? value : '';
  }

  isTrue(name: string): boolean {
    return this.raw(name)?.toString('utf8') === 'true';
  }

  strings(name: string): string[] {
    const value = this.#small(name, 'array');
    return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
  }

  get urn(): string {
    return this.string('urn');
  }

  get isDeleted(): boolean {
    return this.isTrue('delete');
  }

  get key(): string {
    return this.isDeleted ? deletedKey(this.urn, this.string('id')) : resourceKey(this.urn);
  }

  #small(name: string, kind: JsonSpan['kind']): unknown {
    const span = this.#members.get(name);
    return span?.kind === kind ? (JSON.parse(sliceOf(this.text, span).toString('utf8')) as unknown) : null;
  }
}

export function digestOf(text: Buffer): string {
  return shortHash(text);
}

/** What the index says of a resource of this stack. */
export function readFacts(view: ResourceView, digest: string, stack: StackRef): ResourceFacts {
  const { urn } = view;
  const type = view.string('type');
  const tail = withoutStack(urn);
  const parent = view.string('parent');
  const dependencies = view.strings('dependencies').slice(0, maxDependencies).map(resourceKey);
  return {
    key: view.key,
    digest,
    urn: storable(urn, maxTextLength),
    type: storable(type, maxTextLength),
    name: storable(urn.slice(urn.lastIndexOf('::') + (urn.includes('::') ? 2 : 1)), maxTextLength),
    place: storable(tail, maxPlaceLength),
    parent: parent === '' ? null : resourceKey(parent),
    provider: providerKey(view.string('provider')),
    providerVersion: type.startsWith(providerTypePrefix) ? inputString(view, 'version') : null,
    dependencies: [...new Set(dependencies)],
    isCustom: view.isTrue('custom'),
    isExternal: view.isTrue('external'),
    isProtected: view.isTrue('protect'),
    deletesFirst: view.isTrue('deleteBeforeReplace'),
    isDeleted: view.isDeleted,
    inputsHash: hashOf(view.raw('inputs')),
    outputsHash: hashOf(view.raw('outputs')),
    reads: type === stackReferenceType ? readStackName(view, stack) : null,
  };
}

/** Members that differ without a change that anybody made, or that are told apart otherwise. */
const ignoredMembers = new Set(['urn', 'inputs', 'outputs', 'created', 'modified', 'sourcePosition', 'stackTrace']);

/** How a resource has changed from one version to another, by names of properties; `updated` without any if nothing has. */
export function compareResources(
  before: ResourceView,
  after: ResourceView,
): { readonly change: 'updated' | 'replaced'; readonly paths: readonly string[] } {
  const isReplaced = differs(before, after, 'id') || differs(before, after, 'created');
  const members = [...new Set([...before.names, ...after.names])].filter(
    (name) => !ignoredMembers.has(name) && !sameReferences(before.raw(name), after.raw(name)),
  );
  const properties = ['inputs', 'outputs'].flatMap((part) =>
    diffProperties(before.raw(part), after.raw(part)).map(({ path }) => joinPath(part, path)),
  );
  return { change: isReplaced ? 'replaced' : 'updated', paths: [...new Set([...members, ...properties])] };
}

/** `inputs.tags`, `inputs["a b"]`. */
export function joinPath(part: string, path: string): string {
  if (path === '') return part;
  return path.startsWith('[') ? `${part}${path}` : `${part}.${path}`;
}

/** Whether both have the member and its values differ. A resource gets an id and a time of creation later than it gets into a state. */
function differs(before: ResourceView, after: ResourceView, name: string): boolean {
  const [was, is] = [before.string(name), after.string(name)];
  return was !== '' && is !== '' && was !== is;
}

/** Whether two values are the same but for the stack's name in URNs, which a rename changes. */
function sameReferences(before: Buffer | null, after: Buffer | null): boolean {
  if (before === null || after === null) return before === after;
  if (before.equals(after)) return true;
  if (!before.includes('urn:pulumi:')) return false;
  const stackless = (text: Buffer): string => text.toString('utf8').replace(/urn:pulumi:[^"\\]*/g, withoutStack);
  return stackless(before) === stackless(after);
}

function hashOf(text: Buffer | null): string | null {
  return text === null ? null : shortHash(text);
}

/** Postgres stores no NUL. */
function storable(text: string, maxLength: number): string {
  const whole = text.replaceAll('\0', '\uFFFD').toWellFormed();
  return whole.length > maxLength ? whole.slice(0, maxLength).toWellFormed() : whole;
}

/** An input that is a string and no secret; null if there is none. */
function inputString(view: ResourceView, name: string): string | null {
  const inputs = view.raw('inputs');
  const span = inputs && scanMembers(inputs)?.get(name);
  if (!inputs || span?.kind !== 'string') return null;
  return storable(JSON.parse(sliceOf(inputs, span).toString('utf8')) as string, 200);
}

/** The stack that a reference names, as the CLI reads it: parts that are missing are those of the stack that has the reference. */
function readStackName(view: ResourceView, { organization, project }: StackRef): string | null {
  const parts = inputString(view, 'name')?.split('/') ?? [];
  const [first = '', second = '', third = ''] = parts;
  const named =
    parts.length === 1
      ? `${organization}/${project}/${first}`
      : parts.length === 2
        ? `${first}/${project}/${second}`
        : `${first}/${second}/${third}`;
  return parts.length > 3 || parseQualifiedName(named) === null ? null : named;
}
